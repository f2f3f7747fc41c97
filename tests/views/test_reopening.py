"""A database with many maintained tables is opened without filling any of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.cli.bench.reopening import VIEWS, bodies, make, reopen
from quereus_store.views.programs import Program


def test_opening_fills_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "many.qdb")
    make(path, 2000)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a body was run")

    with monkeypatch.context() as patch:
        patch.setattr(Program, "rows", refuse)
        con = quereus_store.connect(path)
        found = [con.execute(f"select * from part{number}").fetchall() for number in range(VIEWS)]
        stale = con.execute("select name from maintenance_info() where stale").fetchall()
    assert stale == []
    con.execute("pragma answer_from_views = false")
    assert found == [con.execute(body).fetchall() for body in bodies()]
    con.close()


def test_opening_takes_the_time_of_the_catalog(tmp_path: Path) -> None:
    """Fifty views are there in under a fifth of a second of work; no row is read."""
    path = str(tmp_path / "many.qdb")
    make(path, 20_000)
    taken = []
    for _ in range(5):
        started = time.process_time()
        con = quereus_store.connect(path)
        assert con.execute("select sum(items) from part0").fetchone() == (400,)
        taken.append(time.process_time() - started)
        con.close()
    assert min(taken) < 0.2


def test_the_measured_steps_find_every_row(tmp_path: Path) -> None:
    path = str(tmp_path / "many.qdb")
    make(path, 500)
    assert reopen(path, 500).keys() == {"rows", "open", "first_read", "first_change"}

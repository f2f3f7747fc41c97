"""A database with many maintained tables is opened without filling any of them."""

from __future__ import annotations

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


def test_the_measured_steps_find_every_row(tmp_path: Path) -> None:
    path = str(tmp_path / "many.qdb")
    make(path, 500)
    assert reopen(path, 500).keys() == {"rows", "open", "first_read", "first_change"}

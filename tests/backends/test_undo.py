"""What undoes a transaction is held in memory up to a bound, and in a file beyond it."""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.backends import open_backend, undo
from quereus_store.backends.conformance import run_conformance
from quereus_store.backends.undo import Note, UndoLog

KEYS = [b"a", b"bb", b"ccc"]
VALUES = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.binary(max_size=9)), min_size=3, max_size=3))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(VALUES, st.sampled_from(["mark", "back"])), max_size=40), st.integers(1, 400))
def test_notes_come_back_as_from_a_list(steps: list[object], bound: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(undo, "HELD", bound)
        patch.setattr(undo, "MANY", 3)
        log = UndoLog()
        plain: list[Note] = []
        marks: list[tuple[int, int]] = [(0, 0)]
        for number, step in enumerate(steps):
            if step == "mark":
                marks.append((log.position(), len(plain)))
            elif step == "back":
                position, length = marks[-1]
                assert list(log.back_to(position)) == plain[length:][::-1]
                del plain[length:]
                if len(marks) > 1:
                    marks.pop()
            elif number % 3:
                plain.append((KEYS, step))  # type: ignore[arg-type]
                log.note(KEYS, step)  # type: ignore[arg-type]
            else:
                plain.append((KEYS, step))  # type: ignore[arg-type]
                log.recent.append((KEYS, step))  # type: ignore[arg-type]
        assert list(log.back_to(0)) == plain[::-1]
        log.clear()
        assert log.position() == 0


def test_lmdb_conforms_with_its_undo_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "HELD", 1)
    monkeypatch.setattr(undo, "MANY", 1)
    run_conformance(lambda folder: open_backend("lmdb", folder / "data"), folder=tmp_path).require()


def test_without_room_for_a_file_it_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError("no room")

    monkeypatch.setattr(undo, "HELD", 100)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    log = UndoLog()
    notes: list[Note] = [(KEYS, [b"x" * 50, None, b""]) for _ in range(10)]
    for keys, values in notes:
        log.note(keys, values)
    assert list(log.back_to(0)) == notes


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t alter column v set data type text",
        "alter table t add column w integer default (new.v + 1)",
        "alter table t alter primary key (v, id)",
    ],
)
def test_a_rewrite_is_held_in_bounded_memory(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """27 megabytes of rows are rewritten, and given back, with a few of them in memory."""
    monkeypatch.setattr(undo, "HELD", 2**20)
    with quereus_store.connect(tmp_path / "db", synchronous="off", cache_size=0) as con:
        con.execute("create table t (id integer primary key, v integer, pad text)")
        rows = [(n, n, "x" * 900) for n in range(30_000)]
        con.executemany("insert into t values (?, ?, ?)", rows)
        con.execute("begin")
        tracemalloc.start()
        con.execute(sql)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12e6
        con.execute("rollback")
        assert con.execute("select * from t").fetchall() == rows
        assert con.database.check() == []

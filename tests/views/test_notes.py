"""States are noted beside their view, so that the next process need not pass over the sources."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.catalog.layout import notes_prefix, successor
from quereus_store.views.deltas.states import Stateful

BACKENDS = ("lmdb", "leveldb")
BODY = (
    "select g, count(*) as c, sum(y) as s, avg(y) as m, min(y) as lo, max(n) as hi, total(n) as t"
    " from t where y is null or y < 1e300 group by g"
)
SCHEMA = f"""
create table t (id integer primary key, g text null, y real null, n integer);
create materialized view v as {BODY};
create materialized view few as select g, sum(n) as s from t group by g having count(*) < 3;
create materialized view whole as select avg(y) as m from t;
"""
BODIES = {
    "v": BODY,
    "few": "select g, sum(n) as s from t group by g having count(*) < 3",
    "whole": "select avg(y) as m from t",
}
ROWS = [(n, "abc"[n % 3], (0.1, 1e17, -0.3, None)[n % 4], n * 2**62) for n in range(60)]


@contextmanager
def no_pass() -> Iterator[None]:
    """Within it, making all states from the sources is an error; a group may be (its minimum has gone)."""
    plain = Stateful._make

    def make(self: Stateful, session: Any, transaction: Any, only: Any = None) -> Any:
        assert only is not None, "the sources were passed over"
        return plain(self, session, transaction, only)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stateful, "_make", make)
        yield


def check(con: Any) -> None:
    con.execute("pragma answer_from_views = false")
    for name, body in BODIES.items():
        stored = con.execute(f"select * from {name}").fetchall()
        assert sorted(map(repr, stored)) == sorted(map(repr, con.execute(body).fetchall())), name


@pytest.fixture(params=BACKENDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = str(tmp_path / "db")
    with quereus_store.connect(path, backend=request.param) as con:
        con.executescript(SCHEMA)
        con.executemany("insert into t values (?, ?, ?, ?)", ROWS)
        con.execute("insert into t values (100, null, 0.7, 1)")
        check(con)
    return path


def test_the_next_process_goes_on(path: str) -> None:
    for number in range(3):
        with no_pass(), quereus_store.connect(path) as con:
            con.execute("insert into t values (?, 'a', 0.25, 5)", (200 + number,))
            con.execute("insert into t values (?, ?, 1e17, 5)", (300 + number, f"new {number}"))
            con.execute("update t set y = y + 0.125, g = 'b' where id = ?", (number,))
            con.execute("begin")
            con.execute("update t set n = 7, g = 'd' where g is null")
            con.execute("savepoint s")
            con.execute("update t set g = 'e' where g = 'd'")
            con.execute("rollback to s")
            con.execute("update t set g = null where g = 'd'")
            con.execute("commit")
            check(con)
    with no_pass(), quereus_store.connect(path) as con:
        con.execute("delete from t where id >= 200")
        check(con)
        assert con.database.check() == []


def test_what_is_rolled_back_is_not_noted(path: str) -> None:
    with no_pass(), quereus_store.connect(path) as con:
        con.execute("begin")
        con.execute("update t set y = 5.0, g = 'a' where id = 1")
        con.execute("rollback")
        con.execute("insert into t values (200, 'a', 0.5, 1)")
        check(con)
    with no_pass(), quereus_store.connect(path) as con:
        con.execute("insert into t values (201, 'b', 0.5, 1)")
        check(con)


def test_a_process_that_dies_has_noted_what_it_committed(path: str) -> None:
    code = (
        "import os, sys, quereus_store; con = quereus_store.connect(sys.argv[1]);"
        "con.execute(\"insert into t values (200, 'a', 0.1, 1)\");"
        "con.execute('begin'); con.execute(\"update t set y = 9.0, g = 'zz'\"); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    with no_pass(), quereus_store.connect(path) as con:
        check(con)
        con.execute("insert into t values (201, 'a', 0.7, 1)")
        check(con)


@pytest.mark.parametrize(
    "change",
    [
        "alter table t alter column n set data type real",
        "alter table t add column z integer default 3",
        "update t set y = y",
        "refresh materialized view v",
        "alter table t rename column y to yy",
    ],
)
def test_notes_that_do_not_count_any_more_are_made_anew(path: str, change: str) -> None:
    with quereus_store.connect(path) as con:
        con.execute(change)
        for name in BODIES:
            con.execute(f"refresh materialized view {name}")
        if "yy" in change:
            con.execute("alter table t rename column yy to y")
        con.execute("update t set y = 0.3 where id = 1")
        check(con)
    with quereus_store.connect(path) as con:
        con.execute("update t set y = 0.7 where id = 2")
        check(con)


def test_changes_before_the_first_use_in_a_transaction(path: str) -> None:
    """What a schema change or another statement did earlier in the transaction is no part of the notes."""
    with quereus_store.connect(path) as con:
        con.execute("begin")
        con.execute("update t set y = 0.9 where id = 1")
        con.execute("create index t_g on t (g)")
        con.execute("update t set y = 0.3 where id = 5")
        con.execute("alter table t add column z integer default 3")
        con.execute("delete from t where id = 9")
        con.execute("commit")
        check(con)
        con.execute("delete from t where id = 10")
        check(con)


@pytest.mark.parametrize("damage", [lambda note: b"", lambda note: note[:-1] + b"x", lambda note: note[:5]])
def test_damaged_notes_are_made_anew(path: str, damage: Any) -> None:
    with quereus_store.connect(path) as con:
        module: Any = con.database.modules["store"]
        writer = module.begin_write(1.0)
        prefix = notes_prefix(con.database.catalog.table("main", "v").storage_id)
        notes = [item for items in writer.kv.scan(prefix, successor(prefix)) for item in items]
        assert len(notes) == 5
        for key, note in notes[1:]:
            writer.kv.put(key, damage(note))
        writer.touch()
        writer.commit()
    with quereus_store.connect(path) as con:
        con.execute("insert into t values (200, 'a', 0.5, 1)")
        con.execute("insert into t values (201, 'b', 0.5, 1)")
        check(con)
        assert con.database.check() == []
    with no_pass(), quereus_store.connect(path) as con:
        con.execute("insert into t values (202, 'c', 0.5, 1)")
        check(con)


def test_notes_go_with_their_view(path: str) -> None:
    with quereus_store.connect(path) as con:
        for name in BODIES:
            con.execute(f"drop materialized view {name}")
        module: Any = con.database.modules["store"]
        reader = module.begin_read()
        assert list(reader.kv.scan(b"\x04", b"\x05")) == []
        reader.rollback()
        assert con.database.check() == []


STEPS = (
    "insert or replace into t values (1, 'a', 0.1, 1), (2, 'b', 1e17, 2), (70, 'k', -0.7, 3)",
    "update t set y = y * 3 where id % 7 = 1",
    "update t set g = 'k' where id < 5",
    "update t set g = null where g = 'a' and id > 20",
    "delete from t where g = 'k'",
    "delete from t where g is null",
    "insert into t select id + 1000, g, y, n from t where id < 4",
    "delete from t where id > 900",
    "update t set y = 1e301 where id = 8",
    "update t set y = null where id in (8, 9, 10)",
    *("begin", "commit", "rollback", "savepoint s", "rollback to s"),
    *(
        "reopen",
        "reopen",
        "create index t_g on t (g)",
        "drop index t_g",
        "alter table t add column z any null",
    ),
    "alter table t drop column z",
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=16))
@pytest.mark.parametrize("backend", BACKENDS)
def test_views_equal_their_bodies_over_any_number_of_reopenings(backend: str, steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "db"))
        con = quereus_store.connect(place, backend=backend, synchronous="off")
        con.executescript(SCHEMA)
        con.executemany("insert into t (id, g, y, n) values (?, ?, ?, ?)", ROWS)
        for step in steps:
            if step == "reopen":
                con.close()
                con = quereus_store.connect(place, backend=backend, synchronous="off")
                continue
            try:
                con.execute(step)
            except quereus_store.Error:
                continue
            check(con)
        con.close()

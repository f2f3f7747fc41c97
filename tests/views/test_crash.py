"""A process that dies in the middle of its work leaves views and sources that agree, and nothing to fill."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.views.programs import Program
from tests.views.test_equality import BODIES, OVER_VIEWS, QUIET, check, statements, steps

ROOT = Path(__file__).parents[2]

WRITER = """
import os, signal, sys
import quereus_store

con = quereus_store.connect(sys.argv[1], backend=sys.argv[2])
con.execute("create table t (id integer primary key, g text, n integer, w real)")
con.execute("create materialized view per_g as"
    " select g, count(*) as c, sum(n) as s, avg(w) as m from t group by g")
con.execute("create materialized view heavy as select id, n from t where n > 10")
con.execute("create materialized view totals as select c, count(*) as groups from per_g group by c")
con.execute("create table u (id integer primary key)")
con.execute("create materialized view everything as select * from u")
con.execute("create materialized view counted as select count(*) as n from everything")
con.execute("insert into u values (1)")
con.execute("alter table u add column x integer default 0")
con.execute("insert into u values (2, 2)")
for i in range(20):
    con.execute("insert into t values (?, ?, ?, ?)", (i, "abc"[i % 3], i, i / 8))
con.execute("begin")
con.execute("delete from t where id < 10")
con.execute("update t set n = n + 100")
os.kill(os.getpid(), signal.SIGKILL)
"""

VIEWS = ("per_g", "heavy", "totals", "everything", "counted")


@contextmanager
def no_body_is_run() -> Iterator[None]:
    """Within it, computing anything for a maintained table is an error."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a body was run")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "rows", refuse)
        yield


def is_stale(con: Any, name: str) -> bool:
    return bool(con.database.catalog.table("main", name).derivation.stale)


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_killed_within_a_transaction(backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    ended = subprocess.run([sys.executable, "-c", WRITER, path, backend], check=False)
    assert ended.returncode != 0
    with no_body_is_run():
        con = quereus_store.connect(path, backend=backend)
        assert con.database.problems == ()
        con.execute("pragma answer_from_views = false")
        found = {name: con.execute(f"select * from {name}").fetchall() for name in VIEWS}
    assert [name for name in VIEWS if is_stale(con, name)] == ["everything", "counted"]
    assert found["everything"] == [(1,)]
    assert found["counted"] == [(1,)]
    assert len(found["heavy"]) == 9
    assert con.database.check() == []
    con.execute("insert into t values (100, 'a', 50, 1.0)")
    assert con.execute("select s from per_g where g = 'a'").fetchone() == (63 + 50,)
    con.execute("insert into u values (3, 3)")
    assert con.execute("select * from everything").fetchall() == [(1,)]
    con.execute("refresh materialized view everything")
    con.execute("refresh materialized view counted")
    assert con.execute("select n from counted").fetchone() == (3,)
    assert con.database.check() == []
    con.close()


# --- any body, any changes, any moment -------------------------------------------------------------------

KILLED = """
import itertools, json, os, signal, sys
import quereus_store
from tests.views.test_equality import prepare, run

path, backend, given = sys.argv[1:]
bodies, over, steps, last, moment = json.loads(given)
con = quereus_store.connect(path, backend=backend)
prepare(con, bodies, over)
for step in steps:
    run(con, step)
run(con, "begin")
run(con, "savepoint now")
run(con, ("update item set n = n + 1 where id = 1", ()))
writer = type(con.session.transaction.writer("store").kv)
writes = itertools.count()

def dying(method):
    def write(*arguments, **options):
        if next(writes) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*arguments, **options)
    return write

for name in ("put", "put_many", "insert_many", "delete_range", "delete", "delete_many", "commit"):
    if hasattr(writer, name):
        setattr(writer, name, dying(getattr(writer, name)))
for step in last:
    run(con, step)
run(con, "commit")
os.kill(os.getpid(), signal.SIGKILL)
"""


@settings(QUIET, max_examples=4)
@given(
    bodies=st.lists(st.sampled_from(BODIES), min_size=1, max_size=4, unique=True),
    over=st.lists(st.sampled_from(OVER_VIEWS[:2]), max_size=1),
    before=steps,
    last=st.lists(statements, min_size=1, max_size=3),
    moment=st.integers(0, 12),
)
@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_killed_anywhere(
    backend: str, bodies: list[str], over: list[str], before: list[Any], last: list[Any], moment: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "db"))
        given = json.dumps([bodies, over, before, last, moment])
        command = [sys.executable, "-c", KILLED, path, backend, given]
        ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True)
        assert ended.returncode == -9, ended.stderr.decode()
        names = {f"v{number}": body for number, body in enumerate([*bodies, *over])}
        with no_body_is_run():
            con = quereus_store.connect(path, backend=backend)
            assert con.database.problems == ()
            con.execute("pragma answer_from_views = false")
            for name in names:
                con.execute(f"select * from {name}").fetchall()
        assert not any(is_stale(con, name) for name in names)
        check(con, names)
        assert con.database.check() == []
        con.execute("update item set n = n + 1, kind = 'b' where id < 3")
        check(con, names)
        con.close()

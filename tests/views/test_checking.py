"""The check compares every maintained table with its body; REFRESH repairs what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.cli.main import main

SCHEMA = """
create table t (id integer primary key, g text, x integer);
insert into t values (1, 'a', 1), (2, 'a', 2), (3, 'b', 3);
create materialized view v as select id, x from t;
create materialized view w as select g, count(*) as c, sum(x) as s from t group by g;
"""


def corrupt(con: Any, name: str, old: list[Any], new: list[Any]) -> None:
    """Write rows of a maintained table past everything that keeps it."""
    engine = con.database.engine
    table = con.database.catalog.table("main", name)
    module = engine.module(table.module)
    writer = module.begin_write(1.0)
    if new:
        engine.table(table).update(writer, old, new)
    else:
        engine.table(table).delete(writer, old)
    writer.commit()


def test_rows_changed_behind_the_back_are_found() -> None:
    con = quereus_store.connect(":memory:")
    con.executescript(SCHEMA)
    assert con.database.check() == []
    corrupt(con, "v", [(1, 1)], [(1, 100)])
    (finding,) = con.database.check()
    assert finding.place == "main.v"
    assert "1 rows of the body are not stored, 1 stored rows" in finding.what
    con.execute("refresh materialized view v")
    assert con.database.check() == []
    con.close()


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_the_command_finds_them_in_a_file(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "db")
    with quereus_store.connect(path, backend=backend) as con:
        con.executescript(SCHEMA)
    assert main(["check", path]) == 0
    with quereus_store.connect(path) as con:
        corrupt(con, "v", [(2, 2)], [(2, -2)])
        corrupt(con, "w", [("a", 2, 3)], [])
    capsys.readouterr()
    assert main(["check", path]) == 1
    told = capsys.readouterr().out
    assert "v: it differs from its body: 1 rows of the body are not stored, 1 stored rows are not" in told
    assert "w: it differs from its body: 1 rows of the body are not stored, 0 stored rows are not" in told
    assert "REFRESH MATERIALIZED VIEW repairs it" in told
    with quereus_store.connect(path) as con:
        con.execute("refresh materialized view v")
        con.execute("refresh materialized view w")
        assert con.execute("select * from w").fetchall() == [("a", 2, 3), ("b", 1, 3)]
        con.execute("insert into t values (4, 'a', 4)")
        assert con.execute("select c, s from w where g = 'a'").fetchall() == [(3, 7)]
    assert main(["check", path]) == 0


def test_a_body_that_cannot_be_planned_is_told(tmp_path: Path) -> None:
    """A function of the program that is not there any more: the rows stay as they are, until a refresh."""
    path = str(tmp_path / "db")

    def register(con: Any) -> None:
        con.database.create_function("twice", 1, lambda x: 2 * x, deterministic=True)

    with quereus_store.connect(path) as con:
        register(con)
        con.execute("create table t (id integer primary key, x integer)")
        con.execute("create materialized view v as select id, twice(x) as y from t")
        con.execute("insert into t values (1, 1)")
    with quereus_store.connect(path) as con:
        (finding,) = con.database.check()
        assert finding.place == "main.v"
        assert "its body cannot be planned" in finding.what
        con.execute("insert into t values (2, 2)")
        register(con)
        assert con.execute("select * from v").fetchall() == [(1, 2)]
        con.execute("refresh materialized view v")
        con.execute("insert into t values (3, 3)")
        assert con.execute("select * from v").fetchall() == [(1, 2), (2, 4), (3, 6)]
        assert con.database.check() == []

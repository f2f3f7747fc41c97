"""The check compares every maintained table with its body; REFRESH repairs what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

import quereus_store


@pytest.mark.parametrize("place", [":memory:", "file"])
def test_rows_changed_behind_the_back_are_found(place: str, tmp_path: Path) -> None:
    con = quereus_store.connect(place if place == ":memory:" else str(tmp_path / "db"))
    con.execute("create table t (id integer primary key, x integer)")
    con.execute("insert into t values (1, 1), (2, 2)")
    con.execute("create materialized view v as select id, x from t")
    assert con.database.check() == []

    engine = con.database.engine
    table = con.database.catalog.table("main", "v")
    assert table is not None
    module = engine.module(table.module)
    writer = module.begin_write(1.0)
    engine.table(table).update(writer, [(1, 1)], [(1, 100)])
    writer.commit()

    (finding,) = con.database.check()
    assert finding.place == "main.v"
    assert "1 rows of the body are not stored, 1 stored rows" in finding.what
    con.execute("refresh materialized view v")
    assert con.database.check() == []
    con.close()

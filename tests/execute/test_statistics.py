"""What ANALYZE finds out, and that a store keeps it."""

from __future__ import annotations

from typing import Any

from quereus_store.execute.statistics import BUCKETS, DISTINCT_KEPT, table_statistics
from quereus_store.schema.objects import TableSchema
from quereus_store.store.module import StoreModule
from tests.execute.database import Database


def analysed(db: Database) -> dict[str, Any]:
    """The record of table ``t``."""
    catalog, snapshot = db.engine.pin()
    table = catalog.table("main", "t")
    assert isinstance(table, TableSchema)
    try:
        return table_statistics(table, db.engine.table(table).scan(snapshot), db.engine.collations)
    finally:
        snapshot.rollback()


def test_figures_of_columns(db: Database) -> None:
    db.run(
        """
        create table t (id integer primary key, word text collate nocase null, doc json null);
        create index by_word on t (word);
        insert into t values (1, 'b', '{"a": 1}'), (2, 'A', null), (3, null, '{"a": 1}'), (4, 'B', '[2]');
        """
    )
    record = analysed(db)
    assert record["rowCount"] == record["analyzedRowCount"] == 4
    words = record["columnStats"]["word"]
    assert (words["distinctCount"], words["nullCount"]) == (2, 1)
    assert (words["minValue"], words["maxValue"].lower()) == ("A", "b")
    assert record["columnStats"]["doc"]["distinctCount"] == 2
    assert record["columnStats"]["id"]["histogram"] == [1, 2, 3, 4]
    assert "histogram" in words
    assert "histogram" not in record["columnStats"]["doc"]


def test_many_distinct_values_are_estimated_in_bounded_memory() -> None:
    db = Database()
    db.run("create table t (id integer primary key, few integer)")
    count = 5 * DISTINCT_KEPT
    db.many("insert into t values (?, ?)", [(number, number % 7) for number in range(count)])
    record = analysed(db)
    ids = record["columnStats"]["id"]
    assert abs(ids["distinctCount"] - count) < count * 0.1
    assert record["columnStats"]["few"]["distinctCount"] == 7
    bounds = ids["histogram"]
    assert len(bounds) == BUCKETS
    assert bounds == sorted(bounds)
    middle = bounds[BUCKETS // 2]
    assert abs(middle - count / 2) < count * 0.1


def test_a_store_keeps_the_record() -> None:
    db = Database("store")
    db.run("create table t (id integer primary key, v text); insert into t values (1, 'x')")
    assert db.rows("analyze t") == [("t", 1)]
    module = db.engine.modules["store"]
    assert isinstance(module, StoreModule)
    table = db.session.catalog.table("main", "t")
    assert table is not None
    record = module.statistics(table)
    assert record is not None
    assert record["columnStats"]["v"]["maxValue"] == "x"

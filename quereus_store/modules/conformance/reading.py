"""Checks of reading: points, ranges, walks, orders, probes of any class."""

from __future__ import annotations

import math
from typing import Any

from quereus_store.modules.conformance.harness import Harness
from quereus_store.modules.contract import AccessKind, AccessPath

MANY = 5000


def points(kit: Harness) -> None:
    """A key finds its row or nothing; many keys are answered by position, in any order."""
    schema = kit.create(
        "create table t (id integer not null primary key, v text)",
        rows=[(number * 2, f"v{number}") for number in range(MANY)],
    )
    table = kit.module.table(schema)
    with kit.reading() as snapshot:
        assert table.count(snapshot) == MANY
        assert table.point(snapshot, (4000,)) == (4000, "v2000")
        assert table.point(snapshot, (4001,)) is None
        assert table.points(snapshot, [(8,), (7,), (0,), (8,)]) == [(8, "v4"), None, (0, "v0"), (8, "v4")]
        assert table.points(snapshot, []) == []
        mixed: list[tuple[Any, ...]] = [(number,) for number in range(300, 0, -1)]
        mixed += 3 * [(None,), ("x",), (b"x",), (2.0,), (2.5,), (math.inf,), (-math.inf,), (10**40,)]
        found = table.points(snapshot, mixed)
        assert found[:3] == [(300, "v150"), None, (298, "v149")]
        assert found[300:] == 3 * [None, None, None, (2, "v1"), None, None, None, None]
    pairs = kit.create(
        "create table p (a integer not null, b text not null, primary key (a desc, b desc))",
        rows=[(number, f"b{number}") for number in range(100)],
    )
    with kit.reading() as snapshot:
        mixed = [(number, f"b{number}") for number in range(100)]
        mixed += 3 * [(None, "b1"), (1, None), (None, None), ("b1", 1), (2.0, "b2"), (math.inf, "b2")]
        found = kit.module.table(pairs).points(snapshot, mixed)
        assert found == [*mixed[:100], *3 * [None, None, None, None, (2, "b2"), None]]


def scans(kit: Harness) -> None:
    """Rows come in key order however they were written, and backwards."""
    rows = [(number * 7919 % MANY, number) for number in range(MANY)]
    schema = kit.create("create table t (id integer not null primary key, v integer)", rows=rows)
    assert kit.rows(schema) == sorted(rows)
    assert kit.rows(schema, reverse=True) == sorted(rows, reverse=True)
    empty = kit.create("create table e (id integer primary key)")
    assert kit.rows(empty) == []
    assert kit.seek(empty, None, low=(">", 3)) == []


def key_ranges(kit: Harness) -> None:
    """Bounds of the primary key, inclusive and exclusive, in both directions, crossed and empty."""
    rows = [(number,) for number in range(0, 2 * MANY, 2)]
    schema = kit.create("create table t (id integer not null primary key)", rows=rows)
    assert kit.seek(schema, None, low=(">=", 10), high=("<=", 16)) == [(10,), (12,), (14,), (16,)]
    assert kit.seek(schema, None, low=(">", 10), high=("<", 16)) == [(12,), (14,)]
    assert kit.seek(schema, None, low=(">", 9), high=("<", 13), reverse=True) == [(12,), (10,)]
    assert kit.seek(schema, None, low=(">=", 9990)) == rows[-5:]
    assert kit.seek(schema, None, high=("<", 6)) == rows[:3]
    assert kit.seek(schema, None, low=(">", 16), high=("<", 10)) == []
    assert kit.seek(schema, None, low=(">", 10**40)) == []
    assert kit.seek(schema, None, low=(">=", 1000), high=("<", 9000)) == rows[500:4500]
    assert kit.seek(schema, None, low=(">=", 1000), high=("<", 9000), reverse=True) == rows[4499:499:-1]


def composite_keys(kit: Harness) -> None:
    """A prefix of the key, with and without bounds on the next part, also a descending one."""
    rows = [(a, b, f"{a}{b}") for a in range(20) for b in range(50)]
    schema = kit.create(
        "create table t (a integer not null, b integer not null, v text, primary key (a, b desc))", rows=rows
    )
    assert kit.rows(schema) == sorted(rows, key=lambda row: (row[0], -row[1]))
    assert kit.seek(schema, None, 7) == [(7, b, f"7{b}") for b in range(49, -1, -1)]
    assert kit.seek(schema, None, 7, low=(">", 46)) == [(7, b, f"7{b}") for b in (49, 48, 47)]
    assert kit.seek(schema, None, 7, high=("<=", 2)) == [(7, b, f"7{b}") for b in (2, 1, 0)]
    found = kit.seek(schema, None, 7, low=(">=", 1), high=("<", 4), reverse=True)
    assert found == [(7, b, f"7{b}") for b in (1, 2, 3)]
    assert kit.seek(schema, None, low=(">=", 19))[0] == (19, 49, "1949")
    assert kit.seek(schema, None, 99) == []
    table = kit.module.table(schema)
    with kit.reading() as snapshot:
        assert table.point(snapshot, (3, 4)) == (3, 4, "34")
        path = AccessPath(AccessKind.RANGES, None, 1)
        groups = table.ranges(snapshot, path, [(5,), (77,), (2,), (5,)])
        assert [len(group) for group in groups] == [50, 0, 50, 50]
        assert groups[2] == kit.seek(schema, None, 2)


def nulls_in_keys(kit: Harness) -> None:
    """NULL is a key's smallest value, last in a descending part; a bounded range leaves it out."""
    rows = [(None, 1), (1, 2), (2, None), (None, None), (3, 3)]
    schema = kit.create(
        "create table t (a integer, b integer, primary key (a, b))", "create index d on t (b desc)", rows=rows
    )
    assert kit.rows(schema) == [(None, None), (None, 1), (1, 2), (2, None), (3, 3)]
    assert kit.seek(schema, None, None) == [(None, None), (None, 1)]
    assert kit.seek(schema, None, high=("<", 3)) == [(1, 2), (2, None)]
    assert kit.seek(schema, None, None, high=("<=", 5)) == [(None, 1)]
    assert kit.seek(schema, "d") == [(3, 3), (1, 2), (None, 1), (None, None), (2, None)]
    assert kit.seek(schema, "d", reverse=True)[0] == (2, None)
    assert kit.seek(schema, "d", high=("<", 3)) == [(1, 2), (None, 1)]
    assert kit.seek(schema, "d", low=(">", 1)) == [(3, 3), (1, 2)]
    with kit.reading() as snapshot:
        assert kit.module.table(schema).point(snapshot, (2, None)) == (2, None)


def no_key_parts(kit: Harness) -> None:
    """``primary key ()`` holds one row, which the empty key finds."""
    schema = kit.create("create table t (a integer, primary key ())", rows=[(5,)])
    with kit.reading() as snapshot:
        assert kit.module.table(schema).point(snapshot, ()) == (5,)
    assert kit.rows(schema) == [(5,)]


def index_reading(kit: Harness) -> None:
    """An index gives whole rows, equal ones in primary-key order."""
    rows = [(number, number % 10, f"w{number % 3}") for number in range(MANY)]
    schema = kit.create(
        "create table t (id integer not null primary key, a integer, b text)",
        "create index by_a on t (a)",
        "create index by_ba on t (b, a desc)",
        rows=rows,
    )
    assert kit.seek(schema, "by_a", 4) == [row for row in rows if row[1] == 4]
    assert kit.seek(schema, "by_a", 4, reverse=True) == [row for row in rows[::-1] if row[1] == 4]
    assert kit.seek(schema, "by_a") == sorted(rows, key=lambda row: row[1])
    expected = sorted(rows, key=lambda row: (row[2], -row[1]))
    assert kit.seek(schema, "by_ba") == expected
    expected = [row for row in expected if row[2] == "w1" and 3 <= row[1] < 6]
    assert kit.seek(schema, "by_ba", "w1", low=(">=", 3), high=("<", 6)) == expected
    with kit.reading() as snapshot:
        path = AccessPath(AccessKind.RANGES, "by_a", 1)
        groups = kit.module.table(schema).ranges(snapshot, path, [(9,), (10,), (0,)])
    assert groups == [kit.seek(schema, "by_a", 9), [], kit.seek(schema, "by_a", 0)]


def collations(kit: Harness) -> None:
    """Keys compare text as their part says, whatever the column says."""
    schema = kit.create(
        "create table t (n text collate nocase not null primary key, m text)",
        "create index binary_m on t (m)",
        "create index nocase_m on t (m collate nocase)",
        rows=[("b", "x"), ("A", "X"), ("C", "Y"), ("d ", "a")],
    )
    assert [row[0] for row in kit.rows(schema)] == ["A", "b", "C", "d "]
    with kit.reading() as snapshot:
        assert kit.module.table(schema).point(snapshot, ("B",)) == ("b", "x")
    assert [row[1] for row in kit.seek(schema, "binary_m")] == ["X", "Y", "a", "x"]
    assert [row[1] for row in kit.seek(schema, "nocase_m")] == ["a", "X", "x", "Y"]
    assert kit.seek(schema, "nocase_m", "x") == [("A", "X"), ("b", "x")]
    assert kit.seek(schema, "nocase_m", low=(">", "X")) == [("C", "Y")]


def semantic_types(kit: Harness) -> None:
    """JSON and TIMESPAN compare by meaning, ANY by storage class."""
    schema = kit.create("create table s (d timespan not null primary key)", rows=[("PT90M",), ("PT1H",)])
    assert kit.rows(schema) == [("PT1H",), ("PT90M",)]
    with kit.reading() as snapshot:
        assert kit.module.table(schema).point(snapshot, ("PT60M",)) == ("PT1H",)
    documents: list[object] = [{"a": 1}, [2], "x", 7, True]
    schema = kit.create("create table j (d json not null primary key)", rows=[(d,) for d in documents])
    assert [row[0] for row in kit.rows(schema)] == [True, 7, "x", [2], {"a": 1}]
    with kit.reading() as snapshot:
        assert kit.module.table(schema).point(snapshot, ({"a": 1.0},)) == ({"a": 1},)
    values: list[object] = [b"1", "1", 1.5, 1, None]
    schema = kit.create("create table a (v any primary key)", rows=[(v,) for v in values])
    assert [row[0] for row in kit.rows(schema)] == [None, 1, 1.5, "1", b"1"]


def foreign_probes(kit: Harness) -> None:
    """A probe of another class finds nothing, but stands somewhere in the order of values."""
    rows = [(1, "a"), (2, "b"), (3, "c")]
    schema = kit.create(
        "create table t (id integer not null primary key, v text not null)",
        "create index by_v on t (v desc)",
        rows=rows,
    )
    table = kit.module.table(schema)
    with kit.reading() as snapshot:
        probes: list[object] = [1.0, True, 1.5, "1", b"1", [1], math.nan, None]
        found = [table.point(snapshot, (probe,)) for probe in probes]
    assert found == [rows[0], rows[0], None, None, None, None, None, None]
    assert kit.seek(schema, None, low=(">", 1.5)) == rows[1:]
    assert kit.seek(schema, None, low=(">", "0")) == []
    assert kit.seek(schema, None, high=("<", "0")) == rows
    assert kit.seek(schema, None, high=("<", math.inf)) == rows
    assert kit.seek(schema, "by_v", 5) == []
    assert kit.seek(schema, "by_v", low=(">", 5)) == rows[::-1]
    assert kit.seek(schema, "by_v", high=("<", b"")) == rows[::-1]


def partial_and_expression_indexes(kit: Harness) -> None:
    """A partial index holds the rows of its predicate; an expression is a part like any other."""
    rows = [(number, number % 4 or None, f"Name{number}") for number in range(40)]
    schema = kit.create(
        "create table t (id integer not null primary key, a integer, n text)",
        "create index some on t (n) where a > 1",
        "create index lowered on t (lower(n), a)",
        rows=rows,
    )
    held = [row for row in rows if row[1] in (2, 3)]
    assert kit.seek(schema, "some") == sorted(held, key=lambda row: row[2])
    assert kit.seek(schema, "lowered", "name17") == [rows[17]]
    assert kit.seek(schema, "lowered", low=(">=", "name8")) == [rows[8], rows[9]]


CHECKS = (
    points,
    scans,
    key_ranges,
    composite_keys,
    nulls_in_keys,
    no_key_parts,
    index_reading,
    collations,
    semantic_types,
    foreign_probes,
    partial_and_expression_indexes,
)

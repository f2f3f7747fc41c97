"""Checks of writing: uniqueness, all or nothing, indexes that follow their rows."""

from __future__ import annotations

from quereus_store.modules.conformance.harness import Harness, violates
from quereus_store.modules.contract import Conflict

MANY = 3000


def duplicate_keys(kit: Harness) -> None:
    """The first row in the way is named, and nothing of the batch stays: for few rows and for many."""
    schema = kit.create("create table t (id integer not null primary key, v text)", rows=[(5, "old")])
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        with violates(None, (5, "new"), (5, "old")):
            table.insert(transaction, [(5, "new")])
        with violates(None, (5, "b"), (5, "old")):
            table.insert(transaction, [(9, "a"), (5, "b"), (9, "c")])
        with violates(None, (9, "c"), (9, "a")):
            table.insert(transaction, [(9, "a"), (9, "c"), (5, "b")])
        many = [(number, "x") for number in range(10, MANY)]
        with violates(None, (MANY - 1, "y"), (MANY - 1, "x")):
            table.insert(transaction, [*many, (MANY - 1, "y"), (5, "z")])
        assert kit.rows(schema, transaction) == [(5, "old")]
        assert table.count(transaction) == 1
        table.insert(transaction, [])
        table.insert(transaction, many[::-1])
    assert kit.rows(schema) == [(5, "old"), *many]


def unique_constraints(kit: Harness) -> None:
    """UNIQUE names its constraint, lets NULLs repeat, and compares as its index does."""
    schema = kit.create(
        "create table t (id integer primary key, a integer, b text collate nocase, unique (a, b))",
        "create unique index by_b on t (b collate binary)",
        rows=[(1, 1, "x"), (2, None, "y"), (3, 1, None), (4, 1, None)],
    )
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        with violates("_uc_a_b", (9, 1, "X"), (1, 1, "x")):
            table.insert(transaction, [(9, 1, "X")])
        with violates("by_b", (9, 2, "x"), (1, 1, "x")):
            table.insert(transaction, [(8, 8, "q"), (9, 2, "x")])
        with violates("by_b", (MANY, 0, "y"), (2, None, "y")):
            table.insert(
                transaction, [*((number, number, None) for number in range(10, MANY)), (MANY, 0, "y")]
            )
        with violates("_uc_a_b", (31, 7, "K"), (30, 7, "k")):
            table.insert(transaction, [*((n, n, f"{n}") for n in range(40, 90)), (30, 7, "k"), (31, 7, "K")])
        assert table.count(transaction) == 4
        table.insert(transaction, [(5, None, "Y"), (6, 1, None), (7, 2, "X")])
        with violates("by_b", (6, 3, "Y"), (5, None, "Y")):
            table.update(transaction, [(6, 1, None)], [(6, 3, "Y")])


def partial_unique(kit: Harness) -> None:
    """A partial UNIQUE checks a row when it is, or comes, within the predicate."""
    schema = kit.create(
        "create table t (id integer primary key, a integer, live integer)",
        "create unique index u on t (a) where live = 1",
        rows=[(1, 5, 1), (2, 5, 0), (3, 5, None)],
    )
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        with violates("u", (2, 5, 1), (1, 5, 1)):
            table.update(transaction, [(2, 5, 0)], [(2, 5, 1)])
        table.update(transaction, [(1, 5, 1)], [(1, 5, 0)])
        table.update(transaction, [(2, 5, 0)], [(2, 5, 1)])
    assert kit.seek(schema, "u", 5) == [(2, 5, 1)]


def predicates_of_any_type(kit: Harness) -> None:
    """A predicate is true as WHERE has it: text that is no number, and zero, are not."""
    schema = kit.create(
        "create table t (id integer primary key, flag any, a integer)",
        "create unique index u on t (a) where flag",
        rows=[(1, "abc", 5), (2, "0", 5), (3, 0, 5), (4, None, 5), (5, "1", 6), (6, 2.5, 7)],
    )
    assert [row[0] for row in kit.seek(schema, "u")] == [5, 6]
    table = kit.module.table(schema)
    with kit.writing() as transaction, violates("u", (7, True, 6), (5, "1", 6)):
        table.insert(transaction, [(7, True, 6)])


def conflicts(kit: Harness) -> None:
    """All rows in a new row's way are told, primary key first, the replaced one left out."""
    schema = kit.create(
        "create table t (id integer primary key, a integer unique, b integer unique)",
        rows=[(1, 10, 100), (2, 20, 200), (3, None, 300)],
    )
    table = kit.module.table(schema)
    first, second = schema.unique_constraints
    with kit.reading() as snapshot:
        found = table.conflicts(snapshot, (1, 20, 300))
        assert found == [
            Conflict(None, (1, 10, 100)),
            Conflict(first, (2, 20, 200)),
            Conflict(second, (3, None, 300)),
        ]
        assert table.conflicts(snapshot, (1, 10, 150), replacing=(1, 10, 100)) == []
        assert table.conflicts(snapshot, (4, None, 400)) == []
        assert table.conflicts(snapshot, (4, 10, 1), replacing=(2, 20, 200)) == [
            Conflict(first, (1, 10, 100))
        ]


def updates(kit: Harness) -> None:
    """Updates move rows in the key and in every index, one row or thousands."""
    rows = [(number, number % 7, f"n{number}") for number in range(MANY)]
    schema = kit.create(
        "create table t (id integer primary key, a integer, n text)",
        "create index by_a on t (a)",
        "create index by_n on t (n) where a > 3",
        rows=rows,
    )
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        table.update(transaction, [rows[4]], [(-4, 9, "moved")])
        changed = [(-4, 9, "moved"), *rows[:4], *rows[5:]]
        assert kit.rows(schema, transaction) == changed
        assert kit.seek(schema, "by_a", 9, transaction=transaction) == [(-4, 9, "moved")]
        new = [(key + MANY * 2, a + 1, n) for key, a, n in changed]
        table.update(transaction, changed, new)
    assert kit.rows(schema) == sorted(new)
    assert kit.seek(schema, "by_a") == sorted(new, key=lambda row: (row[1], row[0]))
    held = [row for row in new if row[1] > 3]
    assert kit.seek(schema, "by_n") == sorted(held, key=lambda row: (row[2], row[0]))


def updates_in_order(kit: Harness) -> None:
    """Rows are checked one after the other: a key is free once the row before has left it."""
    schema = kit.create("create table t (id integer primary key)", rows=[(n,) for n in range(1, 30)])
    table = kit.module.table(schema)
    old = [(n,) for n in range(1, 30)]
    with kit.writing() as transaction:
        with violates(None, (2,), (2,)):
            table.update(transaction, old, [(n + 1,) for (n,) in old])
        assert kit.rows(schema, transaction) == old
        table.update(transaction, old[::-1], [(n + 1,) for (n,) in old[::-1]])
    assert kit.rows(schema) == [(n + 1,) for (n,) in old]


def spelling_of_keys(kit: Harness) -> None:
    """A key that changes only its spelling is the same key."""
    schema = kit.create(
        "create table t (k text collate nocase primary key, v integer unique)", rows=[("fig", 1)]
    )
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        table.update(transaction, [("fig", 1)], [("FIG", 1)])
        with violates(None, ("Fig", 2), ("FIG", 1)):
            table.insert(transaction, [("Fig", 2)])
    assert kit.rows(schema) == [("FIG", 1)]


def deletes(kit: Harness) -> None:
    """Deleted rows leave the table and its indexes; their keys are free again."""
    rows = [(number, number % 5) for number in range(MANY)]
    schema = kit.create(
        "create table t (id integer primary key, a integer)", "create index by_a on t (a)", rows=rows
    )
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        table.delete(transaction, [rows[10]])
        table.delete(transaction, [row for row in rows[::-1] if row[1] == 2])
        table.insert(transaction, [(10, 2)])
        kept = [row for row in rows if row[1] != 2 and row != rows[10]] + [(10, 2)]
        assert kit.rows(schema, transaction) == sorted(kept)
        assert kit.seek(schema, "by_a", 2, transaction=transaction) == [(10, 2)]
        assert table.count(transaction) == len(kept)
        table.delete(transaction, sorted(kept))
        assert kit.rows(schema, transaction) == []
    assert kit.rows(schema) == []


def scans_are_snapshots(kit: Harness) -> None:
    """A scan gives what was there when it began; batches handed out never change."""
    rows = [(number, 0) for number in range(MANY)]
    schema = kit.create("create table t (id integer primary key, v integer)", rows=rows)
    table = kit.module.table(schema)
    with kit.writing() as transaction:
        batches = table.scan(transaction)
        first = next(batches)
        copy = list(first)
        table.update(transaction, rows, [(key, 1) for key, _ in rows])
        table.delete(transaction, [(1, 1)])
        table.insert(transaction, [(-1, 2)])
        assert first == copy
        assert [row for batch in batches for row in batch] == rows[len(first) :]
        assert kit.rows(schema, transaction)[:2] == [(-1, 2), (0, 1)]


def dense_and_sparse(kit: Harness) -> None:
    """Batches that hit few rows of many places, and many rows of one."""
    schema = kit.create(
        "create table t (id integer primary key, a integer)",
        "create index by_a on t (a desc)",
        rows=[(number * 10, number) for number in range(MANY)],
    )
    table = kit.module.table(schema)
    expected = {number * 10: number for number in range(MANY)}
    with kit.writing() as transaction:
        for step, start, count in ((700, 3, 40), (1, 11_001, 8), (3000, 5, 9), (1, 100_000, 2000)):
            batch = [(start + step * n, n) for n in range(count) if (start + step * n) % 10]
            expected.update(batch)
            table.insert(transaction, batch)
        gone = [(key, expected.pop(key)) for key in sorted(expected)[::37]]
        table.delete(transaction, gone)
        assert dict(kit.rows(schema, transaction)) == expected
    assert kit.rows(schema) == sorted(expected.items())
    assert kit.seek(schema, "by_a") == sorted(expected.items(), key=lambda row: (-row[1], row[0]))


CHECKS = (
    duplicate_keys,
    unique_constraints,
    partial_unique,
    predicates_of_any_type,
    conflicts,
    updates,
    updates_in_order,
    spelling_of_keys,
    deletes,
    scans_are_snapshots,
    dense_and_sparse,
)

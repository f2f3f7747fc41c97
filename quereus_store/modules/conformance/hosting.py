"""Checks of backing hosts: what maintained tables lean on (see :class:`BackingHost`)."""

from __future__ import annotations

from quereus_store.modules.conformance.harness import Harness, violates
from quereus_store.modules.contract import AccessKind, AccessPath, BackingHost, Row, Table
from quereus_store.schema.objects import TableSchema

MANY = 2500
DERIVED = "create table d (day integer, kind text, n integer null, primary key (day, kind desc))"
BY_NUMBER = "create index by_n on d (n)"
FEW: tuple[Row, ...] = ((1, "b", 10), (1, "a", 11), (2, "c", None), (3, "a", 13))
"""Rows in key order: the second part of the key descends."""


def host_of(kit: Harness, schema: TableSchema) -> Table:
    """The handle for derived rows."""
    module = kit.module
    assert isinstance(module, BackingHost), f"module '{module.name}' has no get_backing_host"
    return module.get_backing_host(schema)


def derived_batches(kit: Harness) -> None:
    """Deletes, updates and inserts of one statement are seen by their writer, by others once committed."""
    schema = kit.create(DERIVED, BY_NUMBER, rows=FEW)
    host = host_of(kit, schema)
    with kit.reading() as before, kit.writing() as writer:
        host.delete(writer, [FEW[0]])
        host.update(writer, [FEW[1], FEW[2]], [(1, "a", 21), (2, "c", 22)])
        host.insert(writer, [(0, "z", 23), (2, "b", 24)])
        expected = [(0, "z", 23), (1, "a", 21), (2, "c", 22), (2, "b", 24), (3, "a", 13)]
        assert kit.rows(schema, writer) == expected
        assert host.points(writer, [(2, "b"), (1, "b"), (1, "a")]) == [(2, "b", 24), None, (1, "a", 21)]
        assert kit.seek(schema, "by_n", 22, transaction=writer) == [(2, "c", 22)]
        assert host.count(writer) == len(expected)
        assert kit.rows(schema, before) == list(FEW)
    assert kit.rows(schema) == expected


def derived_groups(kit: Harness) -> None:
    """The rows that begin with some key values, for many such beginnings at once, in key order."""
    rows = [(number // 5, "edcba"[number % 5], number) for number in range(MANY)]
    schema = kit.create(DERIVED, rows=rows)
    path = AccessPath(AccessKind.RANGES, None, 1)
    with kit.writing() as writer:
        host = host_of(kit, schema)
        host.update(writer, [rows[36]], [(*rows[36][:2], -1)])
        host.delete(writer, rows[50:55])
        host.insert(writer, [(7, "f", -2)])
        found = host.ranges(writer, path, [(7,), (10,), (499,), (900,)])
        assert [row[1:] for row in found[0]] == [
            ("f", -2),
            ("e", 35),
            ("d", -1),
            ("c", 37),
            ("b", 38),
            ("a", 39),
        ]
        assert [len(group) for group in found] == [6, 0, 5, 0]


def derived_swaps(kit: Harness) -> None:
    """Rows may take each other's unique values where the first are deleted before the others come."""
    schema = kit.create(DERIVED, "create unique index one_n on d (n)", rows=FEW)
    host = host_of(kit, schema)
    with kit.writing() as writer:
        host.delete(writer, [FEW[0], FEW[1]])
        host.insert(writer, [(1, "b", 11), (1, "a", 10)])
        refused, there = (9, "z", 13), FEW[3]
        with violates("one_n", refused, there):
            host.insert(writer, [(8, "y", 99), refused])
        with violates(None, (3, "a", 0), there):
            host.insert(writer, [(3, "a", 0)])
    assert kit.rows(schema) == [(1, "b", 11), (1, "a", 10), *FEW[2:]]


def derived_savepoints(kit: Harness) -> None:
    """Derived rows go back with the savepoint of the statement that they follow, and with its transaction."""
    source = kit.create("create table s (id integer primary key)")
    schema = kit.create(DERIVED, BY_NUMBER, rows=FEW)
    host, table = host_of(kit, schema), kit.module.table(source)
    writer = kit.module.begin_write(0.0)
    table.insert(writer, [(1,)])
    host.insert(writer, [(5, "a", 50)])
    mark = writer.savepoint()
    table.insert(writer, [(2,)])
    host.update(writer, [FEW[0]], [(1, "b", 99)])
    host.delete(writer, [FEW[3], (5, "a", 50)])
    writer.rollback_to(mark)
    assert kit.rows(source, writer) == [(1,)]
    assert kit.rows(schema, writer) == [*FEW, (5, "a", 50)]
    assert kit.seek(schema, "by_n", 99, transaction=writer) == []
    writer.rollback()
    assert (kit.rows(source), kit.rows(schema)) == ([], list(FEW))


def derived_contents(kit: Harness) -> None:
    """All rows may be replaced in one transaction; readers see the old ones or the new ones."""
    schema = kit.create(DERIVED, rows=[(number, "a", 0) for number in range(MANY)])
    host = host_of(kit, schema)
    old, new = kit.rows(schema), [(number, "b", 1) for number in range(MANY, 2 * MANY)]
    writer = kit.module.begin_write(0.0)
    host.delete(writer, old)
    host.insert(writer, new)
    assert kit.rows(schema) == old
    with kit.reading() as snapshot:
        writer.commit()
        assert kit.rows(schema, snapshot) == old
    assert kit.rows(schema) == new


def derived_incarnations(kit: Harness) -> None:
    """A table that is made after one of the same name was dropped has none of its rows, nor gets any."""
    schema = kit.create(DERIVED, rows=FEW)
    host = host_of(kit, schema)
    with kit.writing() as writer:
        kit.module.drop_table(writer, schema)
    again = kit.create(DERIVED)
    assert kit.rows(again) == []
    writer = kit.module.begin_write(0.0)
    try:
        host.insert(writer, [(7, "x", 0)])
    except Exception:
        writer.rollback()
    else:
        writer.commit()
    assert kit.rows(again) == [], "the handle of the table that was dropped writes into the new one"


CHECKS = (
    derived_batches,
    derived_groups,
    derived_swaps,
    derived_savepoints,
    derived_contents,
    derived_incarnations,
)

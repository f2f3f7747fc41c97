"""Checks of transactions: isolation, savepoints, one writer, schema changes that roll back."""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import StatusCode
from quereus_store.modules.conformance.harness import Harness, fails, table_of, violates
from quereus_store.modules.contract import Batch, DdlTransactionality
from quereus_store.modules.rewriting import index_host, rewrite_table

MANY = 2500
PLAIN = "create table t (id integer primary key, v integer)"


def isolation(kit: Harness) -> None:
    """A snapshot stays as it was; a writer sees its own rows, others see them after commit."""
    rows = [(number, 0) for number in range(MANY)]
    schema = kit.create(PLAIN, rows=rows)
    table = kit.module.table(schema)
    before = kit.module.begin_read()
    writer = kit.module.begin_write(0.0)
    assert (before.writable, writer.writable) == (False, True)
    table.delete(writer, rows[:10])
    table.update(writer, rows[20:40], [(key, 1) for key, _ in rows[20:40]])
    during = kit.module.begin_read()
    assert kit.rows(schema, during) == kit.rows(schema, before) == rows
    assert table.point(writer, (30,)) == (30, 1)
    writer.commit()
    assert kit.rows(schema, before) == rows
    assert table.point(during, (30,)) == (30, 0)
    assert kit.rows(schema)[0] == (10, 0)
    for snapshot in (before, during):
        snapshot.rollback()
        snapshot.rollback()


def rollback(kit: Harness) -> None:
    """A rolled-back writer leaves nothing, and lets the next one in."""
    schema = kit.create(PLAIN, "create index by_v on t (v)", rows=[(1, 1)])
    table = kit.module.table(schema)
    writer = kit.module.begin_write(0.0)
    table.insert(writer, [(number, number) for number in range(2, MANY)])
    table.delete(writer, [(1, 1)])
    writer.rollback()
    assert kit.rows(schema) == [(1, 1)]
    assert kit.seek(schema, "by_v") == [(1, 1)]
    kit.insert(schema, (2, 2))
    assert kit.rows(schema) == [(1, 1), (2, 2)]


def savepoints(kit: Harness) -> None:
    """Rolling back to a savepoint undoes what came after it, again and again; releasing keeps it."""
    rows = [(number, number % 3) for number in range(MANY)]
    schema = kit.create(PLAIN, "create index by_v on t (v)", rows=rows)
    table = kit.module.table(schema)
    with kit.writing() as writer:
        outer = writer.savepoint()
        table.insert(writer, [(-1, 7)])
        inner = writer.savepoint()
        table.delete(writer, rows[::2])
        table.update(writer, [(-1, 7)], [(-2, 8)])
        table.update(writer, rows[1::2], [(key + MANY, 9) for key, _ in rows[1::2]])
        writer.rollback_to(inner)
        assert kit.rows(schema, writer) == [(-1, 7), *rows]
        assert kit.seek(schema, "by_v", 7, transaction=writer) == [(-1, 7)]
        table.insert(writer, [(MANY, 1)])
        writer.rollback_to(inner)
        table.insert(writer, [(MANY, 2)])
        writer.release(inner)
        assert kit.rows(schema, writer) == [(-1, 7), *rows, (MANY, 2)]
        writer.rollback_to(outer)
        assert kit.rows(schema, writer) == rows
        table.insert(writer, [(-3, 3)])
        writer.release(outer)
    assert kit.rows(schema) == [(-3, 3), *rows]
    assert kit.seek(schema, "by_v") == sorted([(-3, 3), *rows], key=lambda row: (row[1], row[0]))


def one_writer(kit: Harness) -> None:
    """A second writer gets BUSY, and so does one whose snapshot is no longer the last state."""
    schema = kit.create(PLAIN)
    stale, current = kit.module.begin_read(), None
    writer = kit.module.begin_write(0.0, snapshot=stale)
    with fails(StatusCode.BUSY):
        kit.module.begin_write(0.0)
    kit.module.table(schema).insert(writer, [(1, 1)])
    writer.commit()
    with fails(StatusCode.BUSY):
        kit.module.begin_write(0.0, snapshot=stale)
    current = kit.module.begin_read()
    kit.module.begin_write(0.0, snapshot=current).rollback()
    # A writer that changed nothing makes no snapshot stale.
    kit.module.begin_write(0.0, snapshot=current).commit()
    kit.module.begin_write(0.0, snapshot=current).rollback()
    stale.rollback()
    current.rollback()


def finished_transactions(kit: Harness) -> None:
    """A finished writer refuses further use."""
    schema = kit.create(PLAIN)
    table = kit.module.table(schema)
    writer = kit.module.begin_write(0.0)
    writer.commit()
    with fails(StatusCode.MISUSE):
        table.insert(writer, [(1, 1)])
    with fails(StatusCode.MISUSE):
        writer.commit()
    with kit.reading() as snapshot, fails(StatusCode.MISUSE):
        table.insert(snapshot, [(1, 1)])


def index_building(kit: Harness) -> None:
    """An index is built from what the writer sees; a unique one may be refused, and then is not there."""
    rows = [(number, number % 50) for number in range(MANY)]
    schema = kit.create(PLAIN, rows=rows)
    with kit.writing() as writer:
        kit.module.table(schema).insert(writer, [(-1, 3)])
        with violates("u", (50, 0), (0, 0)):
            kit.create_index(schema, "create unique index u on t (v)", writer)
        indexed = kit.create_index(schema, "create index i on t (v desc)", writer)
        kit.module.table(indexed).insert(writer, [(-2, 3)])
    expected = sorted([(-2, 3), (-1, 3), *rows], key=lambda row: (-row[1], row[0]))
    assert kit.seek(indexed, "i") == expected
    index = indexed.index("i")
    assert index is not None
    with kit.writing() as writer:
        index_host(kit.module, indexed).drop_index(writer, indexed, index)
    kit.insert(schema, (-3, 3))
    assert kit.rows(schema)[0] == (-3, 3)


def rewriting(kit: Harness) -> None:
    """A table is carried over to other columns and another key; colliding keys are refused."""
    rows = [(number, MANY - number) for number in range(MANY)]
    schema = kit.create(PLAIN, "create index by_v on t (v)", rows=rows)
    wider = table_of(
        "create table t (id integer, v integer not null primary key, w text)", "create index by_v on t (v)"
    )
    new = replace(schema, columns=wider.columns, primary_key=wider.primary_key)

    def widen(batch: Batch) -> Batch:
        return [(*row, "w") for row in batch]

    def flatten(batch: Batch) -> Batch:
        return [(row[0], 7, "w") for row in batch]

    writer = kit.module.begin_write(0.0)
    mark = writer.savepoint()
    with violates(None, (1, 7, "w"), (0, 7, "w")):
        rewrite_table(kit.module, writer, schema, new, flatten)
    assert kit.rows(schema, writer) == rows
    written = rewrite_table(kit.module, writer, schema, new, widen)
    assert kit.rows(written, writer) == [(key, v, "w") for key, v in rows[::-1]]
    if kit.module.ddl_transactionality is DdlTransactionality.TRANSACTIONAL:
        writer.rollback_to(mark)
        assert kit.rows(schema, writer) == rows
        assert kit.seek(schema, "by_v", 5, transaction=writer) == [(MANY - 5, 5)]
        written = rewrite_table(kit.module, writer, schema, new, widen)
    writer.commit()
    assert kit.seek(written, None, 3) == [(MANY - 3, 3, "w")]
    assert kit.seek(written, "by_v", 5) == [(MANY - 5, 5, "w")]


def schema_changes_roll_back(kit: Harness) -> None:
    """CREATE, DROP and CREATE INDEX are undone by a rollback, also to a savepoint."""
    if kit.module.ddl_transactionality is not DdlTransactionality.TRANSACTIONAL:
        return
    rows = [(number, number) for number in range(MANY)]
    schema = kit.create(PLAIN, "create index by_v on t (v)", rows=rows)
    index = schema.index("by_v")
    assert index is not None
    with kit.writing() as writer:
        mark = writer.savepoint()
        index_host(kit.module, schema).drop_index(writer, schema, index)
        bare = replace(schema, indexes=())
        kit.module.table(bare).delete(writer, rows[:5])
        again = kit.create_index(bare, "create index other on t (id desc)", writer)
        kit.module.table(again).insert(writer, [(-1, -1)])
        writer.rollback_to(mark)
        assert kit.seek(schema, "by_v", transaction=writer) == rows
        kit.module.drop_table(writer, schema)
        created = kit.module.create_table(
            writer, table_of("create table n (a integer primary key)", module=kit.module.name)
        )
        kit.module.table(created).insert(writer, [(1,)])
        writer.rollback_to(mark)
        assert kit.rows(schema, writer) == rows
        writer.release(mark)
    writer = kit.module.begin_write(0.0)
    kit.module.drop_table(writer, schema)
    writer.rollback()
    assert kit.rows(schema) == rows
    with kit.writing() as writer:
        kit.module.drop_table(writer, schema)
    fresh = kit.create(PLAIN)
    assert kit.rows(fresh) == []


CHECKS = (
    isolation,
    rollback,
    savepoints,
    one_writer,
    finished_transactions,
    index_building,
    rewriting,
    schema_changes_roll_back,
)

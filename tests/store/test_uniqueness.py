"""What collides, which row is named, and that a refused write leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quereus_store.modules.contract import Row, UniqueViolation
from quereus_store.schema.objects import TableSchema, UniqueConstraint
from quereus_store.store import StoreModule
from quereus_store.store.check import check_table
from quereus_store.types import INTEGER
from tests.store.support import all_rows, columns, create, index, reading, seek, table, with_indexes, writing

SLOTS = columns(id=INTEGER, a=INTEGER, b=INTEGER)


def slots(module: StoreModule, rows: list[Row], **options: Any) -> TableSchema:
    """A table with key ``id`` and UNIQUE (a)."""
    schema = table("slots", SLOTS, "id")
    return create(module, with_indexes(schema, index(schema, "u", "a", unique=True, **options)), rows)


def leaning(module: StoreModule, rows: list[Row]) -> TableSchema:
    """The same, enforced through an index that is not unique itself."""
    schema = table("slots", SLOTS, "id")
    schema = with_indexes(schema, index(schema, "u", "a"))
    return create(module, replace(schema, unique_constraints=(UniqueConstraint("u", (1,), "u"),)), rows)


@pytest.fixture(params=[slots, leaning])
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


def refused(module: StoreModule, schema: TableSchema, write: Any) -> tuple[str | None, Row, Row | None]:
    """What a refused write names; the table must be as before."""
    before = all_rows(module, schema), seek(module, schema, "u")
    with writing(module) as transaction:
        with pytest.raises(UniqueViolation) as caught:
            write(module.table(schema), transaction)
        assert module.table(schema).count(transaction) == len(before[0])
    assert (all_rows(module, schema), seek(module, schema, "u")) == before
    with reading(module) as transaction:
        assert check_table(module, transaction, schema) == []
    violation = caught.value
    return violation.constraint and violation.constraint.name, violation.row, violation.existing


def test_the_first_row_in_the_way_is_named(module: StoreModule, make: Any) -> None:
    schema = make(module, [(1, 10, 0), (2, 20, 0)])
    new = [(3, 30, 0), (4, 20, 1), (2, 40, 1), (5, 30, 1)]
    assert refused(module, schema, lambda t, tx: t.insert(tx, new)) == ("u", (4, 20, 1), (2, 20, 0))
    new = [(3, 30, 0), (2, 40, 1), (4, 20, 1)]
    assert refused(module, schema, lambda t, tx: t.insert(tx, new)) == (None, (2, 40, 1), (2, 20, 0))


def test_rows_of_one_batch_collide(module: StoreModule, make: Any) -> None:
    schema = make(module, [])
    assert refused(module, schema, lambda t, tx: t.insert(tx, [(1, 7, 0), (2, 7, 1)])) == (
        "u",
        (2, 7, 1),
        (1, 7, 0),
    )
    assert refused(module, schema, lambda t, tx: t.insert(tx, [(1, 7, 0), (1, 7, 1)])) == (
        None,
        (1, 7, 1),
        (1, 7, 0),
    )


def test_nulls_never_collide(module: StoreModule, make: Any) -> None:
    schema = make(module, [(1, None, 0), (2, None, 0)])
    with writing(module) as transaction:
        module.table(schema).insert(transaction, [(3, None, 0)])
        module.table(schema).delete(transaction, [(2, None, 0)])
        module.table(schema).update(transaction, [(1, None, 0)], [(7, None, 1)])
    assert seek(module, schema, "u", None) == [(3, None, 0), (7, None, 1)]


def test_only_rows_within_the_predicate_collide(module: StoreModule) -> None:
    schema = slots(module, [(1, 10, 1)], where=lambda row: row[2] == 1)
    with writing(module) as transaction:
        module.table(schema).insert(transaction, [(2, 10, 0), (3, 10, 0)])
    assert refused(module, schema, lambda t, tx: t.update(tx, [(2, 10, 0)], [(2, 10, 1)]))[0] == "u"
    assert refused(module, schema, lambda t, tx: t.insert(tx, [(4, 10, 1)]))[0] == "u"


def test_an_update_is_checked_row_by_row(module: StoreModule, make: Any) -> None:
    rows = [(1, 10, 0), (2, 20, 0), (3, 30, 0)]
    schema = make(module, rows)
    up = [(row[0] + 1, row[1], 1) for row in rows]
    assert refused(module, schema, lambda t, tx: t.update(tx, rows, up)) == (None, up[0], rows[1])
    raised = [(row[0], row[1] + 10, 1) for row in rows]
    assert refused(module, schema, lambda t, tx: t.update(tx, rows, raised)) == ("u", raised[0], rows[1])
    with writing(module) as transaction:
        module.table(schema).update(transaction, rows[::-1], up[::-1])
    assert all_rows(module, schema) == up
    with writing(module) as transaction:
        module.table(schema).update(transaction, up[::-1], [(r[0], r[1] + 10, 2) for r in up[::-1]])
    assert seek(module, schema, "u") == [(2, 20, 2), (3, 30, 2), (4, 40, 2)]


def test_values_may_change_hands_step_by_step(module: StoreModule, make: Any) -> None:
    schema = make(module, [(1, 100, 0), (2, 200, 0)])
    old = [(1, 100, 0), (2, 200, 0), (1, 300, 0)]
    new = [(1, 300, 0), (2, 100, 0), (1, 200, 0)]
    with writing(module) as transaction:
        module.table(schema).update(transaction, old, new)
    assert all_rows(module, schema) == [(1, 200, 0), (2, 100, 0)]
    assert seek(module, schema, "u", 100) == [(2, 100, 0)]


def test_a_row_may_move_and_keep_its_unique_value(module: StoreModule, make: Any) -> None:
    schema = make(module, [(1, 100, 0), (2, 200, 0)])
    with writing(module) as transaction:
        module.table(schema).update(transaction, [(1, 100, 0), (2, 200, 0)], [(10, 100, 0), (2, 200, 9)])
    assert seek(module, schema, "u") == [(10, 100, 0), (2, 200, 9)]


def test_conflicts_are_listed_primary_key_first(module: StoreModule, make: Any) -> None:
    schema = make(module, [(1, 10, 0), (2, 20, 0)])
    with reading(module) as transaction:
        handle = module.table(schema)
        found = handle.conflicts(transaction, (1, 20, 5))
        assert [(c.constraint and c.constraint.name, c.existing) for c in found] == [
            (None, (1, 10, 0)),
            ("u", (2, 20, 0)),
        ]
        assert [c.existing for c in handle.conflicts(transaction, (1, 20, 5), (1, 10, 0))] == [(2, 20, 0)]
        assert handle.conflicts(transaction, (1, 10, 5), (1, 10, 0)) == []
        assert handle.conflicts(transaction, (3, None, 5)) == []


def test_an_index_over_equal_values_cannot_be_unique(module: StoreModule) -> None:
    schema = create(module, table("slots", SLOTS, "id"), [(1, 10, 0), (2, 10, 0), (3, None, 0), (4, None, 0)])
    with writing(module) as transaction:
        with pytest.raises(UniqueViolation) as caught:
            module.create_index(transaction, schema, index(schema, "ua", "a", unique=True))
        built = module.create_index(transaction, schema, index(schema, "ub", "a", "id", unique=True))
    assert caught.value.constraint is not None
    assert caught.value.constraint.name == "ua"
    assert {caught.value.row, caught.value.existing} == {(1, 10, 0), (2, 10, 0)}
    assert seek(module, with_indexes(schema, built), "ub", 10) == [(1, 10, 0), (2, 10, 0)]

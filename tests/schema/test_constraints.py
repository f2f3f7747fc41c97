"""UNIQUE constraints and the indexes they lean on; adding and dropping both."""

# ruff: noqa: E501 - messages are quoted whole

import pytest

from quereus_store.errors import Error
from quereus_store.schema.constraints import (
    add_unique,
    drop_index,
    exposed_indexes,
    find_constraint,
    mint,
    visible_indexes,
    without_constraint,
)
from quereus_store.schema.objects import UniqueConstraint
from tests.schema.support import table

T = "create table t (a integer, b text collate nocase, unique (a, b))"


def names(indexes):
    return [index.name for index in indexes]


def test_a_users_unique_index_replaces_the_hidden_one():
    t = table(T, "create unique index mine on t (a, b)")
    assert names(t.indexes) == ["mine"]
    assert [(u.name, u.index, u.from_index) for u in t.unique_constraints] == [
        ("_uc_a_b", "mine", False),
        ("mine", "mine", True),
    ]
    change = drop_index(t, "mine")
    assert (names(change.build), names(change.erase)) == (["_uc_a_b"], ["mine"])
    assert [(u.name, u.index) for u in change.table.unique_constraints] == [("_uc_a_b", "_uc_a_b")]
    assert change.table == table(T), "as if the index had never been"


@pytest.mark.parametrize(
    "index",
    [
        "create index i on t (a, b)",
        "create unique index i on t (b, a)",
        "create unique index i on t (a, b collate binary)",
        "create unique index i on t (a, b) where a > 0",
    ],
)
def test_other_indexes_stand_beside_the_hidden_one(index):
    assert names(table(T, index).indexes) == ["_uc_a_b", "i"]


def test_a_new_constraint_leans_on_an_index_that_enforces_it():
    t = table("create table t (a integer, b text)", "create unique index u on t (a)")
    change = add_unique(t, UniqueConstraint("bar", (0,), "", named=True), "add constraint 'bar' to table 't'")
    assert change.build == ()
    assert change.table.unique_constraints[0].index == "u"
    change = add_unique(t, UniqueConstraint("", (1,), ""), "add constraint to table 't'")
    assert names(change.build) == ["_uc_b"]
    assert names(change.table.indexes) == ["_uc_b", "u"]
    assert [u.name for u in change.table.unique_constraints] == ["_uc_b", "u"]


def test_a_constraint_may_not_take_the_name_of_an_index():
    t = table("create table t (a integer, b text)", "create index foo on t (b)")
    with pytest.raises(Error) as caught:
        add_unique(t, UniqueConstraint("foo", (0,), "", named=True), "add constraint 'foo' to table 't'")
    assert caught.value.message == (
        "Cannot add constraint 'foo' to table 't': its backing index 'foo' would collide with existing index 'foo'"
        " on the same table. Rename the constraint or the index."
    )


def test_dropping_a_constraint_drops_its_hidden_index():
    t = table(
        "create table t (a integer, constraint u unique (a), constraint c check (a > 1), check (a > 2))"
    )
    change = without_constraint(t, find_constraint(t, "U"))
    assert names(change.erase) == ["u"]
    assert (change.table.indexes, change.table.unique_constraints) == ((), ())
    change = without_constraint(t, find_constraint(t, "c"))
    assert [check.name for check in change.table.checks] == ["_check_0"], "unnamed checks are counted anew"
    assert find_constraint(t, "_check_1") is None, "and cannot be addressed"
    assert find_constraint(table(T), "_uc_a_b") is None, "nor can an unnamed UNIQUE"


def test_hidden_indexes_are_shown_on_demand():
    t = table(
        "create table t (a integer, b integer unique,"
        ' constraint u unique (a) with tags ("quereus.expose_implicit_index" = true))',
        "create index i on t (b)",
    )
    assert names(exposed_indexes(t)) == ["u"]
    assert names(visible_indexes(t)) == ["u", "i"]


def test_minted_names_step_aside():
    taken = {"x", "x_2"}
    assert mint("X", taken) == "X_3"
    assert mint("y", taken) == "y"
    assert mint("y", taken) == "y_2"

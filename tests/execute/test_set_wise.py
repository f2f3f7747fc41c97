"""Constraints look at all rows of a statement together: what is asked of the other table is counted.

Ten thousand child rows are one look-up in the parent, ten thousand parents one in the index of the child,
and one pass over a table where no key serves; an assertion reads the changed keys alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from quereus_store.modules.memory.table import MemoryTable
from quereus_store.store.table import StoreTable
from tests.execute.database import Database

MANY = 10_000
READING = ("point", "points", "range", "ranges", "scan")


class Asked:
    """How often each reading method of each table was called."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def of(self, table: str) -> dict[str, int]:
        """The calls for one table by method."""
        return {method: count for (name, method), count in self.calls.items() if name == table}

    def clear(self) -> None:
        self.calls.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    found = Asked()

    def counting(method: str, function: Any) -> Any:
        def counted(self: Any, *arguments: Any, **named: Any) -> Any:
            found.calls[self.schema.name, method] += 1
            return function(self, *arguments, **named)

        return counted

    for handle in (MemoryTable, StoreTable):
        for method in READING:
            monkeypatch.setattr(handle, method, counting(method, getattr(handle, method)))
    return found


@pytest.fixture
def family(db: Database) -> Database:
    """A parent with many rows, and numbers to make children of."""
    db.run("create table parent (id integer primary key, code integer)")
    db.run("create table child (id integer primary key, up integer null references parent (id))")
    db.run("create index by_up on child (up)")
    db.run("create table number (n integer primary key)")
    db.many("insert into number values (?)", [(n,) for n in range(MANY)])
    db.run("insert into parent select n, n from number")
    return db


def test_children_are_one_look_up(family: Database, asked: Asked) -> None:
    family.run("insert into child select n, n from number")
    assert asked.of("parent") == {"points": 1}
    asked.clear()
    family.many("insert into child values (?, ?)", [(n, n % 100) for n in range(MANY, 2 * MANY)])
    assert asked.of("parent") == {"points": 1}
    asked.clear()
    family.run("update child set up = id % 7 where id < 5000")
    assert asked.of("parent") == {"points": 1}


def test_children_that_wait_for_the_commit_are_one_look_up(family: Database, asked: Asked) -> None:
    family.run("begin; insert into child select n + 500000, n + 500000 from number")
    assert asked.of("parent") == {"points": 1}
    family.run("insert into parent select n + 500000, 0 from number")
    asked.clear()
    family.run("commit")
    assert asked.of("parent") == {"points": 1}
    assert asked.of("child") == {"points": 1}


def test_parents_without_an_index_are_one_pass(family: Database, asked: Asked) -> None:
    family.run("create table other (id integer primary key, code integer references parent (code))")
    asked.clear()
    family.run("insert into other select n, n from number")
    assert asked.of("parent") == {"scan": 1}


@pytest.mark.parametrize(
    ("action", "statement"),
    [
        ("restrict", "delete from parent where code >= 5000"),
        ("restrict", "update parent set id = id + 100000 where code >= 5000"),
        ("cascade", "delete from parent where code < 5000"),
        ("cascade", "update parent set id = id + 100000 where code < 5000"),
        ("set null", "delete from parent where code < 5000"),
        ("set null", "update parent set id = id + 100000 where code < 5000"),
    ],
)
@pytest.mark.parametrize(("index", "expected"), [("by_up", {"ranges": 1}), (None, {"scan": 1})])
def test_parents_are_one_look_up_in_the_childs_index(
    family: Database, asked: Asked, action: str, statement: str, index: str | None, expected: dict[str, int]
) -> None:
    family.run("drop table child")
    family.run(
        "create table child (id integer primary key,"
        f" up integer null references parent (id) on delete {action} on update {action})"
    )
    if index is not None:
        family.run(f"create index {index} on child (up)")
    family.run("insert into child select n, n from number where n < 5000")
    asked.clear()
    assert family.change(statement) == 5000
    assert asked.of("child") == expected


def test_a_unique_constraint_asks_for_no_row(family: Database, asked: Asked) -> None:
    family.run("create table once (id integer primary key, v integer unique)")
    family.run("insert into once select n, n from number where n < 9000")
    asked.clear()
    family.run("insert into once select n, n from number where n >= 9000")
    family.run("update once set v = v + 50000")
    assert asked.of("once") == {"scan": 1}


def test_an_assertion_reads_the_changed_keys(family: Database, asked: Asked) -> None:
    family.run("create assertion known check (not exists (select 1 from parent where code < 0))")
    family.run(
        "create assertion no_orphan check (not exists (select 1 from child c where c.up is not null"
        " and not exists (select 1 from parent p where p.id = c.up)))"
    )
    # The first time all is looked at.
    family.run("insert into parent values (70000, 1); insert into child select n, n from number where n > 5")
    asked.clear()
    family.run("insert into child values (2, 70000)")
    family.run("update child set up = 3 where id = 9000")
    assert "scan" not in {**asked.of("parent"), **asked.of("child")}
    family.run("drop assertion no_orphan")
    asked.clear()
    family.run("update parent set code = 5 where id = 3")
    assert family.fails("update parent set code = -5 where id = 3").startswith(
        "Integrity assertion failed: known [(3)]"
    )
    assert "scan" not in asked.of("parent")

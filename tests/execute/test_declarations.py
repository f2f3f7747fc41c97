"""APPLY SCHEMA as one step, and what modules hear of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import quereus_store
from quereus_store.modules.memory import MemoryModule


class Batched(MemoryModule):
    """A module that keeps a diary; ``broken`` names the call that fails."""

    def __init__(self, name: str, diary: list[str], broken: str = "") -> None:
        super().__init__(name)
        self.diary, self.broken = diary, broken

    def begin_schema_batch(self, schema_name: str) -> None:
        self._note(f"begin {schema_name}")

    def end_schema_batch(self, schema_name: str, error: BaseException | None) -> None:
        self._note(f"end {schema_name}: {error.args[0] if error else 'done'}")

    def _note(self, entry: str) -> None:
        self.diary.append(f"{self.name} {entry}")
        if self.broken and self.broken in entry:
            raise ValueError(f"{self.name} is broken")


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def connection() -> Iterator[quereus_store.Connection]:
    with quereus_store.connect(":memory:") as connection:
        yield connection


def register(connection: quereus_store.Connection, *modules: Batched) -> None:
    for module in modules:
        connection.database.engine.register_module(module)


def test_a_batch_is_told_from_its_begin_to_its_end(
    connection: quereus_store.Connection, diary: list[str]
) -> None:
    register(connection, Batched("one", diary), Batched("two", diary))
    connection.execute("declare schema main { table t { id integer primary key } seed t ((1)) }")
    connection.execute("apply schema main with seed")
    assert diary == ["one begin main", "two begin main", "two end main: done", "one end main: done"]
    connection.execute("apply schema main with seed")
    assert len(diary) == 4, "nothing was to be done, so nobody is told"


def test_a_batch_that_fails_is_told_why(connection: quereus_store.Connection, diary: list[str]) -> None:
    register(connection, Batched("one", diary), Batched("two", diary, broken="end"))
    connection.execute("declare schema main { table t { id integer primary key } view v as select nothing }")
    with pytest.raises(quereus_store.Error, match="nothing") as failure:
        connection.execute("apply schema main")
    assert diary[2:] == [
        "two end main: Column not found: nothing",
        "one end main: Column not found: nothing",
    ]
    assert failure.value.__notes__ == ["while applying schema main: create view v as select nothing"]
    assert connection.database.catalog.table("main", "t") is None


def test_a_module_can_call_the_whole_off(connection: quereus_store.Connection, diary: list[str]) -> None:
    register(connection, Batched("one", diary), Batched("two", diary, broken="begin"))
    connection.execute("declare schema side { table t { id integer primary key } }")
    with pytest.raises(ValueError, match="two is broken"):
        connection.execute("apply schema side")
    assert diary == ["one begin side", "two begin side", "one end side: two is broken"]
    assert connection.database.catalog.schema("side") is None


def test_the_end_of_a_batch_can_fail_too(connection: quereus_store.Connection, diary: list[str]) -> None:
    register(connection, Batched("one", diary), Batched("two", diary, broken="end"))
    connection.execute("declare schema main { table t { id integer primary key } }")
    with pytest.raises(ValueError, match="two is broken"):
        connection.execute("apply schema main")
    assert diary[-1] == "one end main: two is broken"
    assert connection.database.catalog.table("main", "t") is None


def test_a_failed_application_leaves_an_open_transaction_as_it_was(
    connection: quereus_store.Connection,
) -> None:
    connection.execute("create table t (id integer primary key)")
    connection.execute("begin")
    connection.execute("insert into t values (1)")
    connection.execute(
        "declare schema main { table t { id integer primary key, a integer }"
        " table u { id integer primary key } }"
    )
    with pytest.raises(quereus_store.Error, match="cannot be backfilled"):
        connection.execute("apply schema main")
    connection.execute("commit")
    assert connection.execute("select * from t").fetchall() == [(1,)]
    assert list(connection.database.catalog.schemas["main"].tables) == ["t"]


def test_seeds_that_break_a_rule_undo_the_whole(connection: quereus_store.Connection) -> None:
    connection.execute(
        "declare schema main { table t { id integer primary key check (id < 9) } seed t ((1), (99)) }"
    )
    with pytest.raises(quereus_store.IntegrityError, match="CHECK constraint failed") as failure:
        connection.execute("apply schema main with seed")
    assert failure.value.__notes__ == ["while inserting the seed rows of t"]
    assert connection.database.catalog.table("main", "t") is None


def test_a_dry_run_changes_nothing(connection: quereus_store.Connection) -> None:
    connection.execute("declare schema main { table t { id integer primary key } }")
    connection.execute("apply schema main options (dry_run = true)")
    assert connection.database.catalog.table("main", "t") is None


def test_a_default_module_for_the_declared_tables(connection: quereus_store.Connection) -> None:
    register(connection, Batched("other", []))
    connection.execute(
        "declare schema main using (default_vtab_module = 'other', default_vtab_args = '{}')"
        " { table t { id integer primary key } table u { id integer primary key } using memory }"
    )
    connection.execute("apply schema main")
    tables = connection.database.catalog.schemas["main"].tables
    assert {name: table.module for name, table in tables.items()} == {"t": "other", "u": "memory"}
    assert connection.execute("diff schema main").fetchall() == []


def test_a_body_does_not_move_the_table_that_gets_it(connection: quereus_store.Connection) -> None:
    register(connection, Batched("apart", []))
    table = (
        "declare schema main { table source (id integer primary key); table copy (id integer primary key) "
    )
    connection.execute(table + "}")
    connection.execute("apply schema main")
    connection.execute(table + "using apart maintained as select id from source }")
    with pytest.raises(quereus_store.ProgrammingError, match="table 'copy' lives in module 'memory'"):
        connection.execute("apply schema main")
    assert connection.execute("select count(*) from maintenance_info()").fetchall() == [(0,)]

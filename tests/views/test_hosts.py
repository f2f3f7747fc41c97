"""Maintained tables in modules of third parties: who may host them, and the kit that proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import quereus_store
from quereus_store.errors import Error, StatusCode
from quereus_store.execute.dml.mutation import compile_mutation
from quereus_store.modules.conformance import CHECKS, HOSTING_CHECKS, run_check
from quereus_store.modules.contract import BackingHost, DdlTransactionality, EngineServices, Module
from quereus_store.modules.memory import MemoryModule
from quereus_store.plan.binder import bind_mutation
from quereus_store.sql.parser import parse_statement


class Guest:
    """A module that keeps tables and offers no more than the contract asks for."""

    name = "guest"
    persistent = False
    ddl_transactionality = DdlTransactionality.TRANSACTIONAL

    def __init__(self) -> None:
        self.inner = MemoryModule(self.name)
        for method in (
            *("attach", "begin_read", "begin_write", "table", "plan_access", "create_table", "drop_table"),
            *("create_index", "drop_index", "rewrite_table", "close"),
        ):
            setattr(self, method, getattr(self.inner, method))


class Host(Guest):
    """The same, as a backing host: it counts what is written through the handles that it gives."""

    name = "host"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get_backing_host(self, schema: Any) -> Any:
        """The handle of any table."""
        self.asked.append(schema.name)
        return self.inner.table(schema)


def made(module: Any) -> Callable[[EngineServices], Module]:
    def make(services: EngineServices) -> Module:
        fresh: Any = module()
        fresh.attach(services)
        return fresh  # type: ignore[no-any-return]

    return make


@pytest.fixture
def con() -> quereus_store.Connection:
    connection = quereus_store.connect(":memory:")
    connection.database.register_module(Guest())  # type: ignore[arg-type]
    connection.database.register_module(Host())  # type: ignore[arg-type]
    connection.executescript(
        "create table t (id integer primary key, g text, n integer) using host;"
        "insert into t values (1, 'a', 5), (2, 'b', 6), (3, 'a', 7);"
    )
    return connection


@pytest.mark.parametrize("check", [*CHECKS, *HOSTING_CHECKS])
def test_the_kit_takes_a_module_of_a_third_party(check: str) -> None:
    run_check(check, made(Host))


def test_the_kit_asks_for_the_capability() -> None:
    assert isinstance(Host(), BackingHost)
    assert not isinstance(Guest(), BackingHost)
    with pytest.raises(AssertionError, match=r"module 'guest' has no get_backing_host"):
        run_check("derived_batches", made(Guest))


class Wrong:
    """A handle that does one thing otherwise than a host has to."""

    def __init__(self, table: Any, method: str, instead: Callable[..., Any]) -> None:
        self._table, self._method, self._instead = table, method, instead

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        return (lambda *given: self._instead(found, *given)) if name == self._method else found


WRONG = {
    "derived_batches": ("update", lambda update, *given: None),
    "derived_groups": ("ranges", lambda ranges, *given: [list(reversed(rows)) for rows in ranges(*given)]),
    "derived_swaps": (
        "insert",
        lambda insert, writer, rows: [insert(writer, [row]) for row in rows],  # not all or nothing
    ),
    "derived_contents": ("delete", lambda delete, writer, rows: delete(writer, rows[1:])),
}


@pytest.mark.parametrize("check", WRONG)
def test_the_kit_finds_what_a_host_does_wrong(check: str) -> None:
    class Faulty(Host):
        def get_backing_host(self, schema: Any) -> Any:
            return Wrong(self.inner.table(schema), *WRONG[check])

    with pytest.raises(AssertionError):
        run_check(check, made(Faulty))


def test_views_live_in_a_module_of_a_third_party(con: quereus_store.Connection) -> None:
    con.execute(
        "create materialized view v using host as select g, count(*) as c, sum(n) as s from t group by g"
    )
    con.execute(
        "create table w (c integer primary key, g text null) using host"
        " maintained as select c, min(g) as g from v group by c"
    )
    con.execute("begin")
    con.execute("insert into t values (4, 'c', 8)")
    con.execute("savepoint s")
    con.execute("delete from t where g = 'a'")
    assert con.execute("select * from v").fetchall() == [("b", 1, 6), ("c", 1, 8)]
    assert con.execute("select * from w").fetchall() == [(1, "b")]
    con.execute("rollback to s")
    con.execute("commit")
    assert con.execute("select * from v").fetchall() == [("a", 2, 12), ("b", 1, 6), ("c", 1, 8)]
    assert con.database.check() == []
    host: Any = con.database.modules["host"]
    assert set(host.asked) == {"v", "w"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "create materialized view v using {module} as select id, n from t",
            "module '{name}' cannot host a materialized-view backing table",
        ),
        (
            "create table v (id integer primary key) using {module} maintained as select id from t",
            "cannot create maintained table 'main.v': module '{name}' cannot host a maintained table",
        ),
    ],
)
@pytest.mark.parametrize("module", ["guest", "json_each('[]')"])
def test_other_modules_host_no_views(
    con: quereus_store.Connection, module: str, statement: str, message: str
) -> None:
    with pytest.raises(Error) as caught:
        con.execute(statement.format(module=module))
    assert caught.value.code == StatusCode.UNSUPPORTED
    expected = message.format(name=module.partition("(")[0])
    assert caught.value.message.startswith(expected + " (it does not implement the backing-host capability)")
    assert con.database.catalog.table("main", "v") is None


def test_no_body_is_attached_to_a_table_elsewhere(con: quereus_store.Connection) -> None:
    con.execute("create table elsewhere (id integer primary key, n integer) using guest")
    with pytest.raises(
        Error, match=r"cannot attach derivation to 'main.elsewhere': module 'guest' cannot host"
    ):
        con.execute("alter table elsewhere set maintained as select id, n from t")
    con.execute("insert into elsewhere values (1, 1)")


def test_no_plan_writes_derived_rows(con: quereus_store.Connection) -> None:
    """Users' statements are written through to the source; a plan that is not would be refused."""
    con.execute("create materialized view v as select id, n from t")
    engine, catalog = con.database.engine, con.database.catalog
    context = engine.bind_context(catalog)
    plan: Any = bind_mutation(context, parse_statement("delete from t"))  # type: ignore[arg-type]
    with pytest.raises(
        Error, match=r"table 'main.v' is a maintained table — its contents are derived"
    ) as caught:
        compile_mutation(replace(plan, table=catalog.table("main", "v")), engine, context)
    assert caught.value.code == StatusCode.READONLY

"""Introspection by example: a catalog built from statements, described as rows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.functions.builtins import builtin_functions
from quereus_store.functions.introspection import ColumnLineage, Lineage
from quereus_store.functions.registry import FunctionRegistry, TableFunction, guarded_rows
from quereus_store.functions.user import scalar_function_from
from quereus_store.schema.builder import build_assertion, build_index, build_table, build_view
from quereus_store.schema.constraints import add_index
from quereus_store.schema.manager import add_schema, empty_catalog, put_assertion, put_table, put_view
from quereus_store.schema.objects import Catalog
from quereus_store.sql import nodes
from quereus_store.sql.parser import parse_script
from quereus_store.types.collations import CollationRegistry

SCRIPT = """
create table Parent (pid integer primary key, code text collate nocase unique);
create table Child (
    id integer primary key with tags (note = 'key'),
    name text not null default 'x',
    size integer null,
    twice integer generated always as (size * 2) stored,
    p integer references Parent,
    q text references Parent(code) on delete cascade on update set null,
    constraint positive check on insert (size > 0),
    check (id < 100),
    constraint uq unique (name) with tags ("quereus.expose_implicit_index" = true)
) with tags (audit = true);
create unique index child_size on Child (size desc) where size > 5 with tags (purpose = 'lookup');
create table s2.Par (a integer, b integer, primary key (a, b));
create table s2.Sub (x integer primary key, y integer, z integer, foreign key (y, z) references Par);
create view Big as select id from Child where size > 5;
create view s2.Other as select a from Par;
create assertion sane check (not exists (with c as (select 1 from Child) select 1 from c, Parent));
"""


@dataclass
class Context:
    catalog: Catalog
    registry: FunctionRegistry = field(default_factory=lambda: FunctionRegistry(parent=builtin_functions()))
    collations: CollationRegistry = field(default_factory=CollationRegistry)
    options: dict[str, Any] = field(default_factory=lambda: {"default_vtab_module": "memory"})
    schema_path: tuple[str, ...] = ("main",)

    def lineage(self, relation: Any) -> Lineage:
        return Lineage(True, True, False, ("Child",), ("id",), (ColumnLineage(True, "Child", "id"),))


def catalog_of(script: str) -> Catalog:
    catalog = add_schema(empty_catalog(), "s2")
    for statement in parse_script(script):
        if isinstance(statement, nodes.CreateTable):
            schema = statement.name.schema or "main"
            catalog = put_table(catalog, build_table(statement, schema_name=schema))
        elif isinstance(statement, nodes.CreateIndex):
            table = catalog.table("main", statement.table.name)
            assert table is not None
            catalog = put_table(catalog, add_index(table, build_index(statement, table)).table)
        elif isinstance(statement, nodes.CreateView):
            catalog = put_view(catalog, build_view(statement, statement.name.schema or "main"))
        elif isinstance(statement, nodes.CreateAssertion):
            catalog = put_assertion(catalog, build_assertion(statement, "main"))
    return catalog


@pytest.fixture
def context() -> Context:
    return Context(catalog_of(SCRIPT))


def described(context: Context, name: str, *arguments: Any) -> list[dict[str, Any]]:
    function = builtin_functions().find(name, len(arguments))
    assert isinstance(function, TableFunction)
    names = [column.name for column in function.columns]
    return [dict(zip(names, row, strict=True)) for row in guarded_rows(function)(context, *arguments)]


def picked(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_schema_lists_tables_with_indexes_then_views_then_functions(context: Context) -> None:
    rows = described(context, "schema")
    objects = [row for row in rows if row["type"] != "function"]
    assert picked(objects, "schema", "type", "name", "tbl_name") == [
        ("main", "table", "Parent", "Parent"),
        ("main", "table", "Child", "Child"),
        ("main", "index", "uq", "Child"),
        ("main", "index", "child_size", "Child"),
        ("main", "view", "Big", "Big"),
        ("s2", "table", "Par", "Par"),
        ("s2", "table", "Sub", "Sub"),
        ("s2", "view", "Other", "Other"),
    ]
    sql = {row["name"]: row["sql"] for row in rows}
    assert sql["Par"] == 'create table "Par" ("a" INTEGER, "b" INTEGER) using memory()'
    assert sql["child_size"] == 'CREATE INDEX "child_size" ON "Child" ("size" COLLATE BINARY DESC)'
    assert sql["Big"] == "create view Big as select id from Child where size > 5"
    assert sql["Other"] == "create view s2.Other as select a from Par"
    assert (sql["abs"], sql["trim"]) == ("FUNCTION abs(?)", "FUNCTION trim(...)")
    tags = {row["name"]: row["tags"] for row in objects}
    assert (tags["Child"], tags["child_size"], tags["Parent"]) == (
        '{"audit":true}',
        '{"purpose":"lookup"}',
        None,
    )


def test_table_info(context: Context) -> None:
    rows = described(context, "table_info", "CHILD")
    columns = ("cid", "name", "type", "notnull", "dflt_value", "pk", "tags", "generated")
    assert picked(rows, *columns)[:4] == [
        (0, "id", "INTEGER", 1, None, 1, '{"note":"key"}', 0),
        (1, "name", "TEXT", 1, "'x'", 0, None, 0),
        (2, "size", "INTEGER", 0, None, 0, None, 0),
        (3, "twice", "INTEGER", 1, None, 0, None, 2),
    ]
    assert picked(described(context, "table_info", "parent"), "collation") == [("BINARY",), ("NOCASE",)]


def test_index_info_shows_exposed_structures_as_not_unique(context: Context) -> None:
    rows = described(context, "index_info", "Child")
    columns = ("index_name", "seq", "column_name", "desc", "collation", "unique", "partial")
    assert picked(rows, *columns) == [
        ("uq", 0, "name", 0, "BINARY", 0, 0),
        ("child_size", 0, "size", 1, "BINARY", 1, 1),
    ]
    assert described(context, "index_info", "Parent") == []


def test_foreign_key_info(context: Context) -> None:
    columns = ("id", "name", "from", "referenced_table", "referenced_schema", "to", "on_update", "on_delete")
    assert picked(described(context, "foreign_key_info", "Child"), *columns) == [
        (0, "_fk_Child_p", "p", "Parent", "main", "pid", "restrict", "restrict"),
        (1, "_fk_Child_q", "q", "Parent", "main", "code", "setNull", "cascade"),
    ]
    assert picked(described(context, "foreign_key_info", "sub"), "id", "seq", "from", "to") == [
        (0, 0, "y", "a"),
        (0, 1, "z", "b"),
    ]


def test_a_foreign_key_to_nowhere_has_no_target_columns() -> None:
    context = Context(catalog_of("create table t (a integer primary key, b integer references gone);"))
    assert picked(described(context, "foreign_key_info", "t"), "to") == [(None,)]


def test_constraints(context: Context) -> None:
    assert picked(described(context, "check_constraint_info", "Child"), "name", "expr", "operations") == [
        ("positive", "size > 0", "insert"),
        (None, "id < 100", "insert,update"),
    ]
    rows = described(context, "unique_constraint_info", "Child")
    assert picked(rows, "id", "name", "seq", "column_name", "partial") == [
        (0, "uq", 0, "name", 0),
        (1, "child_size", 0, "size", 1),
    ]


def test_assertion_info_names_the_tables_behind_an_assertion(context: Context) -> None:
    (row,) = described(context, "assertion_info")
    body = "not exists (with c as (select 1 from Child) select 1 from c"
    assert row["violation_sql"].startswith(f"select 1 where not ({body}")
    assert {item["base"] for item in json.loads(row["dependent_tables"])} == {"main.child", "main.parent"}


def test_views(context: Context) -> None:
    assert picked(described(context, "view_info", "big"), "name", "is_deletable", "effective_targets") == [
        ("Big", "NO", '["Child"]')
    ]
    assert len(described(context, "view_info")) == 2
    assert described(context, "view_info", "nope") == []
    columns = ("name", "column_name", "is_updatable", "base_table", "base_column")
    assert picked(described(context, "column_info", "Big"), *columns) == [("Big", "id", "YES", "Child", "id")]
    assert picked(described(context, "column_info", "child"), *columns)[2:4] == [
        ("Child", "size", "YES", "Child", "size"),
        ("Child", "twice", "NO", None, None),
    ]


def test_function_info(context: Context) -> None:
    context.registry.register(scalar_function_from(lambda x: x, "Mine", flags=0x80000, hidden=True))
    assert described(context, "function_info", "mine") == [
        {
            "name": "Mine",
            "num_args": 1,
            "type": "scalar",
            "deterministic": 0,
            "flags": 0x80001,
            "signature": "Mine(?)",
        }
    ]
    assert picked(described(context, "function_info", "COUNT"), "num_args", "type", "flags") == [
        (0, "window", 2049),
        (1, "window", 2049),
    ]
    assert picked(described(context, "function_info", "group_concat"), "type")[0] == ("aggregate",)
    assert picked(described(context, "function_info", "json_each"), "num_args", "type") == [(-1, "table")]
    everything = described(context, "function_info")
    assert described(context, "function_info", 5) == everything
    assert described(context, "function_info", "abs", "x") == everything
    assert "Mine" not in [row["name"] for row in described(context, "schema")]


def test_collation_info(context: Context) -> None:
    context.collations.register("odd", lambda a, b: 0)
    assert [tuple(row.values()) for row in described(context, "collation_info")] == [
        ("BINARY", 1, 1),
        ("NOCASE", 1, 1),
        ("ODD", 0, 0),
        ("RTRIM", 1, 1),
    ]


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("table_info", 5, "table_info() requires a table name string argument"),
        ("index_info", "zip", "Table 'zip' not found"),
        ("foreign_key_info", "Big", "Table 'Big' not found"),
        ("column_info", "zip", "'zip' not found"),
        ("column_info", None, "column_info() requires a table or view name string argument"),
        ("query_plan", None, "query_plan() requires a SQL string argument"),
    ],
)
def test_failures(context: Context, name: str, argument: Any, message: str) -> None:
    with pytest.raises(Error, match=re.escape(f"Table-valued function {name} failed: {message}")):
        described(context, name, argument)


def test_diagnostics_come_from_the_context(context: Context) -> None:
    with pytest.raises(Error, match=re.escape("query_plan() is not supported yet")) as caught:
        described(context, "query_plan", "select 1")
    assert isinstance(caught.value.__cause__, Error)
    assert caught.value.__cause__.code is StatusCode.UNSUPPORTED

    class Diagnostics:
        def explain_assertion(self, name: str) -> list[tuple[Any, ...]]:
            return [(name, "main.t#1", "main.t", "global", None, "select 1")]

    context.diagnostics = Diagnostics()  # type: ignore[attr-defined]
    assert picked(described(context, "explain_assertion", "sane"), "assertion", "classification") == [
        ("sane", "global")
    ]

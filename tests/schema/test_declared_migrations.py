"""From any declared schema to any other: the way there leads to the same place as a fresh start.

Random declarations are applied one after the other.  Afterwards nothing differs, the catalog says what
it would say had the last declaration been applied to an empty database, rows of ordinary tables are
still there, and maintained tables are equal to their bodies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.schema.ddl import check_node, foreign_key_node, unique_node
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.sql import nodes, render, render_expression

TABLES = ("alpha", "beta", "gamma")
COLUMNS = ("a", "b", "c")
DEFAULTS = {"integer": "1", "text": "'1'", "real": "1.0"}


@dataclass(frozen=True)
class Column:
    """A column of a random table; ``constraint`` is a clause on it."""

    name: str
    type: str
    collation: str
    nullable: bool
    constraint: str

    def sql(self) -> str:
        filler = "null" if self.nullable else f"default {DEFAULTS[self.type]}"
        return f"{self.name} {self.type} {self.collation} {filler} {self.constraint}"


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    constraint = draw(
        st.sampled_from(
            (
                "",
                "",
                "unique",
                f"check ({name} is not null or true)",
                f"constraint {name}_named check ({name} is null or {name} != 'x')",
                f"constraint {name}_one unique",
                "with tags (note = 1)",
            )
        )
    )
    kind = draw(st.sampled_from(("integer", "text", "text collate nocase", "real")))
    kind, _, collation = kind.partition(" ")
    return Column(name, kind, collation, draw(st.booleans()), constraint)


@st.composite
def tables(draw: st.DrawFn, name: str, others: list[str], key: str) -> tuple[str, list[str]]:
    """The item of a table, and its columns."""
    chosen = [draw(columns(column)) for column in sorted(draw(st.sets(st.sampled_from(COLUMNS))))]
    elements = ["id integer", "k integer default 7"] + [column.sql() for column in chosen]
    if draw(st.booleans()):
        elements.append(
            draw(
                st.sampled_from(
                    (
                        "g integer generated always as (id + 1) stored",
                        "g integer generated always as (id + k) virtual",
                    )
                )
            )
        )
    for other in others:
        action = draw(st.sampled_from(("", "on delete cascade", "on update set null")))
        clause = draw(
            st.sampled_from(
                (
                    None,
                    None,
                    f"references {other} (id) {action}",
                    f"constraint to_{other} references {other} (id) {action}",
                )
            )
        )
        if clause is not None:
            elements.append(f"p_{other} integer null {clause}")
    elements.append(f"primary key ({key})")
    elements += filter(None, (draw(st.sampled_from(choice)) for choice in TABLE_CONSTRAINTS))
    names = ["id", "k", *(column.name for column in chosen)]
    tags = draw(st.sampled_from(("", " with tags (owner = 'x')")))
    return f"table {name} ({', '.join(elements)}){tags}", names


TABLE_CONSTRAINTS = (
    ("", "check (id > 0)"),
    ("", "check (k > 0)", "check (k > 1)"),
    ("", "constraint both check (id + k > 0)", "constraint both check on insert (id + k > 1)"),
    ("", "unique (k, id)"),
    ("", "constraint pair unique (id, k)", "constraint pair unique (k, id)"),
)


@st.composite
def declarations(draw: st.DrawFn) -> str:
    """The text of a declaration of ``main``."""
    present = sorted(draw(st.sets(st.sampled_from(TABLES), min_size=1)))
    items: list[str] = []
    known: dict[str, list[str]] = {}
    keys = {name: draw(st.sampled_from(("id", "id", "id, k", "k desc, id"))) for name in present}
    for name in present:
        item, known[name] = draw(tables(name, present, keys[name]))
        items.append(item)
    for name in present:
        column = draw(st.sampled_from(known[name]))
        if draw(st.booleans()):
            where = draw(st.sampled_from(("", " where id > 0")))
            items.append(
                f"{draw(st.sampled_from(('', 'unique ')))}index i_{name} on {name} ({column}, id){where}"
            )
        kind = draw(st.sampled_from(("", "view", "materialized view", "table")))
        if kind == "table" and keys[name] != "id":
            kind = ""
        if kind == "table":
            alias = draw(st.sampled_from(("k as n", "id as n")))
            shape = "id integer primary key, n integer"
            items.append(f"table v_{name} ({shape}) maintained as select id, {alias} from {name}")
        elif kind:
            body = draw(
                st.sampled_from(
                    (
                        f"select id, k, {column} as n from {name}",
                        f"select * from {name}",
                        f"select count(*) as n from {name}",
                    )
                )
            )
            items.append(f"{kind} v_{name} as {body}")
        if kind and draw(st.booleans()):
            items.append(f"materialized view w_{name} as select count(*) as n from v_{name}")
        if kind and draw(st.booleans()):
            items.append(f"assertion x_{name} check (not exists (select 1 from v_{name} where 1 = 0))")
    return "declare schema main {\n  " + "\n  ".join(draw(st.permutations(items))) + "\n}"


# --- what a catalog says, however it came about -----------------------------------------------------------


def summary(catalog: Catalog) -> dict[str, Any]:
    schema = catalog.schemas["main"]
    return {
        "tables": {name: table_summary(table) for name, table in schema.tables.items()},
        "views": {
            name: (view.columns, render(view.query), dict(view.tags)) for name, view in schema.views.items()
        },
        "assertions": {name: render_expression(each.expression) for name, each in schema.assertions.items()},
    }


def table_summary(table: TableSchema) -> dict[str, Any]:
    return {
        "columns": {
            fold(column.name): (
                column.type.name,
                column.nullable,
                column.collation,
                column.default and render_expression(column.default),
                column.generated and render_expression(column.generated),
                dict(column.tags),
            )
            for column in table.columns
        },
        "key": [(table.columns[part.column].name, part.descending) for part in table.primary_key.parts],
        "constraints": sorted(constraints(table)),
        "indexes": sorted(
            (
                index.name,
                index.unique,
                str([table.columns[part.column].name for part in index.parts if part.column is not None]),
                index.where and render_expression(index.where),
            )
            for index in table.indexes
            if not index.hidden
        ),
        "body": table.derivation and (render(table.derivation.query), table.derivation.stale),
        "tags": dict(table.tags),
    }


def constraints(table: TableSchema) -> Iterator[str]:
    found: list[tuple[bool, str, nodes.Constraint]] = [
        (check.named and not check.name.startswith("check_"), check.name, check_node(check))
        for check in table.checks
    ]
    found += [
        (unique.named, unique.name, unique_node(table, unique))
        for unique in table.unique_constraints
        if not unique.from_index
    ]
    found += [(key.named, key.name, foreign_key_node(table, key)) for key in table.foreign_keys]
    for named, name, node in found:
        yield f"{name if named else ''} {render(replace(node, name=None))}"


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare two summaries object by object, so that a failure is short."""
    for kind in wanted:
        assert found[kind].keys() == wanted[kind].keys()
        for name, what in wanted[kind].items():
            assert (name, found[kind][name]) == (name, what)


def fresh(declaration: str) -> Catalog:
    with quereus_store.connect(":memory:") as connection:
        connection.execute(declaration)
        connection.execute("apply schema")
        return connection.database.catalog


@settings(max_examples=12, deadline=None)
@given(st.lists(declarations(), min_size=2, max_size=3))
def test_every_way_leads_to_the_declared_schema(chain: list[str]) -> None:
    with quereus_store.connect(":memory:") as connection:
        before: set[str] = set()
        for declaration in chain:
            note(declaration)
            connection.execute(declaration)
            for (step,) in connection.execute("diff schema").fetchall():
                note(f"    {step}")
            connection.execute("apply schema")
            assert connection.execute("diff schema").fetchall() == []
            same(summary(connection.database.catalog), summary(fresh(declaration)))
            ordinary = {name for name in TABLES if f"table {name} (" in declaration}
            for name in ordinary:
                if name in before:
                    assert connection.execute(f"select id, k from {name}").fetchall() == [(1, 7)]
                else:
                    connection.execute(f"insert into {name} (id) values (1)")
            before = ordinary
            for table in connection.database.catalog.schemas["main"].tables.values():
                if table.derivation is not None:
                    kept = connection.execute(f"select * from {table.name}").fetchall()
                    assert kept == connection.execute(render(table.derivation.query)).fetchall()

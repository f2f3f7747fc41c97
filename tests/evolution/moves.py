"""Random statements for a model: the SQL, and what it must do to the model.

A move is drawn from what the model holds now, so that most statements mean something; names and values
are few, so that many are refused.  Left out is what the chapters do not settle or leave to the order of
work: foreign keys in a circle or two from one table, several keys moved at once, CHECKs
added over rows that break them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.evolution.model import Check, Column, ForeignKey, Index, Model, Row, Table, Test, Unique

TABLES = ("red", "green", "blue")
COLUMNS = ("id", "a", "b", "c", "d")
INDEXES = ("i1", "i2", "i3")
CONSTRAINTS = ("k1", "k2", "k3")
ACTIONS = ("restrict", "cascade", "set null")
VALUES: Mapping[str, tuple[Any, ...]] = {"integer": (None, 1, 2, 3, 4, 5), "text": (None, "x", "y", "1", "2")}

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Move:
    """A statement and its effect; ``counted`` if the effect gives the number of rows changed."""

    sql: str
    effect: Callable[[Model], Any]
    counted: bool = False


def literal(value: Any) -> str:
    """A value in SQL."""
    return "null" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


# --- rows -----------------------------------------------------------------------------------------------


def _row(draw: Draw, table: Table) -> Row:
    return {column.name: draw(st.sampled_from(VALUES[column.kind])) for column in table.columns}


def insert(draw: Draw, model: Model, table: Table) -> Move:
    """One or a few rows, plain or under a clause."""
    rows = [_row(draw, table) for _ in range(draw(st.sampled_from((1, 1, 2, 3))))]
    clauses = ["", "", "ignore", "nothing"]
    if not model.references(table):
        clauses.append("replace")
    settable = [name for name in table.names if name not in table.key]
    clauses += [f"update {name}" for name in settable[:1]]
    clause = draw(st.sampled_from(clauses))
    word = f" or {clause}" if clause in ("ignore", "replace") else ""
    tail = " on conflict do nothing" if clause == "nothing" else ""
    if clause.startswith("update "):
        column = clause.removeprefix("update ")
        tail = f" on conflict ({', '.join(table.key)}) do update set {column} = excluded.{column}"
    values = ", ".join(f"({', '.join(literal(value) for value in row.values())})" for row in rows)
    sql = f"insert{word} into {table.name} ({', '.join(table.names)}) values {values}{tail}"
    return Move(sql, lambda model: model.insert(model.tables[table.name], rows, clause), counted=True)


def _condition(draw: Draw, table: Table) -> tuple[str, Test]:
    column = draw(st.sampled_from(table.columns))
    value = draw(st.sampled_from(VALUES[column.kind][1:]))
    name = column.name
    if draw(st.booleans()):
        return f"{name} = {literal(value)}", lambda row: row[name] is not None and bool(row[name] == value)
    return f"{name} >= {literal(value)}", lambda row: row[name] is not None and bool(row[name] >= value)


def update(draw: Draw, model: Model, table: Table) -> Move:
    """One or two columns to constants; a key of one row only."""
    text, test = _condition(draw, table)
    names = draw(st.lists(st.sampled_from(table.names), min_size=1, max_size=2, unique=True))
    if sum(map(test, table.rows)) > 1:
        names = [name for name in names if name not in table.key] or [table.names[-1]]
        if names[0] in table.key:
            return delete(draw, model, table)
    values = {name: draw(st.sampled_from(VALUES[table.column(name).kind])) for name in names}
    assignments = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    return Move(
        f"update {table.name} set {assignments} where {text}",
        lambda model: model.update(model.tables[table.name], test, values),
        counted=True,
    )


def delete(draw: Draw, model: Model, table: Table) -> Move:
    """By a condition."""
    text, test = _condition(draw, table)
    return Move(
        f"delete from {table.name} where {text}",
        lambda model: model.delete(model.tables[table.name], test),
        counted=True,
    )


# --- tables ---------------------------------------------------------------------------------------------


def create_table(draw: Draw, model: Model) -> Move:
    """A table like all others at first; what makes it different comes by ALTER."""
    name = draw(st.sampled_from(TABLES))
    columns = [Column("id", "integer", False), Column("a", "integer", True), Column("b", "text", True)]
    sql = f"create table {name} (id integer primary key, a integer null, b text null)"
    return Move(sql, lambda model: model.create_table(Table(name, list(columns), ["id"])))


def drop_table(draw: Draw, model: Model, table: Table) -> Move:
    """A table that no foreign key is left dangling by."""
    children = model.references(table)
    if children and not any(row[key.column] is not None for child, key in children for row in child.rows):
        return delete(draw, model, table)
    return Move(f"drop table {table.name}", lambda model: model.drop_table(model.tables[table.name]))


def rename_table(draw: Draw, model: Model, table: Table) -> Move:
    """To a name that may be taken."""
    name = draw(st.sampled_from(TABLES))
    return Move(
        f"alter table {table.name} rename to {name}",
        lambda model: model.rename_table(model.tables[table.name], name),
    )


# --- columns --------------------------------------------------------------------------------------------


def add_column(draw: Draw, model: Model, table: Table) -> Move:
    """With or without a default, NULLs or a UNIQUE."""
    kind = draw(st.sampled_from(("integer", "text")))
    name = draw(st.sampled_from(COLUMNS))
    column = Column(name, kind, draw(st.booleans()), draw(st.sampled_from((None, *VALUES[kind]))))
    unique = draw(st.sampled_from((None, None, *CONSTRAINTS)))
    sql = f"alter table {table.name} add column {name} {kind} {'null' if column.null else 'not null'}"
    if column.default is not None:
        sql += f" default {literal(column.default)}"
    if unique is not None:
        sql += f" constraint {unique} unique"
    made = (name, kind, column.null, column.default)
    return Move(sql, lambda model: model.add_column(model.tables[table.name], Column(*made), unique))


def drop_column(draw: Draw, model: Model, table: Table) -> Move:
    """Any column, also one that is needed or missing."""
    name = draw(st.sampled_from(COLUMNS))
    return Move(
        f"alter table {table.name} drop column {name}",
        lambda model: model.drop_column(model.tables[table.name], name),
    )


def rename_column(draw: Draw, model: Model, table: Table) -> Move:
    """Any column to any name."""
    name, new = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(COLUMNS))
    return Move(
        f"alter table {table.name} rename column {name} to {new}",
        lambda model: model.rename_column(model.tables[table.name], name, new),
    )


def alter_column(draw: Draw, model: Model, table: Table) -> Move:
    """NOT NULL, DEFAULT and type."""
    column = draw(st.sampled_from(table.columns))
    name = column.name
    refers = any(key.column == name for key in table.foreign_keys)
    is_target = any(key.target == name for _, key in model.references(table))
    restricted = any(check.column == name for check in table.checks)
    restricted |= any(index.where is not None and index.where[0] == name for index in table.indexes)
    forms = ["drop not null", "set default", "drop default"]
    if not (refers or is_target or restricted):
        forms += ["set not null", "set data type"]
    form = draw(st.sampled_from(forms))
    tail = ""
    value = draw(st.sampled_from(VALUES[column.kind][1:]))
    kind = draw(st.sampled_from(("integer", "text")))
    if form == "set default":
        tail = " " + literal(value)
    elif form == "set data type":
        tail = " " + kind

    def effect(model: Model) -> None:
        owner = model.tables[table.name]
        if form == "set not null":
            model.set_not_null(owner, name)
        elif form == "set data type":
            model.set_type(owner, name, kind)
        elif form == "drop not null":
            owner.column(name).null = True
        else:
            owner.column(name).default = value if form == "set default" else None

    return Move(f"alter table {table.name} alter column {name} {form}{tail}", effect)


def alter_key(draw: Draw, model: Model, table: Table) -> Move:
    """Another primary key, of a table that nothing refers to."""
    if model.references(table):
        return delete(draw, model, table)
    columns = draw(st.lists(st.sampled_from(table.names), min_size=1, max_size=2, unique=True))
    return Move(
        f"alter table {table.name} alter primary key ({', '.join(columns)})",
        lambda model: model.alter_key(model.tables[table.name], list(columns)),
    )


# --- constraints and indexes ----------------------------------------------------------------------------


def add_constraint(draw: Draw, model: Model, table: Table) -> Move:
    """UNIQUE, CHECK or FOREIGN KEY."""
    name = draw(st.sampled_from(CONSTRAINTS))
    column = draw(st.sampled_from(table.columns))
    start = f"alter table {table.name} add constraint {name}"
    made: Callable[[], Unique | Check | ForeignKey]
    kind = draw(st.sampled_from(("unique", "check", "foreign key", "foreign key")))
    parents = [
        (parent, parent.key[0])
        for parent in model.tables.values()
        if parent.name > table.name
        and len(parent.key) == 1
        and parent.column(parent.key[0]).kind == column.kind == "integer"
    ]
    if kind == "foreign key" and parents and not table.foreign_keys and not _is_above(model, table, parents):
        parent, target = draw(st.sampled_from(parents))
        on_delete, on_update = draw(st.sampled_from(ACTIONS)), draw(st.sampled_from(ACTIONS))
        parts = (name, column.name, parent.name, target, on_delete, on_update)
        made = lambda: ForeignKey(*parts)  # noqa: E731
        start += f" foreign key ({column.name}) references {parent.name} ({target})"
        start += f" on delete {on_delete} on update {on_update}"
    elif kind == "check" and column.kind == "integer":
        bound = draw(st.sampled_from((4, 5, 6)))
        if not all(Check(name, column.name, bound).passes(row) for row in table.rows):
            bound = 6
        made = lambda: Check(name, column.name, bound)  # noqa: E731
        start += f" check ({column.name} < {bound})"
    else:
        columns = draw(st.lists(st.sampled_from(table.names), min_size=1, max_size=2, unique=True))
        made = lambda: Unique(name, list(columns))  # noqa: E731
        start += f" unique ({', '.join(columns)})"
    return Move(start, lambda model: model.add_constraint(model.tables[table.name], made()))


def _is_above(model: Model, table: Table, parents: list[tuple[Table, str]]) -> bool:
    """Whether a renamed table could close a circle of foreign keys."""
    below, ahead = {table.name}, [table]
    while ahead:
        for child, _ in model.references(ahead.pop()):
            if child.name not in below:
                below.add(child.name)
                ahead.append(child)
    return any(parent.name in below for parent, _ in parents)


def change_constraint(draw: Draw, model: Model, table: Table) -> Move:
    """DROP or RENAME of one that may not be there."""
    name, new = draw(st.sampled_from(CONSTRAINTS)), draw(st.sampled_from(CONSTRAINTS))
    if draw(st.booleans()):
        sql = f"alter table {table.name} drop constraint {name}"
        return Move(sql, lambda model: model.drop_constraint(model.tables[table.name], name))
    sql = f"alter table {table.name} rename constraint {name} to {new}"
    return Move(sql, lambda model: model.rename_constraint(model.tables[table.name], name, new))


def create_index(draw: Draw, model: Model, table: Table) -> Move:
    """Plain, unique or partial."""
    name = draw(st.sampled_from(INDEXES))
    columns = draw(st.lists(st.sampled_from(table.names), min_size=1, max_size=2, unique=True))
    unique = draw(st.booleans())
    numbers = [column.name for column in table.columns if column.kind == "integer"]
    where = (draw(st.sampled_from(numbers)), draw(st.sampled_from((1, 3)))) if numbers else None
    if draw(st.booleans()):
        where = None
    sql = f"create {'unique ' if unique else ''}index {name} on {table.name} ({', '.join(columns)})"
    if where is not None:
        sql += f" where {where[0]} > {where[1]}"
    return Move(
        sql,
        lambda model: model.create_index(model.tables[table.name], Index(name, list(columns), unique, where)),
    )


def drop_index(draw: Draw, model: Model, table: Table) -> Move:
    """One that may not be there."""
    name = draw(st.sampled_from(INDEXES))
    return Move(f"drop index {name}", lambda model: model.drop_index(name))


ROW_MOVES = (insert, insert, insert, update, update, delete)
SCHEMA_MOVES = (
    drop_table,
    rename_table,
    add_column,
    add_column,
    drop_column,
    rename_column,
    alter_column,
    alter_column,
    alter_key,
    add_constraint,
    add_constraint,
    add_constraint,
    change_constraint,
    create_index,
    create_index,
    drop_index,
)

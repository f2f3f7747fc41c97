"""A database as SQL: the statements that make its objects, and the rows as INSERTs.

The schema is printed in the form of a session with default options, so the dump can be run into a
file of any storage or into memory.  Rows stand between ``begin`` and ``commit``: references between
tables are judged when all rows are there.  Indexes and views follow the rows.

All of it is read in one transaction, so a dump is of one state of the database.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TextIO

from quereus_store.schema.builder import TableSettings
from quereus_store.schema.ddl import SessionForm, assertion_ddl, index_ddl, quote, table_ddl, view_ddl
from quereus_store.schema.logical import logical_statements
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.types.json import quote_string

if TYPE_CHECKING:
    from quereus_store.api.connection import Connection

_ROWS_A_STATEMENT = 50
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"\w+")
_TEMPORARY = "temp"


@dataclass(frozen=True, slots=True)
class SchemaItem:
    """One statement of the schema: the object it makes, and the table that object belongs to."""

    kind: str
    name: str
    table: str
    sql: str


def schema_statements(connection: Connection, database: str = "main") -> list[SchemaItem]:
    """The statements that make the schema of a database anew, in the order in which they have to run."""
    catalog = connection.session.catalog
    schemas = _schemas(catalog) if database == "main" else [catalog.schemas[database]]
    form = _session_form(connection, database)
    tables = [table for schema in schemas for table in schema.tables.values()]
    plain = [table for table in tables if table.derivation is None]
    derived = [table for table in tables if table.derivation is not None]
    items = [SchemaItem("table", table.name, table.name, table_ddl(table, form)) for table in plain]
    items += [item for table in plain for item in _indexes(table, form)]
    bodies = [SchemaItem("maintained table", table.name, table.name, table_ddl(table)) for table in derived]
    for schema in schemas:
        if schema.lens is None:
            bodies += [
                SchemaItem("view", view.name, view.name, view_ddl(view)) for view in schema.views.values()
            ]
    items += _in_order(bodies)
    items += [item for table in derived for item in _indexes(table, form)]
    for schema in schemas:
        items += [
            SchemaItem("assertion", assertion.name, assertion.name, assertion_ddl(assertion))
            for assertion in schema.assertions.values()
        ]
        if schema.lens is not None:
            items += [
                SchemaItem("logical schema", schema.name, "", text) for text in logical_statements(schema)
            ]
    return items


def dump_database(connection: Connection, stream: TextIO, *, rows: bool = True) -> None:
    """Write the whole database as a script; without ``rows`` the schema alone."""
    stream.writelines(f"{statement}\n" for statement in dump_statements(connection, rows=rows))


def dump_statements(connection: Connection, *, rows: bool = True) -> Iterator[str]:
    """The statements that make the whole database anew, each with its semicolon."""
    if connection.in_transaction:
        yield from _statements(connection, rows)
        return
    with connection.transaction():
        yield from _statements(connection, rows)


def _statements(connection: Connection, rows: bool) -> Iterator[str]:
    items = schema_statements(connection)
    catalog = connection.session.catalog
    for schema in _schemas(catalog):
        if schema.name != "main" and schema.lens is None:
            name = quote(schema.name)
            yield f"declare schema {name} {{ }};"
            yield f"apply schema {name};"
    yield from (f"{item.sql};" for item in items if item.kind == "table")
    if rows:
        yield "begin;"
        for table in _tables(catalog):
            if table.derivation is None:
                yield from table_inserts(connection, table)
        yield "commit;"
    yield from (f"{item.sql};" for item in items if item.kind != "table")


def table_inserts(connection: Connection, table: TableSchema) -> Iterator[str]:
    """The rows of a table as INSERT statements of some dozen rows each, in key order."""
    columns = [column for column in table.columns if column.generated is None]
    names = ", ".join(quote(column.name) for column in columns)
    json_columns = [column.type.name == "JSON" for column in columns]
    qualifier = "" if table.schema == "main" else f"{quote(table.schema)}."
    head = f"insert into {qualifier}{quote(table.name)} ({names}) values\n  "
    key = ", ".join(
        f"{quote(table.columns[part.column].name)}{' desc' if part.descending else ''}"
        for part in table.primary_key.parts
    )
    order = f" order by {key}" if key else ""
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(f"select {names} from {qualifier}{quote(table.name)}{order}")
    while batch := cursor.fetchmany(_ROWS_A_STATEMENT):
        yield head + ",\n  ".join(_row_text(row, json_columns) for row in batch) + ";"


def literal(value: Any) -> str:
    """The SQL expression that gives a value exactly."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text_literal(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, (dict, list)):
        return f"json({_json_literal(value)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan()" if math.isnan(value) else f"{'-' if value < 0 else ''}1e400"
    return repr(value)


def _row_text(row: Sequence[Any], json_columns: Sequence[bool]) -> str:
    cells = (
        _json_literal(value) if is_json and value is not None else literal(value)
        for value, is_json in zip(row, json_columns, strict=True)
    )
    return f"({', '.join(cells)})"


def _text_literal(text: str) -> str:
    """A text as a literal; what no file of UTF-8 can hold stands beside it as a call of ``char``."""
    parts = _SURROGATE.split(text)
    spelled = ["'" + part.replace("'", "''") + "'" for part in parts]
    for position, surrogate in enumerate(_SURROGATE.findall(text), 1):
        spelled[position] = f"char({ord(surrogate)}) || {spelled[position]}"
    return spelled[0] if len(spelled) == 1 else f"({' || '.join(spelled)})"


def _json_literal(value: Any) -> str:
    return literal(json_source(value))


def json_source(value: Any) -> str:
    """The JSON text that gives a document exactly; NaN alone, which JSON lacks, is ``null``."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{quote_string(key)}:{json_source(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_source, value))}]"
    if isinstance(value, str):
        return quote_string(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null" if math.isnan(value) else f"{'-' if value < 0 else ''}1e999"
    return json.dumps(value)


def _indexes(table: TableSchema, form: SessionForm) -> list[SchemaItem]:
    return [
        SchemaItem("index", index.name, table.name, index_ddl(index, table, form))
        for index in table.indexes
        if not index.hidden
    ]


def _in_order(items: list[SchemaItem]) -> list[SchemaItem]:
    """Views and maintained tables, each after those that its text names.

    A word that only looks like such a name costs nothing but a needless order; where it makes a
    circle, the order of the catalog is kept.
    """
    by_name = {item.name.lower(): item for item in items}
    needs = {
        name: {word for word in map(str.lower, _WORD.findall(item.sql)) if word in by_name and word != name}
        for name, item in by_name.items()
    }
    try:
        return [by_name[name] for name in TopologicalSorter(needs).static_order()]
    except CycleError:
        return items


def _schemas(catalog: Catalog) -> list[Any]:
    """What is kept in the database itself."""
    return [schema for name, schema in catalog.schemas.items() if name != _TEMPORARY and not schema.attached]


def _tables(catalog: Catalog) -> list[TableSchema]:
    return [table for schema in _schemas(catalog) for table in schema.tables.values()]


def _session_form(connection: Connection, database: str) -> SessionForm:
    engine = connection.database.engine
    attached = engine.attachments.databases.get(database)
    module = engine.default_module if attached is None else attached.module.name
    return SessionForm("main", TableSettings(default_module=module))

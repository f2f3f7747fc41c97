"""Schema objects as statements: the canonical DDL.

The text of an object is a fixed point: reading it back with
:mod:`quereus_store.schema.builder` gives an equal object, whose text is the same.  There are two
forms of it:

==================  ===================================  ============================================
detail              persisted (``session`` is None)      session
==================  ===================================  ============================================
schema qualifier    always                               only outside the current schema
nullability         on every column                      only where it differs from the session's
USING               always                               only where it differs from the session's
==================  ===================================  ============================================

Structural names are always quoted, all others only where they must be.  Generated names of CHECKs
and FOREIGN KEYs are printed; hidden indexes, constraints that an index brings, and the
all-columns key of a table that declares none are not, since they come back by themselves.

Chapter: alter-and-ddl-lifecycle, section 14; seed: schema, DDL Generation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quereus_store.schema.builder import TableSettings
from quereus_store.schema.constraints import exposed_indexes
from quereus_store.schema.objects import (
    AssertionSchema,
    CheckConstraint,
    CollationRank,
    ColumnSchema,
    ConflictAction,
    ForeignKey,
    IndexPart,
    IndexSchema,
    KeyPart,
    Operation,
    TableSchema,
    Tags,
    UniqueConstraint,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.sql.renderer import quote_identifier, quote_text, render, render_default, render_expression
from quereus_store.types.logical import LogicalType

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPERATIONS = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


@dataclass(frozen=True, slots=True)
class SessionForm:
    """What a session takes for granted, and so need not be said to it."""

    current_schema: str = "main"
    settings: TableSettings = field(default_factory=TableSettings)


# --- objects ----------------------------------------------------------------------------------------------


def table_ddl(table: TableSchema, session: SessionForm | None = None, *, omits_module: bool = False) -> str:
    """CREATE TABLE; a maintained table has only the persisted form.

    ``omits_module`` leaves out a USING without arguments, for a session that takes the module for granted.
    """
    if table.derivation is not None:
        session = None
    elements = [_column(table, position, session) for position in range(len(table.columns))]
    elements += _table_key(table)
    elements += map(render, _constraints(table))
    text = f"CREATE TABLE {_qualified(table.schema, table.name, session)} ({', '.join(elements)})"
    if not omits_module or table.module_arguments:
        text += _using(table, session)
    if table.derivation is not None:
        clause = nodes.MaintainedClause(table.derivation.query, table.derivation.columns or ())
        text += f" {render(clause)}"
    if table.context:
        variables = (
            f"{quote(variable.name)} {_type(variable.type)}{' NULL' if variable.nullable else ''}"
            for variable in table.context
        )
        text += f" WITH CONTEXT ({', '.join(variables)})"
    return text + _tags(table.tags)


def index_ddl(index: IndexSchema, table: TableSchema, session: SessionForm | None = None) -> str:
    """CREATE INDEX of a user's index."""
    unique = "UNIQUE " if index.unique else ""
    parts = ", ".join(_index_part(part, table) for part in index.parts)
    where = "" if index.where is None else f" WHERE {render_expression(index.where)}"
    on = _qualified(table.schema, table.name, session)
    return f"CREATE {unique}INDEX {quote(index.name)} ON {on} ({parts}){where}{_tags(index.tags)}"


def index_tags_ddl(schema: str, index: IndexSchema) -> str:
    """The statement that gives an exposed hidden index its tags."""
    name = nodes.ObjectName(index.name, schema)
    change = nodes.TagChange(nodes.TagOperation.SET, _tag_nodes(index.tags))
    return render(nodes.AlterObjectTags(nodes.ObjectKind.INDEX, name, change))


def table_bundle(table: TableSchema) -> tuple[str, ...]:
    """All statements that make a table anew, in the order in which they have to run."""
    statements = [table_ddl(table)]
    statements += [index_ddl(index, table) for index in table.indexes if not index.hidden]
    statements += [index_tags_ddl(table.schema, index) for index in exposed_indexes(table) if index.tags]
    return tuple(statements)


def view_ddl(view: ViewSchema) -> str:
    """CREATE VIEW, always qualified."""
    name = nodes.ObjectName(view.name, view.schema)
    return render(nodes.CreateView(name, view.query, view.columns or (), _tag_nodes(view.tags)))


def assertion_ddl(assertion: AssertionSchema) -> str:
    """CREATE ASSERTION, qualified outside ``main``."""
    name = quote_identifier(assertion.name)
    if fold(assertion.schema) != "main":
        name = f"{quote_identifier(assertion.schema)}.{name}"
    return f"CREATE ASSERTION {name} CHECK ({render_expression(assertion.expression)})"


# --- columns and keys -------------------------------------------------------------------------------------


def _column(table: TableSchema, position: int, session: SessionForm | None) -> str:
    column = table.columns[position]
    text = f"{quote(column.name)} {_type(column.type)}{_nullability(column, session)}"
    if column.collation != "BINARY" or column.collation_rank is CollationRank.DECLARED:
        text += f" COLLATE {quote_identifier(column.collation)}"
    text += _inline_key(table, position)
    if column.default is not None:
        text += f" DEFAULT {render_default(column.default)}"
    if column.generated is not None:
        storage = "STORED" if column.stored else "VIRTUAL"
        text += f" GENERATED ALWAYS AS ({render_expression(column.generated)}) {storage}"
    return text + _tags(column.tags)


def _nullability(column: ColumnSchema, session: SessionForm | None) -> str:
    stated = session is None or column.nullable != session.settings.nullable_by_default
    if column.nullable:
        return " NULL" if stated else ""
    if column.not_null_conflict is not None:
        return f" NOT NULL{_on_conflict(column.not_null_conflict)}"
    return " NOT NULL" if stated else ""


def _type(logical_type: LogicalType) -> str:
    return logical_type.name if _BARE.match(logical_type.name) else quote(logical_type.name)


def _single_part(table: TableSchema) -> KeyPart | None:
    """The part of a key that can be said at its column, as an ON CONFLICT of the table's key cannot."""
    key = table.primary_key
    if key.declared and len(key.parts) == 1 and (key.conflict is None or key.of_column):
        part = key.parts[0]
        if part.collation == table.columns[part.column].collation:
            return part
    return None


def _inline_key(table: TableSchema, position: int) -> str:
    part = _single_part(table)
    if part is None or part.column != position:
        return ""
    direction = " DESC" if part.descending else ""
    return f" PRIMARY KEY{direction}{_on_conflict(table.primary_key.conflict)}"


def _table_key(table: TableSchema) -> Iterator[str]:
    key = table.primary_key
    if key.declared and _single_part(table) is None:
        parts = ", ".join(_key_part(table, part) for part in key.parts)
        yield f"PRIMARY KEY ({parts}){_on_conflict(key.conflict)}"


def _key_part(table: TableSchema, part: KeyPart) -> str:
    column = table.columns[part.column]
    collation = "" if part.collation == column.collation else f" COLLATE {quote_identifier(part.collation)}"
    return f"{quote(column.name)}{collation}{' DESC' if part.descending else ''}"


def _index_part(part: IndexPart, table: TableSchema) -> str:
    if part.column is not None:
        text = quote(table.columns[part.column].name)
    else:
        assert part.expression is not None
        text = f"({render_expression(part.expression)})"
    return f"{text} COLLATE {quote_identifier(part.collation)}{' DESC' if part.descending else ''}"


def _on_conflict(action: ConflictAction | None) -> str:
    return "" if action is None else f" ON CONFLICT {action.upper()}"


# --- constraints ------------------------------------------------------------------------------------------


def _constraints(table: TableSchema) -> Iterator[nodes.Constraint]:
    for check in table.checks:
        yield check_node(check)
    for unique in table.unique_constraints:
        if not unique.from_index:
            yield unique_node(table, unique)
    for key in table.foreign_keys:
        yield foreign_key_node(table, key)


def check_node(check: CheckConstraint) -> nodes.CheckConstraint:
    """A CHECK as the clause that makes it."""
    operations = tuple(
        nodes.RowOperation(operation.value) for operation in _OPERATIONS if operation in check.operations
    )
    return nodes.CheckConstraint(
        check.expression,
        operations,
        _action_node(check.conflict),
        name=None if check.positional else check.name,
        tags=_tag_nodes(check.tags),
    )


def unique_node(table: TableSchema, unique: UniqueConstraint) -> nodes.UniqueConstraint:
    """A UNIQUE as the clause that makes it."""
    return nodes.UniqueConstraint(
        tuple(table.columns[column].name for column in unique.columns),
        _action_node(unique.conflict),
        name=unique.name if unique.named else None,
        tags=_tag_nodes(unique.tags),
    )


def foreign_key_node(table: TableSchema, key: ForeignKey) -> nodes.ForeignKeyConstraint:
    """A FOREIGN KEY as the clause that makes it."""
    reference = nodes.ForeignKeyReference(
        nodes.ObjectName(key.parent_table, key.parent_schema),
        key.parent_columns or (),
        nodes.ReferentialAction(key.on_delete.value),
        nodes.ReferentialAction(key.on_update.value),
        deferrable=True if key.deferred else None,
        initially_deferred=True if key.deferred else None,
    )
    columns = tuple(table.columns[column].name for column in key.columns)
    return nodes.ForeignKeyConstraint(columns, reference, name=key.name, tags=_tag_nodes(key.tags))


def _action_node(action: ConflictAction | None) -> nodes.ConflictAction | None:
    return None if action is None else nodes.ConflictAction(action.value)


# --- names, modules, tags ---------------------------------------------------------------------------------


def quote(name: str) -> str:
    """A structural name, quoted whether it must be or not."""
    return '"' + name.replace('"', '""') + '"'


def _qualified(schema: str, name: str, session: SessionForm | None) -> str:
    if session is not None and fold(session.current_schema) == fold(schema):
        return quote(name)
    return f"{quote(schema)}.{quote(name)}"


def _using(table: TableSchema, session: SessionForm | None) -> str:
    if session is not None:
        settings = session.settings
        usual = (settings.default_module, dict(settings.default_module_arguments))
        if (table.module, dict(table.module_arguments)) == usual:
            return ""
    arguments = ", ".join(
        _literal(value) if name.isdigit() else f"{quote_identifier(name)} = {_literal(value)}"
        for name, value in table.module_arguments.items()
    )
    return f" USING {quote_identifier(table.module)}{f' ({arguments})' if arguments else ''}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return quote_text(value)
    return render_expression(nodes.Literal.of(value))


def _tags(tags: Tags) -> str:
    return f" WITH TAGS ({', '.join(_tag_texts(tags))})" if tags else ""


def _tag_texts(tags: Mapping[str, Any]) -> Iterable[str]:
    for key, value in tags.items():
        text = quote_text(value) if isinstance(value, str) else render_expression(nodes.Literal.of(value))
        yield f"{quote_identifier(key)} = {text if isinstance(value, str) else text.upper()}"


def _tag_nodes(tags: Tags) -> tuple[nodes.Tag, ...]:
    return tuple(nodes.Tag(key, nodes.Literal.of(value)) for key, value in tags.items())

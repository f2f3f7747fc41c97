"""Rules for CREATE, DROP, ALTER and declarations: all lower case, names quoted only where needed.

This is the declared form of alter-and-ddl-lifecycle, section 14; the persisted form is
the catalog's affair and takes its constraint and expression fragments from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.sql.nodes import (
    CheckConstraint,
    Collate,
    CollateConstraint,
    ColumnDefinition,
    ColumnPrimaryKey,
    ColumnReferences,
    ColumnUnique,
    ConflictAction,
    Constraint,
    ContextVariable,
    CreateAssertion,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    DefaultConstraint,
    DropObject,
    Expression,
    ForeignKeyConstraint,
    ForeignKeyReference,
    GeneratedConstraint,
    GeneratedStorage,
    IndexedColumn,
    KeyColumn,
    MaintainedClause,
    ModuleArgument,
    ModuleClause,
    NotNullConstraint,
    NullConstraint,
    ObjectName,
    PrimaryKeyConstraint,
    RefreshMaterializedView,
    UniqueConstraint,
)
from quereus_store.sql.renderer.base import (
    Renderer,
    Rule,
    name_list,
    optional_columns,
    qualified,
    quote_identifier,
)
from quereus_store.sql.renderer.expressions import PRIMARY, operand_text
from quereus_store.sql.renderer.queries import tags_clause
from quereus_store.sql.traversal import walk


def _object_name(renderer: Renderer, node: ObjectName) -> str:
    return qualified(node.schema, node.name)


def _on_conflict(action: ConflictAction | None) -> str:
    return "" if action is None else f" on conflict {action}"


def _constraint(renderer: Renderer, node: Constraint, text: str) -> str:
    """A constraint's text with its name and tags."""
    name = "" if node.name is None else f"constraint {quote_identifier(node.name)} "
    return name + text + tags_clause(renderer, node.tags)


# Column constraints


def _null(renderer: Renderer, node: NullConstraint) -> str:
    return _constraint(renderer, node, "null")


def _not_null(renderer: Renderer, node: NotNullConstraint) -> str:
    return _constraint(renderer, node, f"not null{_on_conflict(node.conflict_action)}")


def _column_key(renderer: Renderer, node: ColumnPrimaryKey) -> str:
    direction = " desc" if node.descending else ""
    return _constraint(renderer, node, f"primary key{direction}{_on_conflict(node.conflict_action)}")


def _column_unique(renderer: Renderer, node: ColumnUnique) -> str:
    return _constraint(renderer, node, f"unique{_on_conflict(node.conflict_action)}")


def _check(renderer: Renderer, node: CheckConstraint) -> str:
    on = f" on {', '.join(node.operations)}" if node.operations else ""
    action = _on_conflict(node.conflict_action)
    return _constraint(renderer, node, f"check{on} ({renderer.text(node.expression)}){action}")


def _default(renderer: Renderer, node: DefaultConstraint) -> str:
    return _constraint(renderer, node, f"default {default_text(renderer, node.expression)}")


def default_text(renderer: Renderer, expression: Expression) -> str:
    """What stands after DEFAULT: a COLLATE of the expression itself is kept from being the column's."""
    text = renderer.text(expression)
    collates = any(isinstance(node, Collate) for node in walk(expression))
    return f"({text})" if collates else text


def _collation(renderer: Renderer, node: CollateConstraint) -> str:
    return _constraint(renderer, node, f"collate {quote_identifier(node.collation)}")


def _generated(renderer: Renderer, node: GeneratedConstraint) -> str:
    storage = " stored" if node.storage is GeneratedStorage.STORED else ""
    text = f"generated always as ({renderer.text(node.expression)}){storage}"
    return _constraint(renderer, node, text)


def _column_references(renderer: Renderer, node: ColumnReferences) -> str:
    return _constraint(renderer, node, renderer.text(node.reference))


def _reference(renderer: Renderer, node: ForeignKeyReference) -> str:
    text = f"references {renderer.text(node.table)}{name_list(node.columns) if node.columns else ''}"
    if node.on_delete is not None:
        text += f" on delete {node.on_delete}"
    if node.on_update is not None:
        text += f" on update {node.on_update}"
    if node.deferrable is not None:
        text += " deferrable" if node.deferrable else " not deferrable"
    if node.initially_deferred is not None:
        text += f" initially {'deferred' if node.initially_deferred else 'immediate'}"
    return text


# Table constraints


def _primary_key(renderer: Renderer, node: PrimaryKeyConstraint) -> str:
    text = f"primary key {renderer.parenthesised(node.columns)}{_on_conflict(node.conflict_action)}"
    return _constraint(renderer, node, text)


def _key_column(renderer: Renderer, node: KeyColumn) -> str:
    collation = "" if node.collation is None else f" collate {quote_identifier(node.collation)}"
    return f"{quote_identifier(node.name)}{collation}{' desc' if node.descending else ''}"


def _unique(renderer: Renderer, node: UniqueConstraint) -> str:
    text = f"unique {name_list(node.columns)}{_on_conflict(node.conflict_action)}"
    return _constraint(renderer, node, text)


def _foreign_key(renderer: Renderer, node: ForeignKeyConstraint) -> str:
    text = f"foreign key {name_list(node.columns)} {renderer.text(node.reference)}"
    return _constraint(renderer, node, text)


# Columns and tables


def _column(renderer: Renderer, node: ColumnDefinition) -> str:
    parts = [quote_identifier(node.name)]
    if node.type_name is not None:
        parts.append(renderer.text(node.type_name))
    constraints = list(map(renderer.text, _readable_order(node.constraints)))
    tags = [tags_clause(renderer, node.tags).strip()] if node.tags else []
    # After a named constraint without tags, the column's tags would be read as its own.
    last = node.constraints[-1] if node.constraints else None
    early = last is not None and last.name is not None and not last.tags
    return " ".join(parts + (tags + constraints if early else constraints + tags))


def _readable_order(constraints: tuple[Constraint, ...]) -> list[Constraint]:
    """The constraints with a COLLATE moved before a DEFAULT that would take it for its own."""
    ordered: list[Constraint] = []
    for constraint in constraints:
        taken = (
            isinstance(constraint, CollateConstraint)
            and constraint.name is None
            and bool(ordered)
            and isinstance(ordered[-1], DefaultConstraint)
            and not isinstance(ordered[-1].expression, Collate)
        )
        ordered.insert(len(ordered) - taken, constraint)
    return ordered


def _module(renderer: Renderer, node: ModuleClause) -> str:
    arguments = f" {renderer.parenthesised(node.arguments)}" if node.arguments else ""
    return f"using {quote_identifier(node.name)}{arguments}"


def _module_argument(renderer: Renderer, node: ModuleArgument) -> str:
    value = renderer.text(node.value)
    return value if node.name is None else f"{quote_identifier(node.name)} = {value}"


def _context_variable(renderer: Renderer, node: ContextVariable) -> str:
    type_name = renderer.optional(" ", node.type_name)
    return f"{quote_identifier(node.name)}{type_name}{' null' if node.nullable else ''}"


def _maintained(renderer: Renderer, node: MaintainedClause) -> str:
    return f"maintained{optional_columns(node.columns)} as {renderer.text(node.query)}"


def _exists_clause(if_not_exists: bool) -> str:
    return "if not exists " if if_not_exists else ""


def table_definition(renderer: Renderer, node: CreateTable) -> str:
    """A table from its name on."""
    text = renderer.text(node.name)
    if node.columns or node.constraints:
        text += f" {renderer.parenthesised((*node.columns, *node.constraints))}"
    text += renderer.optional(" ", node.module) + renderer.optional(" ", node.maintained)
    text += renderer.optional(" as ", node.query)
    if node.context:
        text += f" with context {renderer.parenthesised(node.context)}"
    return text + tags_clause(renderer, node.tags)


def index_definition(renderer: Renderer, node: CreateIndex) -> str:
    """An index from its name on."""
    text = f"{renderer.text(node.name)} on {renderer.text(node.table)} {renderer.parenthesised(node.columns)}"
    return text + renderer.optional(" where ", node.where) + tags_clause(renderer, node.tags)


def view_definition(renderer: Renderer, node: CreateView | CreateMaterializedView) -> str:
    """A view, plain or materialized, from its name on."""
    text = renderer.text(node.name) + optional_columns(node.columns)
    if isinstance(node, CreateMaterializedView):
        text += renderer.optional(" ", node.module)
    return f"{text} as {renderer.text(node.query)}{tags_clause(renderer, node.tags)}"


def assertion_definition(renderer: Renderer, node: CreateAssertion) -> str:
    """An assertion from its name on."""
    return f"{renderer.text(node.name)} check ({renderer.text(node.expression)})"


def _create_table(renderer: Renderer, node: CreateTable) -> str:
    return f"create table {_exists_clause(node.if_not_exists)}{table_definition(renderer, node)}"


def _create_index(renderer: Renderer, node: CreateIndex) -> str:
    unique = "unique " if node.unique else ""
    return f"create {unique}index {_exists_clause(node.if_not_exists)}{index_definition(renderer, node)}"


def _indexed_column(renderer: Renderer, node: IndexedColumn) -> str:
    if node.collation is None:
        text = renderer.text(node.expression)
    else:
        # In parentheses unless it is a bare column, else COLLATE would bind to its last operand.
        text = operand_text(renderer, node.expression, PRIMARY)
        text += f" collate {quote_identifier(node.collation.lower())}"
    return f"{text} desc" if node.descending else text


def _create_view(renderer: Renderer, node: CreateView) -> str:
    return f"create view {_exists_clause(node.if_not_exists)}{view_definition(renderer, node)}"


def _create_materialized_view(renderer: Renderer, node: CreateMaterializedView) -> str:
    definition = view_definition(renderer, node)
    return f"create materialized view {_exists_clause(node.if_not_exists)}{definition}"


def _create_assertion(renderer: Renderer, node: CreateAssertion) -> str:
    return f"create assertion {_exists_clause(node.if_not_exists)}{assertion_definition(renderer, node)}"


def _drop(renderer: Renderer, node: DropObject) -> str:
    return f"drop {node.kind} {'if exists ' if node.if_exists else ''}{renderer.text(node.name)}"


def _refresh(renderer: Renderer, node: RefreshMaterializedView) -> str:
    return f"refresh materialized view {renderer.text(node.name)}"


DEFINITION_RULES: Mapping[type[Any], Rule] = MappingProxyType(
    {
        CheckConstraint: _check,
        CollateConstraint: _collation,
        ColumnDefinition: _column,
        ColumnPrimaryKey: _column_key,
        ColumnReferences: _column_references,
        ColumnUnique: _column_unique,
        ContextVariable: _context_variable,
        CreateAssertion: _create_assertion,
        CreateIndex: _create_index,
        CreateMaterializedView: _create_materialized_view,
        CreateTable: _create_table,
        CreateView: _create_view,
        DefaultConstraint: _default,
        DropObject: _drop,
        ForeignKeyConstraint: _foreign_key,
        ForeignKeyReference: _reference,
        GeneratedConstraint: _generated,
        IndexedColumn: _indexed_column,
        KeyColumn: _key_column,
        MaintainedClause: _maintained,
        ModuleArgument: _module_argument,
        ModuleClause: _module,
        NotNullConstraint: _not_null,
        NullConstraint: _null,
        ObjectName: _object_name,
        PrimaryKeyConstraint: _primary_key,
        RefreshMaterializedView: _refresh,
        UniqueConstraint: _unique,
    }
)

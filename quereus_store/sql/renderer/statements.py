"""Rules for ALTER, declared schemas, transactions and the other commands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.sql.nodes import (
    AddColumn,
    AddConstraint,
    AlterObjectTags,
    AlterPrimaryKey,
    AlterTable,
    Analyze,
    ApplySchema,
    Attach,
    BeginTransaction,
    ChangeTags,
    CommitTransaction,
    CreateAssertion,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    DeclaredItem,
    DeclareLens,
    DeclareSchema,
    Detach,
    DiffSchema,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropMaintained,
    DropNotNull,
    Explain,
    ExplainSchema,
    IgnoredItem,
    LensOverride,
    Pragma,
    ReleaseSavepoint,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    RollbackTransaction,
    Savepoint,
    SeedData,
    SetCollation,
    SetDataType,
    SetDefault,
    SetMaintained,
    SetNotNull,
    TagChange,
    TagOperation,
)
from quereus_store.sql.renderer.base import (
    Renderer,
    Rule,
    name_list,
    optional_columns,
    qualified,
    quote_identifier,
    quote_text,
)
from quereus_store.sql.renderer.definitions import (
    assertion_definition,
    index_definition,
    table_definition,
    view_definition,
)

# ALTER


def _alter_table(renderer: Renderer, node: AlterTable) -> str:
    return f"alter table {renderer.text(node.name)} {renderer.text(node.action)}"


def _alter_object_tags(renderer: Renderer, node: AlterObjectTags) -> str:
    return f"alter {node.kind} {renderer.text(node.name)} {renderer.text(node.change)}"


def _tag_change(renderer: Renderer, node: TagChange) -> str:
    dropped = node.operation is TagOperation.DROP
    tags = name_list(node.keys) if dropped else renderer.parenthesised(node.tags)
    return f"{node.operation} tags {tags}"


def _rename_table(renderer: Renderer, node: RenameTable) -> str:
    return f"rename to {quote_identifier(node.new_name)}"


def _rename_column(renderer: Renderer, node: RenameColumn) -> str:
    return f"rename column {quote_identifier(node.old_name)} to {quote_identifier(node.new_name)}"


def _rename_constraint(renderer: Renderer, node: RenameConstraint) -> str:
    return f"rename constraint {quote_identifier(node.old_name)} to {quote_identifier(node.new_name)}"


def _add_column(renderer: Renderer, node: AddColumn) -> str:
    return f"add column {renderer.text(node.definition)}"


def _add_constraint(renderer: Renderer, node: AddConstraint) -> str:
    return f"add {renderer.text(node.constraint)}"


def _drop_column(renderer: Renderer, node: DropColumn) -> str:
    return f"drop column {quote_identifier(node.column)}"


def _drop_constraint(renderer: Renderer, node: DropConstraint) -> str:
    return f"drop constraint {quote_identifier(node.constraint)}"


def _alter_primary_key(renderer: Renderer, node: AlterPrimaryKey) -> str:
    return f"alter primary key {renderer.parenthesised(node.columns)}"


def _alter_column(column: str, change: str) -> str:
    return f"alter column {quote_identifier(column)} {change}"


def _set_not_null(renderer: Renderer, node: SetNotNull) -> str:
    return _alter_column(node.column, "set not null")


def _drop_not_null(renderer: Renderer, node: DropNotNull) -> str:
    return _alter_column(node.column, "drop not null")


def _set_data_type(renderer: Renderer, node: SetDataType) -> str:
    return _alter_column(node.column, f"set data type {renderer.text(node.type_name)}")


def _set_default(renderer: Renderer, node: SetDefault) -> str:
    return _alter_column(node.column, f"set default {renderer.text(node.expression)}")


def _drop_default(renderer: Renderer, node: DropDefault) -> str:
    return _alter_column(node.column, "drop default")


def _set_collation(renderer: Renderer, node: SetCollation) -> str:
    return _alter_column(node.column, f"set collate {quote_identifier(node.collation)}")


def _change_tags(renderer: Renderer, node: ChangeTags) -> str:
    change = renderer.text(node.change)
    if node.column is not None:
        return _alter_column(node.column, change)
    if node.constraint is not None:
        return f"alter constraint {quote_identifier(node.constraint)} {change}"
    return change


def _set_maintained(renderer: Renderer, node: SetMaintained) -> str:
    return f"set maintained{optional_columns(node.columns)} as {renderer.text(node.query)}"


def _drop_maintained(renderer: Renderer, node: DropMaintained) -> str:
    return "drop maintained"


# Declared schemas


def _declare_schema(renderer: Renderer, node: DeclareSchema) -> str:
    text = f"declare {'logical ' if node.logical else ''}schema {quote_identifier(node.name)}"
    if node.version is not None:
        text += f" version {quote_text(node.version)}"
    if node.settings:
        text += f" using {renderer.parenthesised(node.settings)}"
    items = "".join(f" {_declared_item(renderer, item)};" for item in node.items)
    return f"{text} {{{items} }}"


def _declared_item(renderer: Renderer, item: DeclaredItem) -> str:
    match item:
        case CreateTable():
            return f"table {table_definition(renderer, item)}"
        case CreateIndex():
            return f"{'unique ' if item.unique else ''}index {index_definition(renderer, item)}"
        case CreateView():
            return f"view {view_definition(renderer, item)}"
        case CreateMaterializedView():
            return f"materialized view {view_definition(renderer, item)}"
        case CreateAssertion():
            return f"assertion {assertion_definition(renderer, item)}"
        case _:
            return renderer.text(item)


def _seed(renderer: Renderer, node: SeedData) -> str:
    rows = ", ".join(map(renderer.parenthesised, node.rows))
    if node.columns:
        return f"seed {quote_identifier(node.table)} {name_list(node.columns)} values {rows}"
    return f"seed {quote_identifier(node.table)} ({rows})"


def _ignored(renderer: Renderer, node: IgnoredItem) -> str:
    return node.text


def _declare_lens(renderer: Renderer, node: DeclareLens) -> str:
    overrides = "".join(f" {renderer.text(override)};" for override in node.overrides)
    head = f"declare lens for {quote_identifier(node.schema)} over {quote_identifier(node.basis)}"
    return f"{head} {{{overrides} }}"


def _lens_override(renderer: Renderer, node: LensOverride) -> str:
    return f"view {quote_identifier(node.table)} as {renderer.text(node.query)}"


def _optional_name(name: str | None) -> str:
    return "" if name is None else f" {quote_identifier(name)}"


def _diff_schema(renderer: Renderer, node: DiffSchema) -> str:
    return f"diff schema{_optional_name(node.name)}"


def _apply_schema(renderer: Renderer, node: ApplySchema) -> str:
    text = f"apply schema{_optional_name(node.name)}"
    if node.version is not None:
        text += f" to version {quote_text(node.version)}"
    if node.options:
        text += f" options {renderer.parenthesised(node.options)}"
    return f"{text} with seed" if node.with_seed else text


def _explain_schema(renderer: Renderer, node: ExplainSchema) -> str:
    version = "" if node.version is None else f" version {quote_text(node.version)}"
    return f"explain schema{_optional_name(node.name)}{version}"


# Commands


def _begin(renderer: Renderer, node: BeginTransaction) -> str:
    return "begin" if node.mode is None else f"begin {node.mode}"


def _commit(renderer: Renderer, node: CommitTransaction) -> str:
    return "commit"


def _rollback(renderer: Renderer, node: RollbackTransaction) -> str:
    return "rollback" if node.savepoint is None else f"rollback to {quote_identifier(node.savepoint)}"


def _savepoint(renderer: Renderer, node: Savepoint) -> str:
    return f"savepoint {quote_identifier(node.name)}"


def _release(renderer: Renderer, node: ReleaseSavepoint) -> str:
    return f"release {quote_identifier(node.name)}"


def _attach(renderer: Renderer, node: Attach) -> str:
    options = f" ({renderer.list(node.options)})" if node.options else ""
    return f"attach {renderer.text(node.file)} as {quote_identifier(node.name)}{options}"


def _detach(renderer: Renderer, node: Detach) -> str:
    return f"detach {quote_identifier(node.name)}"


def _pragma(renderer: Renderer, node: Pragma) -> str:
    return f"pragma {quote_identifier(node.name)}{renderer.optional(' = ', node.value)}"


def _analyze(renderer: Renderer, node: Analyze) -> str:
    if node.table is None and node.schema is None:
        return "analyze"
    if node.table is None:
        return f"analyze {qualified(node.schema)}.*"
    return f"analyze {qualified(node.schema, node.table)}"


def _explain(renderer: Renderer, node: Explain) -> str:
    return f"explain {node.kind} {renderer.text(node.statement)}"


STATEMENT_RULES: Mapping[type[Any], Rule] = MappingProxyType(
    {
        AddColumn: _add_column,
        AddConstraint: _add_constraint,
        AlterObjectTags: _alter_object_tags,
        AlterPrimaryKey: _alter_primary_key,
        AlterTable: _alter_table,
        Analyze: _analyze,
        ApplySchema: _apply_schema,
        Attach: _attach,
        BeginTransaction: _begin,
        ChangeTags: _change_tags,
        CommitTransaction: _commit,
        DeclareLens: _declare_lens,
        DeclareSchema: _declare_schema,
        Detach: _detach,
        DiffSchema: _diff_schema,
        DropColumn: _drop_column,
        DropConstraint: _drop_constraint,
        DropDefault: _drop_default,
        DropMaintained: _drop_maintained,
        DropNotNull: _drop_not_null,
        Explain: _explain,
        ExplainSchema: _explain_schema,
        IgnoredItem: _ignored,
        LensOverride: _lens_override,
        Pragma: _pragma,
        ReleaseSavepoint: _release,
        RenameColumn: _rename_column,
        RenameConstraint: _rename_constraint,
        RenameTable: _rename_table,
        RollbackTransaction: _rollback,
        Savepoint: _savepoint,
        SeedData: _seed,
        SetCollation: _set_collation,
        SetDataType: _set_data_type,
        SetDefault: _set_default,
        SetMaintained: _set_maintained,
        SetNotNull: _set_not_null,
        TagChange: _tag_change,
    }
)

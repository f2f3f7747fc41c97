"""From CREATE statements to schema objects.

:func:`build_table`, :func:`build_index`, :func:`build_view` and :func:`build_assertion` are pure:
they look at a tree, the settings of the session and what collations, types and modules exist, and
return a value or raise.  Whether a name is free is the catalog's business
(:mod:`quereus_store.schema.manager`); what needs the binder is done by the caller in
``check_expressions``, which is called at its place in the order of the checks.

Chapter: alter-and-ddl-lifecycle, sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.schema.clauses import (
    all_columns_key,
    check_constraint,
    column_position,
    conflict_of,
    foreign_key,
    key_parts,
    module_arguments,
    tags_of,
    type_text,
    unique_constraint,
)
from quereus_store.schema.constraints import (
    check_backing_names,
    check_equivalent,
    hidden_index,
    number_checks,
)
from quereus_store.schema.expressions import (
    check_check,
    check_default,
    check_index_expression,
    check_literal_default,
    check_predicate,
    generation_order,
)
from quereus_store.schema.objects import (
    NO_TAGS,
    AssertionSchema,
    CollationRank,
    ColumnSchema,
    ContextVariable,
    Derivation,
    IndexPart,
    IndexSchema,
    KeyPart,
    PrimaryKey,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.types.collations import CollationRegistry
from quereus_store.types.logical import LogicalType, TypeRegistry


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What the session says about things that a CREATE TABLE leaves open.

    The defaults are those under which canonical DDL is read back.
    """

    nullable_by_default: bool = False
    default_collation: str = "BINARY"
    default_module: str = "memory"
    default_module_arguments: Mapping[str, Any] = field(default_factory=lambda: NO_TAGS)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What exists around a table that is being defined.

    ``find_module`` gives the registered name of a module, None for an unknown one.
    ``check_expressions`` is the caller's own check of the expressions of a finished table.
    """

    collations: CollationRegistry = field(default_factory=CollationRegistry)
    types: TypeRegistry = field(default_factory=TypeRegistry)
    find_module: Callable[[str], str | None] = str
    check_expressions: Callable[[TableSchema], None] | None = None


# --- tables -----------------------------------------------------------------------------------------------


def build_table(
    node: nodes.CreateTable,
    *,
    schema_name: str,
    settings: TableSettings | None = None,
    surroundings: Surroundings | None = None,
    columns: Sequence[ColumnSchema] | None = None,
) -> TableSchema:
    """The table that a CREATE TABLE describes.

    ``columns`` are given for a table whose columns come from a query (maintained, or AS).
    Raises ERROR, CONSTRAINT or MISMATCH with the messages of alter-and-ddl-lifecycle, section 3.
    """
    builder = _TableBuilder(node, schema_name, settings or TableSettings(), surroundings or Surroundings())
    try:
        return builder.build(columns)
    except Error as error:
        error.located(node.position)
        raise


def check_columns(node: nodes.CreateTable) -> None:
    """No two columns of one name (ERROR)."""
    seen = set()
    for column in node.columns:
        if fold(column.name) in seen:
            raise sql_error(StatusCode.ERROR, f"Duplicate column name: {column.name}", column.position)
        seen.add(fold(column.name))


class _TableBuilder:
    """Gathers the parts of one table from its clauses."""

    def __init__(
        self,
        node: nodes.CreateTable,
        schema_name: str,
        settings: TableSettings,
        surroundings: Surroundings,
    ) -> None:
        self.node = node
        self.schema_name = schema_name
        self.settings = settings
        self.surroundings = surroundings

    def build(self, given: Sequence[ColumnSchema] | None) -> TableSchema:
        node = self.node
        check_columns(node)
        module, arguments = self._module()
        columns = tuple(given) if given is not None else tuple(map(self.column, node.columns))
        key = self._primary_key(columns)
        columns, key = self._with_key_collation(columns, key, arguments)
        table = TableSchema(
            schema=self.schema_name,
            name=node.name.name,
            columns=columns,
            primary_key=key,
            module=module,
            module_arguments=arguments,
            context=tuple(map(self._context_variable, node.context)),
            derivation=self._derivation(),
            tags=tags_of(node.tags),
        )
        table = self._with_constraints(table)
        self._check_expressions(table)
        return self._with_unique_indexes(table)

    # --- module and columns ----------------------------------------------------------------------------

    def _module(self) -> tuple[str, Mapping[str, Any]]:
        clause = self.node.module
        if clause is None:
            return self.settings.default_module, self.settings.default_module_arguments
        name = self.surroundings.find_module(clause.name)
        if name is None:
            raise sql_error(
                StatusCode.ERROR, f"No virtual table module named '{clause.name}'", clause.position
            )
        return name, module_arguments(clause)

    def column(self, definition: nodes.ColumnDefinition) -> ColumnSchema:
        """The column that a definition describes, without its constraints."""
        name = definition.name
        spelled = definition.type_name
        logical_type = self.surroundings.types.resolve(spelled.name if spelled else None)
        collation, rank = self._collation(definition, logical_type)
        column = ColumnSchema(
            name,
            logical_type,
            declared_type=type_text(spelled),
            nullable=self.settings.nullable_by_default,
            collation=collation,
            collation_rank=rank,
            tags=tags_of(definition.tags),
        )
        for constraint in definition.constraints:
            match constraint:
                case nodes.NullConstraint():
                    column = replace(column, nullable=True, not_null_conflict=None)
                case nodes.NotNullConstraint():
                    action = conflict_of(constraint.conflict_action)
                    column = replace(column, nullable=False, not_null_conflict=action)
                case nodes.DefaultConstraint():
                    column = replace(column, default=constraint.expression)
                case nodes.GeneratedConstraint():
                    stored = constraint.storage is nodes.GeneratedStorage.STORED
                    column = replace(column, generated=constraint.expression, stored=stored)
        if column.default is not None and column.generated is not None:
            raise sql_error(
                StatusCode.ERROR,
                f"Column '{name}' cannot have both DEFAULT and GENERATED ALWAYS AS",
                definition.position,
            )
        return column

    def _collation(
        self, definition: nodes.ColumnDefinition, logical_type: LogicalType
    ) -> tuple[str, CollationRank]:
        declared = None
        for constraint in definition.constraints:
            if isinstance(constraint, nodes.CollateConstraint):
                declared = constraint
        if declared is None:
            name = self.settings.default_collation.upper() if logical_type.is_textual else "BINARY"
            return name, CollationRank.DEFAULT
        position = declared.position or definition.position
        name = self.surroundings.collations.check_column(
            declared.collation, logical_type, definition.name, position
        )
        return name, CollationRank.DECLARED

    def _context_variable(self, variable: nodes.ContextVariable) -> ContextVariable:
        spelled = variable.type_name
        logical_type = self.surroundings.types.resolve(spelled.name if spelled else None)
        return ContextVariable(variable.name, logical_type, type_text(spelled), variable.nullable)

    def _derivation(self) -> Derivation | None:
        clause = self.node.maintained
        return None if clause is None else Derivation(clause.query, clause.columns or None)

    # --- primary key -----------------------------------------------------------------------------------

    def _primary_key(self, columns: Sequence[ColumnSchema]) -> PrimaryKey:
        inline = [
            (position, constraint)
            for position, definition in enumerate(self.node.columns)
            for constraint in definition.constraints
            if isinstance(constraint, nodes.ColumnPrimaryKey)
        ]
        table_level = [c for c in self.node.constraints if isinstance(c, nodes.PrimaryKeyConstraint)]
        if inline and table_level:
            raise sql_error(
                StatusCode.CONSTRAINT,
                "Cannot define both table-level and column-level PRIMARY KEYs",
                table_level[0].position,
            )
        if len(table_level) > 1:
            raise sql_error(
                StatusCode.CONSTRAINT,
                "Multiple table-level PRIMARY KEY constraints defined",
                table_level[1].position,
            )
        if table_level:
            parts = key_parts(table_level[0].columns, columns)
            return PrimaryKey(parts, conflict=conflict_of(table_level[0].conflict_action))
        if inline:
            parts = tuple(
                KeyPart(position, constraint.descending, columns[position].collation)
                for position, constraint in inline
            )
            actions = [conflict_of(constraint.conflict_action) for _, constraint in inline]
            return PrimaryKey(
                parts, conflict=next((action for action in actions if action), None), of_column=True
            )
        return all_columns_key(columns)

    def _with_key_collation(
        self, columns: tuple[ColumnSchema, ...], key: PrimaryKey, arguments: Mapping[str, Any]
    ) -> tuple[tuple[ColumnSchema, ...], PrimaryKey]:
        """Give text key columns without a COLLATE the collation that USING names."""
        wanted = arguments.get("collation")
        if not isinstance(wanted, str):
            return columns, key
        name = self.surroundings.collations.get(wanted).name
        implicit = {
            part.column
            for part in key.parts
            if columns[part.column].type.is_textual
            and columns[part.column].collation_rank is CollationRank.DEFAULT
        }
        columns = tuple(
            replace(column, collation=name) if position in implicit else column
            for position, column in enumerate(columns)
        )
        parts = tuple(
            replace(part, collation=name) if part.column in implicit else part for part in key.parts
        )
        return columns, replace(key, parts=parts)

    # --- constraints -----------------------------------------------------------------------------------

    def _constraints(self) -> list[tuple[nodes.Constraint, int | None]]:
        """All constraints with the column that they stand on, in stored order."""
        found: list[tuple[nodes.Constraint, int | None]] = [
            (constraint, position)
            for position, definition in enumerate(self.node.columns)
            for constraint in definition.constraints
        ]
        return found + [(constraint, None) for constraint in self.node.constraints]

    def _with_constraints(self, table: TableSchema) -> TableSchema:
        written = self._constraints()
        taken = {fold(c.name) for c, _ in written if c.name is not None and isinstance(c, _NAMED)}
        checks = []
        uniques = []
        keys = []
        for constraint, position in written:
            match constraint:
                case nodes.CheckConstraint():
                    checks.append(check_constraint(table, constraint, position, taken))
                case nodes.ColumnUnique() | nodes.UniqueConstraint():
                    uniques.append(unique_constraint(table, constraint, position))
                case nodes.ColumnReferences() | nodes.ForeignKeyConstraint():
                    keys.append(foreign_key(table, constraint, position, taken))
        return replace(
            table,
            checks=number_checks(checks),
            unique_constraints=tuple(uniques),
            foreign_keys=tuple(keys),
        )

    def _check_expressions(self, table: TableSchema) -> None:
        generation_order(table)
        for column in table.columns:
            check_default(table, column)
        for check in table.checks:
            check_check(table, check.name, check.expression)
        if self.surroundings.check_expressions is not None:
            self.surroundings.check_expressions(table)
        for column in table.columns:
            check_literal_default(column)
        self._check_names()

    def _check_names(self) -> None:
        seen = set()
        for constraint, _ in self._constraints():
            name = constraint.name
            if name is None or not isinstance(constraint, _NAMED):
                continue
            if fold(name) in seen:
                raise sql_error(
                    StatusCode.CONSTRAINT,
                    f"Cannot create table '{self.node.name.name}': duplicate constraint name '{name}' —"
                    " constraint names must be unique within a table (case-insensitive, across CHECK /"
                    " UNIQUE / FOREIGN KEY)",
                    constraint.position,
                )
            seen.add(fold(name))

    def _with_unique_indexes(self, table: TableSchema) -> TableSchema:
        label = f"create table '{table.name}'"
        constraints = table.unique_constraints
        for number, constraint in enumerate(constraints):
            check_equivalent(constraints[:number], constraint, table, label)
        check_backing_names(constraints, table, label)
        indexes = tuple(hidden_index(table, c.index, c.columns) for c in constraints)
        return replace(table, indexes=indexes)


_NAMED = (
    nodes.CheckConstraint,
    nodes.ColumnUnique,
    nodes.UniqueConstraint,
    nodes.ColumnReferences,
    nodes.ForeignKeyConstraint,
)


# --- parts of tables, also for ALTER ----------------------------------------------------------------------


def build_column(
    definition: nodes.ColumnDefinition,
    settings: TableSettings | None = None,
    surroundings: Surroundings | None = None,
) -> ColumnSchema:
    """The column that a definition describes, without its constraints (ADD COLUMN)."""
    node = nodes.CreateTable(nodes.ObjectName(""), (definition,))
    builder = _TableBuilder(node, "", settings or TableSettings(), surroundings or Surroundings())
    return builder.column(definition)


# --- indexes, views, assertions ---------------------------------------------------------------------------

PartTyper = Callable[[TableSchema, nodes.Expression], tuple[LogicalType, bool, str]]
"""Type, nullability and collation of an expression over a table's row, from the binder."""


def build_index(
    node: nodes.CreateIndex,
    table: TableSchema,
    collations: CollationRegistry | None = None,
    part_typer: PartTyper | None = None,
) -> IndexSchema:
    """The index that a CREATE INDEX describes.

    ``part_typer`` types the parts that are expressions.  Raises ERROR for unknown columns,
    collations and what a predicate may not hold.
    """
    parts = tuple(
        _index_part(part, table, collations or CollationRegistry(), part_typer) for part in node.columns
    )
    if node.where is not None:
        check_predicate(table, node.where)
    return IndexSchema(node.name.name, parts, unique=node.unique, where=node.where, tags=tags_of(node.tags))


def check_indexed_columns(node: nodes.CreateIndex, table: TableSchema) -> None:
    """Refuse a part that names a column which the table does not have (ERROR)."""
    for part in node.columns:
        expression = part.expression
        if isinstance(expression, nodes.Collate):
            expression = expression.operand
        if isinstance(expression, nodes.ColumnReference) and expression.table is None:
            _indexed_column(table, expression)


def _indexed_column(table: TableSchema, reference: nodes.ColumnReference) -> int:
    message = f"Column '{reference.column}' not found in table '{table.name}'"
    return column_position(table, reference.column, message, reference.position)


def _index_part(
    part: nodes.IndexedColumn,
    table: TableSchema,
    collations: CollationRegistry,
    part_typer: PartTyper | None,
) -> IndexPart:
    expression = part.expression
    written = part.collation
    if written is None and isinstance(expression, nodes.Collate):
        written = expression.collation
        expression = expression.operand
    explicit = None if written is None else collations.get(written, part.position).name
    if isinstance(expression, nodes.ColumnReference) and expression.table is None:
        position = _indexed_column(table, expression)
        column = table.columns[position]
        return IndexPart(
            position,
            None,
            column.type,
            column.nullable,
            part.descending,
            explicit or column.collation,
            explicit is not None,
        )
    if part_typer is None:
        raise sql_error(
            StatusCode.UNSUPPORTED, "Indices on expressions are not supported yet.", part.position
        )
    check_index_expression(table, expression)
    logical_type, nullable, collation = part_typer(table, expression)
    return IndexPart(
        None,
        expression,
        logical_type,
        nullable,
        part.descending,
        explicit or collation,
        explicit is not None,
    )


def build_view(node: nodes.CreateView, schema_name: str) -> ViewSchema:
    """The view that a CREATE VIEW describes."""
    return ViewSchema(schema_name, node.name.name, node.query, node.columns or None, tags_of(node.tags))


def build_assertion(node: nodes.CreateAssertion, schema_name: str) -> AssertionSchema:
    """The assertion that a CREATE ASSERTION describes."""
    return AssertionSchema(schema_name, node.name.name, node.expression)

"""What can be written through a view: its body, taken apart (view-updates-and-lenses, sections 1 to 3).

A writable body shows the rows of one source: a table, or another writable body.
:class:`WritableView` says for every output which column of the source it shows and
how a value goes back there; :func:`row_of_view` computes the outputs over a row of the
table at the bottom.

==========  ==============================  ======================  =================
outputs     are                             UPDATE                  INSERT
==========  ==============================  ======================  =================
COLUMN      a column, renamed or cast to    value as it is          yes
            its own type
INVERSE     ``c + k``, ``c - k``, ``k - c``  value turned round      no
AUTHORED    ``e with inverse (c = …)``      what the inverse says   what it says
COMPUTED    anything else                   no                      no
==========  ==============================  ======================  =================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.relations import check_plannable, expand_view, find_relation
from quereus_store.plan.binder.scopes import FromScope, RowImage, RowScope, Scope, Source
from quereus_store.plan.binder.syntax import contains_aggregate
from quereus_store.plan.expressions import BoundExpression, Column, reference
from quereus_store.schema.objects import ColumnSchema, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes, traversal
from quereus_store.types import INTEGER, REAL

_BARE = "view"


class OutputKind(Enum):
    """How a value that is written to an output goes back to the source."""

    COLUMN = auto()
    INVERSE = auto()
    AUTHORED = auto()
    COMPUTED = auto()


@dataclass(frozen=True, slots=True)
class Output:
    """One output: ``source`` is the column of the source that it shows, by name.

    ``expression`` is None where a star stands for the column; ``puts`` are the
    assignments of WITH INVERSE.
    """

    name: str
    kind: OutputKind
    source: str | None
    expression: nodes.Expression | None
    puts: tuple[nodes.Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class WritableView:
    """A body that rows can be written through, and what it reads.

    ``word`` is what messages call it.  ``environment`` is where its body stands,
    ``alias`` the name of the source there.  ``pinned`` holds the constants that the
    filter asks of columns of the source, ``defaults`` the WITH DEFAULTS, by folded name.
    """

    name: str
    word: str
    schema: str | None
    environment: Environment
    source: TableSchema | WritableView
    alias: str
    outputs: tuple[Output, ...]
    where: nodes.Expression | None
    pinned: Mapping[str, nodes.Literal]
    defaults: tuple[nodes.Assignment, ...]

    @property
    def table(self) -> TableSchema:
        """The table at the bottom."""
        return self.source if isinstance(self.source, TableSchema) else self.source.table

    def output(self, name: str) -> Output | None:
        """The output of that name, in any case."""
        folded = fold(name)
        return next((output for output in self.outputs if fold(output.name) == folded), None)

    def table_column(self, output: Output) -> ColumnSchema | None:
        """The column of the table that an output shows, None for one that shows none."""
        if output.source is None:
            return None
        return source_column(self.source, output.source)


def source_column(source: TableSchema | WritableView, name: str) -> ColumnSchema | None:
    """The column of the table that a column of a source shows, None for one that shows none."""
    if isinstance(source, TableSchema):
        position = source.column_index(name)
        return None if position is None else source.columns[position]
    output = source.output(name)
    return None if output is None else source.table_column(output)


def refusal(
    view_name: str,
    reason: str,
    text: str,
    position: SourcePosition | None = None,
    word: str = _BARE,
) -> Error:
    """The error ``cannot write through view 'V': …``; ``reason`` is the code in its details."""
    return coded(reason, f"cannot write through {word} '{view_name}': {text}", position)


def coded(reason: str, message: str, position: SourcePosition | None) -> Error:
    """An error with its reason in the details."""
    error = sql_error(StatusCode.ERROR, message, position)
    error.details = {"reason": reason}
    return error


def read_only_column(name: str, position: SourcePosition | None) -> Error:
    """The error for a value that is given to a column that has none of its own."""
    return coded(
        "no-inverse",
        f"cannot write through view: column '{name}' is a computed (non-invertible) expression"
        " and is read-only",
        position,
    )


# --- opening ------------------------------------------------------------------------------------------------


def open_view(environment: Environment, view: ViewSchema, position: SourcePosition | None) -> WritableView:
    """A plain view, taken apart; raises ERROR for a body that cannot be written through."""
    names = [column.name for column in expand_view(environment, view, position).columns]
    inner = environment.inside_stored_body(view.schema, (view.schema, view.name))
    return open_body(inner, view.query, names, view.name, "view", view.schema, position)


def open_maintained(
    environment: Environment, table: TableSchema, position: SourcePosition | None
) -> WritableView:
    """A maintained table as the view that its body is: writes go to the source."""
    derivation = table.derivation
    assert derivation is not None
    environment.context.references.tables[table.schema, table.name] = table
    inner = environment.inside_stored_body(table.schema, (table.schema, table.name))
    names: Sequence[str] = [column.name for column in table.columns]
    if derivation.stale:
        # The stored columns are those of another time; what is written to is the body as it is now.
        check_plannable(environment, table, derivation, position)
        own = _own_names(inner, derivation.query)
        names = own if derivation.columns is None else derivation.columns
        if len(names) > len(own):
            raise declared_otherwise(table, len(own)).located(position)
    return open_body(inner, derivation.query, names, table.name, "materialized view", table.schema, position)


def declared_otherwise(table: TableSchema, produced: int) -> Error:
    """The error for a maintained table whose list of names does not fit its body any more."""
    assert table.derivation is not None
    declared = len(table.derivation.columns or ())
    return sql_error(
        StatusCode.ERROR,
        f"materialized view '{table.qualified_name}' was declared with {declared} columns but its body"
        f" now produces {produced} after a source change — drop and recreate",
    )


def listed_names(
    environment: Environment,
    query: nodes.Query | nodes.DataModification,
    listed: Sequence[str],
    name: str,
    position: SourcePosition | None,
) -> list[str]:
    """The names of a body's columns: those of a list, then its own; raises ERROR for a list too long."""
    own = _own_names(environment, query)
    if len(listed) > len(own):
        text = f"'{name}' has {len(listed)} declared columns but produces {len(own)}"
        raise sql_error(StatusCode.ERROR, text, position)
    return [*listed, *own[len(listed) :]]


def _own_names(environment: Environment, query: nodes.Query | nodes.DataModification) -> list[str]:
    return [column.name for column in queries.bind_query_in(environment, query).columns]


def open_body(
    environment: Environment,
    query: nodes.Query | nodes.DataModification,
    names: Sequence[str],
    name: str,
    word: str,
    schema: str | None,
    position: SourcePosition | None,
    members: Sequence[nodes.CommonTableExpression] = (),
) -> WritableView:
    """A body under ``names``, a ``word`` in messages; it may read through the common tables ``members``."""
    select = plain_select(environment, query, name, word, position)
    select = with_listed_names(environment, query, select, names)
    environment = environment.with_schemas(select.schema_path)
    source, alias = _open_source(environment, query, select, name, word, position, members)
    # A view's list may be shorter than what its source has got since.
    expanded = list(_expanded(select.items, source))[: len(names)]
    outputs = tuple(
        [_output(output_name, item, source) for output_name, item in zip(names, expanded, strict=True)]
    )
    defaults = query.defaults if isinstance(query, nodes.Query) else ()
    pinned = dict(_pinned(select.where, source))
    return WritableView(
        name, word, schema, environment, source, alias, outputs, select.where, pinned, defaults
    )


def with_listed_names(
    environment: Environment,
    query: nodes.Query | nodes.DataModification,
    select: nodes.Select,
    names: Sequence[str],
) -> nodes.Select:
    """The SELECT with ``new.`` references of WITH INVERSE by the names that a column list gives."""
    items = [item for item in select.items if isinstance(item, nodes.ResultColumn)]
    if not any(item.inverse for item in items):
        return select
    own = _own_names(environment, query)
    listed = {fold(old): new for old, new in zip(own, names, strict=False) if fold(old) != fold(new)}
    if not listed:
        return select

    def shown(name: str) -> nodes.Expression:
        return nodes.ColumnReference(listed.get(name, name), "new")

    changed = [
        replace(item, inverse=tuple([replace(put, value=with_new(put.value, shown)) for put in item.inverse]))
        if isinstance(item, nodes.ResultColumn) and item.inverse
        else item
        for item in select.items
    ]
    return replace(select, items=tuple(changed))


def plain_select(
    environment: Environment,
    query: nodes.Query | nodes.DataModification,
    name: str,
    word: str,
    position: SourcePosition | None,
) -> nodes.Select:
    """The SELECT that a body is; raises ERROR for one whose rows are not rows of a table."""
    if not isinstance(query, nodes.Query):
        raise refusal(name, "no-base-lineage", _operator("DataModification"), position, word)
    if query.limit is not None or query.offset is not None:
        text = (
            "a LIMIT/OFFSET body is not decomposable in phase 1 (a mutation would escape the limited window)"
        )
        raise refusal(name, "unsupported-limit", text, position, word)
    body = query.body
    if isinstance(body, nodes.Query):
        return plain_select(environment, body, name, word, position)
    if isinstance(body, nodes.Values):
        message = f"{word} '{name}' has a VALUES body, which has no recoverable base operation"
        raise coded("no-base-lineage", message, position)
    if not isinstance(body, nodes.Select):
        raise refusal(name, "unsupported-set-op", _operator("SetOperation"), position, word)
    if body.distinct:
        text = "a DISTINCT body has no 1:1 base-row lineage and is not updateable in phase 1"
        raise refusal(name, "unsupported-distinct", text, position, word)
    expressions = [item.expression for item in body.items if isinstance(item, nodes.ResultColumn)]
    registry = environment.context.registry
    if body.group_by or body.having or any(contains_aggregate(part, registry) for part in expressions):
        raise refusal(name, "unsupported-aggregate", _operator("Aggregate"), position, word)
    if body.qualify is not None or any(
        isinstance(part, nodes.WindowCall)
        for expression in expressions
        for part in traversal.walk(expression)
    ):
        raise refusal(name, "unsupported-window", _operator("Window"), position, word)
    return body


def _operator(operator: str) -> str:
    return f"view body operator '{operator}' is not updateable in phase 1"


def _open_source(
    environment: Environment,
    query: nodes.Query | nodes.DataModification,
    select: nodes.Select,
    name: str,
    word: str,
    position: SourcePosition | None,
    members: Sequence[nodes.CommonTableExpression],
) -> tuple[TableSchema | WritableView, str]:
    """What a body reads, and the name that it has there."""
    relation = select.source
    if relation is None:
        raise refusal(name, "no-base-lineage", _operator("SingleRow"), position, word)
    if isinstance(relation, nodes.Join):
        text = "only a single base-table source is supported in phase 1"
        raise refusal(name, "unsupported-join", text, position, word)
    if isinstance(relation, nodes.SubquerySource):
        if relation.columns or relation.alias is None:
            text = "only a single base-table source is supported in phase 1"
            raise refusal(name, "nested-view", text, position, word)
        own_names = _own_names(environment, relation.query)
        return open_body(environment, relation.query, own_names, name, word, None, position), relation.alias
    if not isinstance(relation, nodes.TableReference) or relation.columns:
        raise refusal(name, "no-base-lineage", _operator("TableFunctionCall"), position, word)
    if relation.schema is None:
        own = query.with_clause.members if isinstance(query, nodes.Query) and query.with_clause else ()
        if any(fold(member.name) == fold(relation.name) for member in own):
            raise refusal(name, "no-base-lineage", _operator("CTEReference"), position, word)
        for index, member in enumerate(members):
            if fold(member.name) == fold(relation.name):
                sibling = open_common_table(environment, members[: index + 1], False, position)
                return sibling, relation.alias or relation.name
    found = find_relation(environment, relation.schema, relation.name, relation.position)
    alias = relation.alias or found.name
    if isinstance(found, ViewSchema):
        return open_view(environment, found, position), alias
    if found.derivation is not None:
        raise coded(
            "nested-view",
            f"cannot write through '{name}': its body reads a materialized view; write-through to a"
            " materialized-view-over-materialized-view is not yet supported — write the base source instead",
            position,
        )
    return found, alias


def open_common_table(
    environment: Environment,
    members: Sequence[nodes.CommonTableExpression],
    recursive: bool,
    position: SourcePosition | None,
) -> WritableView:
    """The last of the statement's common tables, which may read through those before it."""
    member = members[-1]
    word = "common table expression"
    if recursive:
        text = "a recursive CTE has no recoverable base operation"
        raise refusal(member.name, "recursive-cte", text, position, word)
    visible = {
        name: entry
        for name, entry in environment.common_tables.items()
        if name in {fold(earlier.name) for earlier in members[:-1]}
    }
    inner = Environment(environment.context, environment.schema_path, visible, environment.views)
    names = listed_names(inner, member.query, member.columns, member.name, position)
    return open_body(inner, member.query, names, member.name, word, None, position, members[:-1])


# --- outputs ------------------------------------------------------------------------------------------------


def _expanded(
    items: Sequence[nodes.ResultColumn | nodes.ResultStar], source: TableSchema | WritableView
) -> Iterator[nodes.ResultColumn | str]:
    """The select list with the names of the source's columns for every star."""
    for item in items:
        if isinstance(item, nodes.ResultColumn):
            yield item
        else:
            yield from source_names(source)


def source_names(source: TableSchema | WritableView) -> list[str]:
    """The columns that a body sees of its source."""
    if isinstance(source, TableSchema):
        return [column.name for column in source.columns]
    return [output.name for output in source.outputs]


def _output(name: str, item: nodes.ResultColumn | str, source: TableSchema | WritableView) -> Output:
    if isinstance(item, str):
        return Output(name, OutputKind.COLUMN, item, None)
    expression = item.expression
    shown = shown_column(expression, source)
    if item.inverse:
        targets = [put.column for put in item.inverse]
        return Output(
            name, OutputKind.AUTHORED, targets[0] if len(targets) == 1 else None, expression, item.inverse
        )
    if shown is not None:
        return Output(name, OutputKind.COLUMN, shown, expression)
    inverted = inverted_column(expression, source)
    if inverted is not None:
        return Output(name, OutputKind.INVERSE, inverted, expression)
    return Output(name, OutputKind.COMPUTED, None, expression)


def shown_column(expression: nodes.Expression, source: TableSchema | WritableView) -> str | None:
    """The column that an expression is, but for a collation or a cast to its own type."""
    if isinstance(expression, nodes.ColumnReference):
        folded = fold(expression.column)
        return next((name for name in source_names(source) if fold(name) == folded), None)
    if isinstance(expression, nodes.Collate):
        return shown_column(expression.operand, source)
    if isinstance(expression, nodes.Cast):
        shown = shown_column(expression.operand, source)
        column = None if shown is None else source_column(source, shown)
        if column is not None and fold(expression.type_name.name) in (
            fold(column.type.name),
            fold(column.declared_type or ""),
        ):
            return shown
    return None


_REVERSIBLE = (nodes.BinaryOperator.ADD, nodes.BinaryOperator.SUBTRACT)


def inverted_column(expression: nodes.Expression, source: TableSchema | WritableView) -> str | None:
    """The number column that an expression adds whole numbers to or subtracts them from."""
    if isinstance(expression, nodes.ColumnReference):
        shown = shown_column(expression, source)
        column = None if shown is None else source_column(source, shown)
        return shown if column is not None and column.type in (INTEGER, REAL) else None
    if not isinstance(expression, nodes.BinaryOperation) or expression.operator not in _REVERSIBLE:
        return None
    if _is_whole(expression.right):
        return inverted_column(expression.left, source)
    if _is_whole(expression.left):
        return inverted_column(expression.right, source)
    return None


def _is_whole(expression: nodes.Expression) -> bool:
    return isinstance(expression, nodes.Literal) and expression.kind is nodes.LiteralKind.INTEGER


def turned_round(expression: nodes.Expression, value: nodes.Expression) -> nodes.Expression:
    """The value of the column under an INVERSE expression that makes the whole of it ``value``."""
    while isinstance(expression, nodes.BinaryOperation):
        added = expression.operator is nodes.BinaryOperator.ADD
        constant_right = _is_whole(expression.right)
        constant, rest = (
            (expression.right, expression.left) if constant_right else (expression.left, expression.right)
        )
        if added:
            value = nodes.BinaryOperation(nodes.BinaryOperator.SUBTRACT, value, constant)
        elif constant_right:
            value = nodes.BinaryOperation(nodes.BinaryOperator.ADD, value, constant)
        else:
            value = nodes.BinaryOperation(nodes.BinaryOperator.SUBTRACT, constant, value)
        expression = rest
    return value


def _pinned(
    where: nodes.Expression | None, source: TableSchema | WritableView
) -> Iterator[tuple[str, nodes.Literal]]:
    """The columns that top-level conjuncts ``column = literal`` fix, by folded name."""
    if not isinstance(where, nodes.BinaryOperation):
        return
    if where.operator is nodes.BinaryOperator.AND:
        yield from _pinned(where.left, source)
        yield from _pinned(where.right, source)
    elif where.operator in (nodes.BinaryOperator.EQUAL, nodes.BinaryOperator.DOUBLE_EQUAL):
        for column, constant in ((where.left, where.right), (where.right, where.left)):
            if isinstance(column, nodes.ColumnReference) and isinstance(constant, nodes.Literal):
                shown = shown_column(column, source)
                if shown is not None and constant.value is not None:
                    yield fold(shown), constant


# --- rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowOfView:
    """What a row of the table is, seen through a view.

    ``outputs`` by name, in order; ``conditions`` are what the filters ask of it;
    ``layers`` are the rows of this view and of the views inside it, each under
    the name that :func:`layer_name` gives it.
    """

    outputs: tuple[tuple[str, BoundExpression], ...]
    conditions: tuple[BoundExpression, ...]
    layers: Mapping[str, RowImage]

    @property
    def image(self) -> dict[str, BoundExpression]:
        """The outputs by folded name."""
        return {fold(name): value for name, value in self.outputs}


def layer_name(view: WritableView) -> str:
    """A qualifier for the rows of one of several views inside each other, which no text can spell."""
    depth = 0
    source = view.source
    while isinstance(source, WritableView):
        depth += 1
        source = source.source
    return f"\0{depth}"


def row_of_view(view: WritableView, columns: tuple[Column, ...]) -> RowOfView:
    """A row of the table, whose columns are ``columns``, through the view."""
    conditions: tuple[BoundExpression, ...] = ()
    layers: dict[str, RowImage] = {}
    scope: Scope
    if isinstance(view.source, TableSchema):
        shown = [(column.name, reference(column)) for column in columns]
        scope = FromScope((Source(view.alias, columns, view.source.schema),), columns, None)
        below: dict[str, BoundExpression] = {fold(name): value for name, value in shown}
    else:
        inner = row_of_view(view.source, columns)
        conditions, below = inner.conditions, inner.image
        layers |= inner.layers
        scope = RowScope({"": below, fold(view.alias): below}, schema=view.source.schema)
    binder = ExpressionBinder(view.environment.nested(), scope)
    if view.where is not None:
        conditions += (binder.bind(view.where),)
    outputs = tuple(
        [
            (
                output.name,
                below[fold(output.source or "")]
                if output.expression is None
                else binder.bind(output.expression),
            )
            for output in view.outputs
        ]
    )
    layers[layer_name(view)] = {fold(name): value for name, value in outputs}
    return RowOfView(outputs, conditions, layers)


def with_new(expression: nodes.Expression, new: Callable[[str], nodes.Expression]) -> nodes.Expression:
    """An inverse with ``new.`` references replaced by what ``new`` gives for a folded name."""

    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ColumnReference) and node.table is not None and fold(node.table) == "new":
            return new(fold(node.column))
        return node

    changed = traversal.transform(expression, change)
    assert isinstance(changed, nodes.Expression)
    return changed


def pinned_constants(
    condition: nodes.Expression | None,
) -> Iterator[tuple[nodes.ColumnReference, nodes.Literal]]:
    """The columns that top-level conjuncts ``column = literal`` fix, with the literals."""
    if not isinstance(condition, nodes.BinaryOperation):
        return
    if condition.operator is nodes.BinaryOperator.AND:
        yield from pinned_constants(condition.left)
        yield from pinned_constants(condition.right)
    elif condition.operator in (nodes.BinaryOperator.EQUAL, nodes.BinaryOperator.DOUBLE_EQUAL):
        for column, constant in (
            (condition.left, condition.right),
            (condition.right, condition.left),
        ):
            if isinstance(column, nodes.ColumnReference) and isinstance(constant, nodes.Literal):
                yield column, constant

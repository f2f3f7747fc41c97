"""Rules for queries and for INSERT, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.sql.nodes import (
    Assignment,
    BoundKind,
    CommonTableExpression,
    ConflictAction,
    Cube,
    DefaultValues,
    Delete,
    FrameBound,
    FunctionSource,
    GroupingSet,
    GroupingSets,
    Insert,
    Join,
    MembershipFlag,
    MultiAssignment,
    OrderingTerm,
    Query,
    QueryBody,
    Relation,
    ResultColumn,
    ResultStar,
    Rollup,
    Select,
    SetOperation,
    SetOperator,
    SubquerySource,
    TableReference,
    Tag,
    Update,
    UpsertClause,
    Values,
    WindowDefinition,
    WindowFrame,
    WindowReference,
    WindowSpecification,
    WithClause,
)
from quereus_store.sql.renderer.base import (
    Renderer,
    Rule,
    name_list,
    names,
    optional_columns,
    qualified,
    quote_identifier,
)
from quereus_store.sql.renderer.expressions import BITS, operand_text


def _query(renderer: Renderer, node: Query) -> str:
    text = _body(renderer, node.body, not isinstance(node.body, Select | Values | SetOperation))
    if node.with_clause is not None:
        text = f"{renderer.text(node.with_clause)} {text}"
    if node.order_by:
        text += f" order by {renderer.list(node.order_by)}"
    text += renderer.optional(" limit ", node.limit) + renderer.optional(" offset ", node.offset)
    if node.defaults:
        text += f" with defaults {renderer.parenthesised(node.defaults)}"
    return text


def _body(renderer: Renderer, body: QueryBody, wrapped: bool) -> str:
    text = renderer.text(body)
    return f"({text})" if wrapped else text


def _set_operation(renderer: Renderer, node: SetOperation) -> str:
    parts: list[str] = []
    left: QueryBody = node
    while isinstance(left, SetOperation):
        current = left
        parts.append(_set_operator(renderer, current))
        left = current.left
        if isinstance(left, SetOperation) and _binds_looser(left, current):
            break
    wrapped = isinstance(left, SetOperation) or not isinstance(left, Select | Values)
    parts.append(_body(renderer, left, wrapped))
    return "".join(reversed(parts))


def _binds_looser(child: SetOperation, parent: SetOperation) -> bool:
    return parent.operator is SetOperator.INTERSECT and child.operator is not SetOperator.INTERSECT


def _set_operator(renderer: Renderer, node: SetOperation) -> str:
    """The operator with its flags and right operand."""
    right = node.right
    if isinstance(right, SetOperation):
        tighter = right.operator is SetOperator.INTERSECT and node.operator is not SetOperator.INTERSECT
        wrapped = not tighter
    else:
        wrapped = not isinstance(right, Select | Values)
    flags = f" {renderer.list(node.flags)}" if node.flags else ""
    quantity = "" if node.distinct else " all"
    return f" {node.operator}{quantity}{flags} {_body(renderer, right, wrapped)}"


def _select(renderer: Renderer, node: Select) -> str:
    text = f"select {'distinct ' if node.distinct else ''}{renderer.list(node.items)}"
    text += renderer.optional(" from ", node.source) + renderer.optional(" where ", node.where)
    if node.group_by:
        text += f" group by {renderer.list(node.group_by)}"
    text += renderer.optional(" having ", node.having)
    if node.windows:
        text += f" window {renderer.list(node.windows)}"
    text += renderer.optional(" qualify ", node.qualify)
    return text + _schema_path(node.schema_path)


def _schema_path(schemas: tuple[str, ...]) -> str:
    return f" with schema {names(schemas)}" if schemas else ""


def _values(renderer: Renderer, node: Values) -> str:
    return "values " + ", ".join(map(renderer.parenthesised, node.rows))


def _result_column(renderer: Renderer, node: ResultColumn) -> str:
    text = renderer.text(node.expression)
    if node.alias is not None:
        text += f" as {quote_identifier(node.alias)}"
    if node.inverse:
        text += f" with inverse {renderer.parenthesised(node.inverse)}"
    return text


def _result_star(renderer: Renderer, node: ResultStar) -> str:
    return "*" if node.table is None else f"{quote_identifier(node.table)}.*"


def _assignment(renderer: Renderer, node: Assignment) -> str:
    return f"{quote_identifier(node.column)} = {renderer.text(node.value)}"


def _multi_assignment(renderer: Renderer, node: MultiAssignment) -> str:
    return f"{name_list(node.columns)} = ({renderer.text(node.query)})"


def _ordering_term(renderer: Renderer, node: OrderingTerm) -> str:
    text = renderer.text(node.expression) + (" desc" if node.descending else "")
    return text if node.nulls is None else f"{text} nulls {node.nulls}"


# Grouping and windows


def _grouping_set(renderer: Renderer, node: GroupingSet) -> str:
    return renderer.parenthesised(node.expressions)


def _rollup(renderer: Renderer, node: Rollup) -> str:
    return f"rollup {renderer.parenthesised(node.elements)}"


def _cube(renderer: Renderer, node: Cube) -> str:
    return f"cube {renderer.parenthesised(node.elements)}"


def _grouping_sets(renderer: Renderer, node: GroupingSets) -> str:
    return f"grouping sets {renderer.parenthesised(node.elements)}"


def _window(renderer: Renderer, node: WindowSpecification) -> str:
    parts: list[str] = []
    if node.base is not None:
        parts.append(quote_identifier(node.base))
    if node.partition_by:
        parts.append(f"partition by {renderer.list(node.partition_by)}")
    if node.order_by:
        parts.append(f"order by {renderer.list(node.order_by)}")
    if node.frame is not None:
        parts.append(renderer.text(node.frame))
    return f"({' '.join(parts)})"


def _window_reference(renderer: Renderer, node: WindowReference) -> str:
    return quote_identifier(node.name)


def _window_definition(renderer: Renderer, node: WindowDefinition) -> str:
    return f"{quote_identifier(node.name)} as {renderer.text(node.specification)}"


def _frame(renderer: Renderer, node: WindowFrame) -> str:
    text = f"{node.unit} between {renderer.text(node.start)} and {renderer.text(node.end)}"
    return text if node.exclusion is None else f"{text} exclude {node.exclusion}"


def _bound(renderer: Renderer, node: FrameBound) -> str:
    if node.kind not in (BoundKind.PRECEDING, BoundKind.FOLLOWING) or node.offset is None:
        return str(node.kind)
    return f"{operand_text(renderer, node.offset, BITS)} {node.kind}"


# Sources


def _alias(alias: str | None, columns: tuple[str, ...]) -> str:
    listed = name_list(columns) if columns else ""
    if alias is None:
        return f" {listed}" if listed else ""
    return f" as {quote_identifier(alias)}{listed}"


def _table(renderer: Renderer, node: TableReference) -> str:
    return qualified(node.schema, node.name) + _alias(node.alias, node.columns)


def _function_source(renderer: Renderer, node: FunctionSource) -> str:
    lateral = "lateral " if node.lateral else ""
    return lateral + renderer.text(node.call) + _alias(node.alias, node.columns)


def _subquery_source(renderer: Renderer, node: SubquerySource) -> str:
    lateral = "lateral " if node.lateral else ""
    return f"{lateral}({renderer.text(node.query)}){_alias(node.alias, node.columns)}"


def _join(renderer: Renderer, node: Join) -> str:
    parts: list[str] = []
    left: Relation = node
    while isinstance(left, Join):
        parts.append(_join_right(renderer, left))
        left = left.left
    parts.append(renderer.text(left))
    return "".join(reversed(parts))


def _join_right(renderer: Renderer, node: Join) -> str:
    right = renderer.text(node.right)
    if isinstance(node.right, Join):
        right = f"({right})"
    text = f" {'natural ' if node.natural else ''}{node.kind} join {right}"
    text += renderer.optional(" on ", node.condition)
    if node.using:
        text += f" using {name_list(node.using)}"
    return f"{text} {renderer.list(node.flags)}" if node.flags else text


def _flag(renderer: Renderer, node: MembershipFlag) -> str:
    side = "" if node.side is None else f" {node.side}"
    return f"exists{side} as {quote_identifier(node.name)}"


# WITH


def _with(renderer: Renderer, node: WithClause) -> str:
    text = f"with {'recursive ' if node.recursive else ''}{renderer.list(node.members)}"
    return text if node.max_recursion is None else f"{text} option (maxrecursion {node.max_recursion})"


def _cte(renderer: Renderer, node: CommonTableExpression) -> str:
    hint = "" if node.materialization is None else f"{node.materialization} "
    columns = optional_columns(node.columns)
    return f"{quote_identifier(node.name)}{columns} as {hint}({renderer.text(node.query)})"


# Data modification


def _tag(renderer: Renderer, node: Tag) -> str:
    return f"{quote_identifier(node.key)} = {renderer.text(node.value)}"


def tags_clause(renderer: Renderer, tags: tuple[Tag, ...]) -> str:
    """``with tags (…)`` after a blank; nothing without tags."""
    return f" with tags {renderer.parenthesised(tags)}" if tags else ""


def _or(action: ConflictAction | None) -> str:
    return "" if action is None else f" or {action}"


def _clauses(renderer: Renderer, node: Insert | Update | Delete) -> str:
    """The clauses that may stand on either side; in front, no query can take them for its own."""
    text = f" with context {renderer.list(node.context)}" if node.context else ""
    return text + tags_clause(renderer, node.tags) + _schema_path(node.schema_path)


def _returning(renderer: Renderer, node: Insert | Update | Delete) -> str:
    return f" returning {renderer.list(node.returning)}" if node.returning else ""


def _leading_with(renderer: Renderer, node: Insert | Update | Delete, text: str) -> str:
    return text if node.with_clause is None else f"{renderer.text(node.with_clause)} {text}"


def _insert(renderer: Renderer, node: Insert) -> str:
    text = f"insert{_or(node.conflict_action)} into {renderer.text(node.table)}"
    text += f"{optional_columns(node.columns)}{_clauses(renderer, node)} {renderer.text(node.source)}"
    text += "".join(f" {renderer.text(upsert)}" for upsert in node.upserts)
    return _leading_with(renderer, node, text + _returning(renderer, node))


def _default_values(renderer: Renderer, node: DefaultValues) -> str:
    return "default values"


def _upsert(renderer: Renderer, node: UpsertClause) -> str:
    text = f"on conflict{optional_columns(node.target)}{renderer.optional(' where ', node.target_where)} do "
    if not node.assignments:
        return f"{text}nothing"
    text += f"update set {renderer.list(node.assignments)}"
    return text + renderer.optional(" where ", node.where)


def _update(renderer: Renderer, node: Update) -> str:
    text = f"update{_or(node.conflict_action)} {renderer.text(node.target)}{_clauses(renderer, node)}"
    text += f" set {renderer.list(node.assignments)}"
    text += renderer.optional(" from ", node.source) + renderer.optional(" where ", node.where)
    return _leading_with(renderer, node, text + _returning(renderer, node))


def _delete(renderer: Renderer, node: Delete) -> str:
    text = f"delete from {renderer.text(node.target)}{_clauses(renderer, node)}"
    text += renderer.optional(" using ", node.source) + renderer.optional(" where ", node.where)
    return _leading_with(renderer, node, text + _returning(renderer, node))


QUERY_RULES: Mapping[type[Any], Rule] = MappingProxyType(
    {
        Assignment: _assignment,
        CommonTableExpression: _cte,
        Cube: _cube,
        DefaultValues: _default_values,
        Delete: _delete,
        FrameBound: _bound,
        FunctionSource: _function_source,
        GroupingSet: _grouping_set,
        GroupingSets: _grouping_sets,
        Insert: _insert,
        Join: _join,
        MembershipFlag: _flag,
        MultiAssignment: _multi_assignment,
        OrderingTerm: _ordering_term,
        Query: _query,
        ResultColumn: _result_column,
        ResultStar: _result_star,
        Rollup: _rollup,
        Select: _select,
        SetOperation: _set_operation,
        SubquerySource: _subquery_source,
        TableReference: _table,
        Tag: _tag,
        Update: _update,
        UpsertClause: _upsert,
        Values: _values,
        WindowDefinition: _window_definition,
        WindowFrame: _frame,
        WindowReference: _window_reference,
        WindowSpecification: _window,
        WithClause: _with,
    }
)

"""An override taken apart: which sources it reads, which columns they have, what its terms are called.

An override names basis relations bare or qualified by the basis, and nothing else that is stored:
:func:`within_basis` qualifies every such name, so that the body means the same wherever it stands.

Chapter: view-updates-and-lenses, section 13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.schema.manager import find_in_schema
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.sql.renderer import canonical_text
from quereus_store.sql.traversal import transform, walk


@dataclass(frozen=True, slots=True)
class OverrideSource:
    """One source of an override's FROM: its qualifier, its columns, whether it is a basis relation."""

    qualifier: str
    columns: tuple[str, ...]
    relation: str | None

    def has(self, name: str) -> str | None:
        """The source's own spelling of a column, None if it has none of that name."""
        return next((column for column in self.columns if fold(column) == fold(name)), None)


def override_error(logical: str, text: str, node: nodes.Node | None = None) -> Error:
    """The error for an override that cannot be compiled."""
    position = None if node is None else node.position
    return sql_error(StatusCode.ERROR, f"lens: override for logical table '{logical}' {text}", position)


def within_basis(context: BindContext, query: nodes.Query, basis: str, logical: str) -> nodes.Query:
    """The override with every basis relation qualified; ERROR for a relation of another schema."""
    members = {fold(part.name) for part in walk(query) if isinstance(part, nodes.CommonTableExpression)}

    def qualified(node: nodes.Node) -> nodes.Node:
        if not isinstance(node, nodes.TableReference):
            return node
        if node.schema is None and fold(node.name) in members:
            return node
        if node.schema is not None and fold(node.schema) != fold(basis):
            text = (
                f"references basis relation '{node.schema}.{node.name}' outside the declared basis '{basis}'"
                " (a lens reads one basis schema only); name a relation of the basis"
            )
            raise override_error(logical, text, node)
        if find_in_schema(context.catalog, basis, node.name) is None:
            text = (
                f"references relation '{node.name}', which the declared basis '{basis}' does not have"
                " — a lens reads the tables and views of its basis"
            )
            raise override_error(logical, text, node)
        return replace(node, schema=basis)

    changed = transform(query, qualified)
    assert isinstance(changed, nodes.Query)
    return changed


def sources_of(context: BindContext, query: nodes.Query, select: nodes.Select) -> list[OverrideSource]:
    """The sources of a qualified override, in the order of FROM."""
    environment = Environment.of(context)
    return [_source(environment, query, relation) for relation in _leaves(select.source)]


def _leaves(relation: nodes.Relation | None) -> Iterator[nodes.Relation]:
    if isinstance(relation, nodes.Join):
        yield from _leaves(relation.left)
        yield from _leaves(relation.right)
    elif relation is not None:
        yield relation


def _source(environment: Environment, query: nodes.Query, relation: nodes.Relation) -> OverrideSource:
    everything = nodes.Select((nodes.ResultStar(),), relation)
    plan = queries.bind_query_in(environment, nodes.Query(everything, query.with_clause))
    columns = tuple([column.name for column in plan.columns])
    if isinstance(relation, nodes.TableReference):
        qualifier = relation.alias or relation.name
        stored = relation.schema is not None and not relation.columns
        return OverrideSource(qualifier, columns, f"{relation.schema}.{relation.name}" if stored else None)
    alias = getattr(relation, "alias", None)
    if alias is None and isinstance(relation, nodes.FunctionSource):
        alias = relation.call.name
    return OverrideSource(alias or "", columns, None)


def terms_of(
    select: nodes.Select, sources: list[OverrideSource], logical: str
) -> dict[str, nodes.ResultColumn]:
    """The override's terms by folded output name; what is written out beats what a star brings."""
    written: dict[str, nodes.ResultColumn] = {}
    starred: dict[str, nodes.ResultColumn] = {}
    for item in select.items:
        if isinstance(item, nodes.ResultColumn):
            written.setdefault(fold(_output_name(item, logical)), item)
            continue
        for source in sources:
            if item.table is not None and fold(item.table) != fold(source.qualifier):
                continue
            for column in source.columns:
                starred.setdefault(fold(column), nodes.ResultColumn(column_of(sources, source, column)))
    return {**starred, **written}


def column_of(sources: list[OverrideSource], source: OverrideSource, column: str) -> nodes.ColumnReference:
    """A reference to a source's column, qualified where there are several sources."""
    return nodes.ColumnReference(column, source.qualifier if len(sources) > 1 and source.qualifier else None)


def _output_name(item: nodes.ResultColumn, logical: str) -> str:
    if item.alias is not None:
        return item.alias
    if isinstance(item.expression, nodes.ColumnReference):
        return item.expression.column
    text = (
        f"has a computed projection term '{canonical_text(item.expression)}' with no output name; add an"
        " alias (... as <name>) so it maps to a logical column"
    )
    raise override_error(logical, text, item)

"""How maintained tables are kept up, for people: ``maintenance_info()`` and EXPLAIN of a row change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quereus_store.functions.registry import ResultColumn, TableFunction
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.types import BOOLEAN, TEXT
from quereus_store.views.body import key_of

if TYPE_CHECKING:
    from quereus_store.views.maintainer import Maintainer

_COLUMNS = (
    ResultColumn("schema", TEXT, False),
    ResultColumn("name", TEXT, False),
    ResultColumn("stale", BOOLEAN, False),
    ResultColumn("source_schema", TEXT),
    ResultColumn("source", TEXT),
    ResultColumn("strategy", TEXT),
    ResultColumn("plan", TEXT),
)


def maintenance_info(maintainer: Maintainer) -> TableFunction:
    """``maintenance_info([name])``: for each maintained table and source, the strategy and its plan."""

    def rows(context: Any, *arguments: Any) -> Iterator[tuple[Any, ...]]:
        wanted = fold(arguments[0]) if arguments and isinstance(arguments[0], str) else None
        catalog = context.catalog
        graph = maintainer.graphs.graph(catalog)
        for table in tables_of(catalog):
            if table.derivation is None or (wanted is not None and fold(table.name) != wanted):
                continue
            member = graph.by_key.get(key_of(table))
            if member is None:
                yield (table.schema, table.name, True, None, None, None, None)
                continue
            strategies = maintainer.strategies.of(member)
            for key, source in member.body.sources.items():
                strategy = strategies.strategy(frozenset((key,)))
                plan = "\n".join(strategy.lines)
                yield (table.schema, table.name, False, source.schema, source.name, strategy.name, plan)

    return TableFunction("maintenance_info", rows, 0, 1, _COLUMNS, deterministic=False, needs_context=True)


def explain_lines(maintainer: Maintainer, catalog: Catalog, table: TableSchema) -> list[str]:
    """What follows a change of a table: each dependent, how it is brought up to date, and the plan."""
    lines: list[str] = []
    changed = {key_of(table)}
    for member in maintainer.graphs.graph(catalog).readers(changed):
        sources = frozenset(changed & member.body.sources.keys())
        strategy = maintainer.strategies.of(member).strategy(sources)
        changed.add(key_of(member.table))
        lines.append(f"MAINTAIN {member.table.qualified_name} by {strategy.name}")
        lines += [f"  {line}" for line in strategy.lines]
    return lines

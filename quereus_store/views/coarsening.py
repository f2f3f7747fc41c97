"""Keys that do not tell all rows of the source apart: ``select name collate nocase as name … from t``.

The source has 'Ab' and 'aB' under its key, the table holds one of them: the row written last.  That is taken
for what it is, a way to find such rows while they are merged in the source, where the body does nothing but
filter, project and sort one source and shows each column of its key.  CREATE warns of it, and each row that
takes the place of another is announced.

Chapter: views-and-maintained-tables, section 4, coarsened key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quereus_store.execute.notification.images import key_identity
from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import ColumnRef
from quereus_store.schema.objects import TableSchema
from quereus_store.types import CollationRegistry
from quereus_store.views.facts import collation_of, refines
from quereus_store.views.rows import cells

if TYPE_CHECKING:
    from quereus_store.views.body import Body

LOGGER = logging.getLogger("quereus_store.views")

_ONE_SOURCE = (plans.Project, plans.Filter, plans.Sort)


class Weakened(NamedTuple):
    """A key column (its position in the table) that compares more coarsely than the source's column."""

    column: int
    source: str
    before: str
    after: str


def coarsened_key(plan: plans.PlanNode) -> tuple[int, ...] | None:
    """For each column of the source's key an output that shows it; None where the body does more, or less.

    An output that compares as the source's key does is preferred.
    """
    lineage = _lineage(plan)
    if lineage is None:
        return None
    source, shown = lineage
    found = []
    for part in source.primary_key.parts:
        outputs = [position for position, place in enumerate(shown) if place == part.column]
        if not outputs:
            return None
        as_in_source = [one for one in outputs if refines(collation_of(plan.columns[one]), part.collation)]
        found.append((as_in_source or outputs)[0])
    return tuple(dict.fromkeys(found))


def weakened_columns(table: TableSchema, body: Body) -> tuple[Weakened, ...]:
    """The key columns because of which rows of the source may meet under the table's key, if they may."""
    columns = body.plan.columns
    key = [part.column for part in table.primary_key.parts]
    reliable = [
        columns[position].id
        for position in key
        if refines(table.columns[position].collation, collation_of(columns[position]))
    ]
    if body.facts.is_key(reliable):
        return ()
    lineage = _lineage(body.plan)
    if lineage is None:
        return ()
    source, shown = lineage
    collations = {part.column: part.collation for part in source.primary_key.parts}
    found = []
    for position in key:
        place = shown[position]
        if place is not None:
            origin, after = source.columns[place], table.columns[position].collation
            before = collations.get(place, origin.collation)
            if not refines(after, before):
                found.append(Weakened(position, origin.name, before, after))
    return tuple(found)


def settled(
    table: TableSchema, collations: CollationRegistry, stored: Iterable[Row], wanted: Iterable[Row]
) -> list[Row]:
    """Of rows that meet under the table's key the one whose source row is stored already, else the last."""
    key = cells([part.column for part in table.primary_key.parts])
    meets = key_identity(table, collations)
    kept = set(map(key, stored))
    chosen: dict[Any, Row] = {}
    for row in wanted:
        name = meets(row)
        if name not in chosen or key(chosen[name]) not in kept:
            chosen[name] = row
    return list(chosen.values())


def keeps_coarsened_key(table: TableSchema, body: Body) -> bool:
    """Whether the table's key is the body's coarsened one."""
    return body.is_coarsened and {part.column for part in table.primary_key.parts} == set(body.key or ())


def warn_of_merges(table: TableSchema, body: Body) -> None:
    """Tell the log of a table that has just been made where rows may meet under its key."""
    weakened = weakened_columns(table, body)
    if weakened:
        key = ", ".join(table.columns[part.column].name for part in table.primary_key.parts)
        changes = ", ".join(f"{one.source}: collation {one.before} → {one.after}" for one in weakened)
        LOGGER.warning(
            "materialized view '%s': backing key (%s) is coarser than the source primary key (%s);"
            " colliding source rows will last-write-win until they are merged",
            table.qualified_name,
            key,
            changes,
        )


def _lineage(plan: plans.PlanNode) -> tuple[TableSchema, list[int | None]] | None:
    """The one table that a body filters, projects and sorts, and which column of it each output shows."""
    *above, source = plans.walk_plan(plan)
    if not isinstance(source, plans.TableScan) or not all(isinstance(node, _ONE_SOURCE) for node in above):
        return None
    places = dict(zip([column.id for column in source.columns], source.positions, strict=True))
    shown: list[int | None] = []
    for column in plan.columns:
        bare = _bare_column(above, column.id)
        shown.append(None if bare is None else places.get(bare))
    return source.table, shown


def _bare_column(above: Sequence[plans.PlanNode], column: int) -> int | None:
    """The column of the source that an output is as it stands; None for one that is computed."""
    for node in above:
        if isinstance(node, plans.Project):
            made = dict(zip([each.id for each in node.columns], node.expressions, strict=True)).get(column)
            if not isinstance(made, ColumnRef):
                return None
            column = made.id
    return column

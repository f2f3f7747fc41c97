"""Bodies that group: what stands over the grouping, what goes into it, how a group is found.

A :class:`Grouping` takes the plan of a body apart at its Aggregate node.  Below, the
*arguments* plan gives for each input row the group's key and the arguments of every aggregate;
above, the *finish* plan makes rows of the view of groups.  Both can run over given rows.

==========  ===========================================================
row         is
==========  ===========================================================
argument    key columns, then arguments and filters of the aggregates
group       key columns, then the value of each aggregate
==========  ===========================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Column,
    ColumnRef,
    IsTest,
    Truth,
)
from quereus_store.plan.rules.zeros import one_zero
from quereus_store.schema.objects import TableSchema
from quereus_store.types import BOOLEAN, REAL
from quereus_store.types.collations import honours_collation
from quereus_store.views.deltas.substitution import is_linear, scan_id
from quereus_store.views.rows import cells, is_plain

Reader = Callable[[list[Row]], list[Any]]
Sides = tuple[list[Row], list[Row]]
"""The argument rows of a group that came, and those that went."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A body taken apart at its grouping.

    ``inputs`` gives, per aggregate, where its arguments and its filter stand in an argument row.
    ``positions`` says of each column of the grouping that is an output just as it is, where;
    ``outputs`` lists, if all outputs are such, which part of a group row each is.  ``key``
    lists which key columns of a group are the stored key, ``shown`` where in a stored row each key column
    of a group is.  ``cancels``: several changed scans add argument rows that others take away again.
    """

    aggregates: tuple[AggregateCall, ...]
    width: int
    arguments: plans.PlanNode
    inputs: tuple[tuple[tuple[int, ...], int | None], ...]
    positions: Mapping[int, int]
    outputs: tuple[int, ...] | None
    finish: plans.PlanNode
    key: tuple[int, ...]
    shown: tuple[int | None, ...]
    filtered: bool
    slots: tuple[int | None, ...]
    cancels: bool

    def split(self, signed: Iterable[tuple[int, list[Row]]]) -> dict[tuple[Any, ...], Sides]:
        """Argument rows by group."""
        sides: Sides = ([], [])
        for sign, rows in signed:
            sides[0 if sign > 0 else 1].extend(rows)
        added, removed = map(self.gathered, sides)
        groups: dict[tuple[Any, ...], Sides] = {
            name: (rows, removed.get(name, [])) for name, rows in added.items()
        }
        groups.update({name: ([], rows) for name, rows in removed.items() if name not in added})
        if self.cancels:
            return {name: _net(*sides) for name, sides in groups.items()}
        return groups

    def gathered(self, rows: list[Row]) -> Mapping[tuple[Any, ...], list[Row]]:
        """Argument rows by group, where none went."""
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for name, row in zip(map(itemgetter(slice(self.width)), rows), rows, strict=True):
            groups[name].append(row)
        return groups

    @property
    def whole_key(self) -> bool:
        """Whether the stored key has all key columns of a group; else the others follow from it."""
        return len(set(self.key)) == self.width

    def readers(self, *, whole: bool) -> list[Reader]:
        """For each aggregate, a function from argument rows to what it is given of them.

        ``whole``: tuples of all arguments, else the only argument.
        """
        return [_reader(places, condition, whole) for places, condition in self.inputs]


def grouping_of(
    table: TableSchema, plan: plans.PlanNode, moved: Sequence[plans.TableScan], number: Callable[[], int]
) -> Grouping | None:
    """A body whose groups can be followed through changes of these scans; None for any other."""
    node, filtered = plan, False
    while isinstance(node, plans.Project | plans.Sort | plans.Filter):
        filtered = filtered or isinstance(node, plans.Filter)
        node = node.input
    if not isinstance(node, plans.Aggregate) or node.sets is not None:
        return None
    if not all(is_linear(node.input, scan_id(scan)) for scan in moved):
        return None
    if not all(map(_is_simple_key, node.keys, node.using)):
        return None
    positions = _output_positions(plan, node)
    key = _group_key(table, node, positions)
    if key is None:
        return None
    arguments, inputs = _arguments(node, number)
    by_output = {position: column for column, position in positions.items()}
    ids = [column.id for column in node.columns]
    plain = len(by_output) == len(plan.columns)
    return Grouping(
        node.aggregates,
        len(node.keys),
        arguments,
        inputs,
        positions,
        tuple([ids.index(by_output[place]) for place in range(len(plan.columns))]) if plain else None,
        _over(plan, node, plans.GivenRows(node.columns, 0, 1.0)),
        key,
        tuple([positions.get(column.id) for column in node.columns[: len(node.keys)]]),
        filtered,
        tuple([positions.get(column.id) for column in node.columns[len(node.keys) :]]),
        len(moved) > 1,
    )


def _is_simple_key(key: BoundExpression, using: str) -> bool:
    return is_plain(key.type) and (using == "BINARY" or not honours_collation(key.type))


def _output_positions(plan: plans.PlanNode, grouping: plans.Aggregate) -> dict[int, int]:
    meaning: dict[int, int | None] = {column.id: column.id for column in grouping.columns}
    chain: list[plans.PlanNode] = []
    node = plan
    while node is not grouping:
        chain.append(node)
        node = node.input  # type: ignore[attr-defined]
    for node in reversed(chain):
        if isinstance(node, plans.Project):
            meaning = {
                column.id: meaning.get(expression.id) if isinstance(expression, ColumnRef) else None
                for column, expression in zip(node.columns, node.expressions, strict=True)
            }
    found: dict[int, int] = {}
    for position, column in enumerate(plan.columns):
        source = meaning.get(column.id)
        if source is not None:
            found.setdefault(source, position)
    return found


def _group_key(
    table: TableSchema, grouping: plans.Aggregate, positions: Mapping[int, int]
) -> tuple[int, ...] | None:
    """For each part of the stored key, which key of the group it is; None if one is something else."""
    own = grouping.columns[: len(grouping.keys)]
    keys = {positions.get(column.id): place for place, column in enumerate(own)}
    places = [keys.get(part.column) for part in table.primary_key.parts]
    return None if None in places else tuple(places)  # type: ignore[arg-type]


def _over(plan: plans.PlanNode, grouping: plans.PlanNode, given: plans.PlanNode) -> plans.PlanNode:
    """What stands over the grouping, over given groups instead."""
    if plan is grouping:
        return given
    return plans.map_inputs(plan, lambda child: _over(child, grouping, given))


def _arguments(
    grouping: plans.Aggregate, number: Callable[[], int]
) -> tuple[plans.PlanNode, tuple[tuple[tuple[int, ...], int | None], ...]]:
    expressions: list[BoundExpression] = [one_zero(key) if key.type is REAL else key for key in grouping.keys]
    inputs = []
    for call in grouping.aggregates:
        places = tuple(range(len(expressions), len(expressions) + len(call.arguments)))
        expressions += call.arguments
        condition = None
        if call.filter is not None:
            condition = len(expressions)
            expressions.append(IsTest(BOOLEAN, False, None, call.filter, Truth.TRUE))
        inputs.append((places, condition))
    columns = tuple(
        [
            Column(number(), f"argument{place}", each.type, each.nullable, each.collation)
            for place, each in enumerate(expressions)
        ]
    )
    return plans.Project(columns, grouping.input, tuple(expressions)), tuple(inputs)


def _net(added: list[Row], removed: list[Row]) -> Sides:
    """Both sides without what they have in common."""
    if not added or not removed:
        return added, removed
    surplus: dict[str, list[Row]] = {}
    for row in removed:
        surplus.setdefault(repr(row), []).append(row)
    kept = []
    for row in added:
        known = surplus.get(repr(row))
        if known:
            known.pop()
        else:
            kept.append(row)
    return kept, [row for rows in surplus.values() for row in rows]


def _reader(places: tuple[int, ...], condition: int | None, whole: bool) -> Reader:
    if not places:
        # count(*): whatever is not NULL will do.
        if condition is None:
            return lambda rows: rows
        return lambda rows: [row for row in rows if row[condition]]
    if not whole and len(places) == 1:
        only = places[0]
        if condition is None:
            return lambda rows: [row[only] for row in rows]
        return lambda rows: [row[only] for row in rows if row[condition]]
    get = cells(places)
    if condition is None:
        return lambda rows: list(map(get, rows))
    return lambda rows: [get(row) for row in rows if row[condition]]

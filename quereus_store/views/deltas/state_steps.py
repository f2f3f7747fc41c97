"""One more row for a group whose aggregates are kept as states: functions written for the view.

As with stored aggregates (:mod:`.stepping`), most changes are single rows of groups that exist.  The
states of the group and the argument row give the new states and the view's row in one go::

    def add(s, a, g):
        t1 = s[1] + 1
        t2 = add0(s[2], (a[1],))
        return (s[0] + 1, t1, t2, (g[0], finish0(t1), finish1(t2)))

    def row_of(g, s):
        return (g[0], finish0(s[1]), finish1(s[2]))

``s`` is the number of rows, the states and the row (see :mod:`.states`), ``a`` an argument row (see
:mod:`.grouping`), ``g`` the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quereus_store.execute.codegen.source import SourceModule
from quereus_store.functions.aggregates.counting import COUNT_ROWS
from quereus_store.functions.registry import Algebra
from quereus_store.modules.contract import Row
from quereus_store.views.deltas.grouping import Grouping

Finishers = Sequence[Callable[[Any], Any]]
_COUNTING = COUNT_ROWS.algebra


def adding_function(
    grouping: Grouping, algebras: Sequence[Algebra], finishers: Finishers
) -> Callable[[Row, Row, Row], Row]:
    """From the states of a group, one more argument row and the group, the new states.

    The grouping has to be one for which there is a :func:`row_function`.
    """
    module = SourceModule()
    names = [f"t{place}" for place in range(1, len(algebras) + 1)]
    with module.block("def add(s, a, g):"):
        for place, (algebra, (arguments, condition)) in enumerate(
            zip(algebras, grouping.inputs, strict=True), 1
        ):
            old = f"s[{place}]"
            if _COUNTING is not None and algebra.add is _COUNTING.add:
                new = f"{old} + 1"
            else:
                given = "".join([f"a[{argument}], " for argument in arguments])
                new = f"{module.bind('add', algebra.add)}({old}, ({given}))"
            choice = new if condition is None else f"{new} if a[{condition}] else {old}"
            module.line(f"{names[place - 1]} = {choice}")
        row = _row(module, grouping, finishers, names)
        module.line(f"return (s[0] + 1, {''.join([name + ', ' for name in names])}{row})")
    function: Callable[[Row, Row, Row], Row] = module.compile("add")
    return function


def row_function(grouping: Grouping, finishers: Finishers) -> Callable[[Row, Row], Row] | None:
    """From a group and its states, the view's row; None where more stands between them than a choice."""
    if grouping.outputs is None or grouping.filtered:
        return None
    module = SourceModule()
    states = [f"s[{place}]" for place in range(1, len(finishers) + 1)]
    with module.block("def row_of(g, s):"):
        module.line(f"return {_row(module, grouping, finishers, states)}")
    function: Callable[[Row, Row], Row] = module.compile("row_of")
    return function


def _row(module: SourceModule, grouping: Grouping, finishers: Finishers, states: Sequence[str]) -> str:
    width = grouping.width
    cells = []
    for part in grouping.outputs or ():
        if part < width:
            cells.append(f"g[{part}]")
            continue
        state, finish = states[part - width], finishers[part - width]
        plain = _COUNTING is not None and finish is _COUNTING.finish
        cells.append(state if plain else f"{module.bind('finish', finish)}({state})")
    return f"({', '.join(cells)},)"

"""One more row for a stored group: a function that is written for the view.

Most changes are a few inserted rows whose groups exist.  For these the stored row and the
argument row give the new stored row at once, in one expression::

    def step(s, a):
        return (s[0], s[1] + 1, (s[2] or 0) + a[1], s[3] if s[3] <= a[1] else a[1])

``s`` is the stored row, ``a`` an argument row (see :mod:`.grouping`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quereus_store.execute.codegen.source import SourceModule
from quereus_store.functions.aggregates.counting import COUNT_ROWS, COUNT_VALUES
from quereus_store.functions.aggregates.extremes import MAX, MIN
from quereus_store.functions.aggregates.sums import SUM
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import AggregateCall
from quereus_store.types import REAL
from quereus_store.views.deltas.grouping import Grouping

Step = Callable[[Row, Row], Row]


def step_of(grouping: Grouping, averages: Mapping[int, tuple[int, int, Callable[..., Any]]]) -> Step | None:
    """The function for a grouping; ``averages`` tells which sum and count each average is made of.

    None where some aggregate has no such expression.
    """
    if grouping.outputs is None:
        return None
    module = SourceModule()
    values: dict[int, str] = {}
    for place, call in enumerate(grouping.aggregates):
        if place not in averages:
            source = _value(grouping, place, call)
            if source is None:
                return None
            values[place] = source
    for place, (total, count, combine) in averages.items():
        name = module.bind("combine", combine)
        values[place] = f"{name}({values[total]}, {values[count]})"
    width = grouping.width
    cells = [
        f"s[{position}]" if part < width else values[part - width]
        for position, part in enumerate(grouping.outputs)
    ]
    with module.block("def step(s, a):"):
        module.line(f"return ({', '.join(cells)},)")
    step: Step = module.compile("step")
    return step


def _value(grouping: Grouping, place: int, call: AggregateCall) -> str | None:
    slot = grouping.slots[place]
    arguments, condition = grouping.inputs[place]
    if slot is None or len(arguments) > 1:
        return None
    old = f"s[{slot}]"
    skipped = [] if condition is None else [f"not a[{condition}]"]
    new = ""
    if arguments:
        new = f"a[{arguments[0]}]"
        if call.arguments[0].nullable:
            skipped.append(f"{new} is None")
    skips = " or ".join(skipped)
    function = call.function
    if function in (COUNT_ROWS, COUNT_VALUES):
        return f"({old} if {skips} else {old} + 1)" if skips else f"{old} + 1"
    if function == SUM:
        return f"({old} if {skips} else ({old} or 0) + {new})" if skips else f"({old} or 0) + {new}"
    if function in (MIN, MAX):
        order = "<=" if function == MIN else ">="
        kept = f"({old} is not None and {old} {order} {new})"
        one_zero = " + 0.0" if call.arguments[0].type is REAL else ""
        return f"({old} if {' or '.join([*skipped, kept])} else {new}{one_zero})"
    return None

"""``current_date``, ``current_time``, ``current_timestamp``: the clock, where nothing else has the name.

They stay column references in the tree, so that columns and context variables of these names come first and
every text is printed as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.sql.nodes import ColumnReference, FunctionCall, Literal, LiteralKind

_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
)


def clock_call(name: ColumnReference) -> FunctionCall | None:
    """The call that an unqualified name stands for, None where it is no name of the clock."""
    if name.table is not None:
        return None
    function = _FUNCTIONS.get(name.column.lower())
    if function is None:
        return None
    now = Literal(LiteralKind.TEXT, "now", position=name.position)
    return FunctionCall(function, (now,), spelling=function, position=name.position)

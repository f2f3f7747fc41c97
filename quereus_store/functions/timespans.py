"""Reading TIMESPAN values: the units as written, and the whole length (functions, section 6).

``timespan_hours('PT90M')`` is 0, because the value has no hours; ``timespan_total_hours`` of it is 1.5.  Only
ISO text is read; anything else gives NULL.
"""

from __future__ import annotations

from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.types.logical import INTEGER, REAL
from quereus_store.types.temporal.accessors import (
    TIMESPAN_COMPONENTS,
    TIMESPAN_TOTALS,
    timespan_component,
    timespan_total,
)


def timespan_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        *(
            ScalarFunction(
                f"timespan_{unit}", timespan_component(unit), 1, 1, REAL if unit == "seconds" else INTEGER
            )
            for unit in TIMESPAN_COMPONENTS
        ),
        *(
            ScalarFunction(f"timespan_total_{unit}", timespan_total(unit), 1, 1, REAL)
            for unit in TIMESPAN_TOTALS
        ),
    ]

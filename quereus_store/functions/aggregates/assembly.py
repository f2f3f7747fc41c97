"""All aggregates in one list."""

from __future__ import annotations

from quereus_store.functions.aggregates.bits import BIT_AGGREGATES
from quereus_store.functions.aggregates.choices import CHOICES
from quereus_store.functions.aggregates.counting import (
    ANY_VALUE,
    COUNT_ROWS,
    COUNT_VALUES,
    TRUTH_AGGREGATES,
)
from quereus_store.functions.aggregates.extremes import MAX, MIN
from quereus_store.functions.aggregates.json_groups import JSON_AGGREGATES
from quereus_store.functions.aggregates.percentiles import PERCENTILES
from quereus_store.functions.aggregates.regression import REGRESSION
from quereus_store.functions.aggregates.statistics import STATISTICS
from quereus_store.functions.aggregates.sums import AVG, SUM, TOTAL
from quereus_store.functions.aggregates.texts import TEXT_AGGREGATES
from quereus_store.functions.registry import Function


def aggregate_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        COUNT_ROWS,
        COUNT_VALUES,
        SUM,
        TOTAL,
        AVG,
        MIN,
        MAX,
        *TEXT_AGGREGATES,
        *JSON_AGGREGATES,
        *STATISTICS,
        *REGRESSION,
        *PERCENTILES,
        *BIT_AGGREGATES,
        *CHOICES,
        *TRUTH_AGGREGATES,
        ANY_VALUE,
    ]

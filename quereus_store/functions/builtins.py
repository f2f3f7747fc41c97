"""The registry of built-in functions: every family, assembled once."""

from __future__ import annotations

from functools import cache

from quereus_store.functions.aggregates import aggregate_functions
from quereus_store.functions.aggregates.indicators import indicator_functions
from quereus_store.functions.blobs import blob_functions
from quereus_store.functions.conditional import conditional_functions
from quereus_store.functions.conversion import conversion_functions
from quereus_store.functions.dates import date_functions
from quereus_store.functions.diagnostics import diagnostic_functions
from quereus_store.functions.introspection import introspection_functions
from quereus_store.functions.json_functions import json_functions
from quereus_store.functions.lenses import lens_functions
from quereus_store.functions.math import math_functions
from quereus_store.functions.registry import FunctionRegistry
from quereus_store.functions.table_functions import table_functions
from quereus_store.functions.text import text_functions
from quereus_store.functions.timespans import timespan_functions

_FAMILIES = (
    math_functions,
    conditional_functions,
    text_functions,
    blob_functions,
    conversion_functions,
    date_functions,
    timespan_functions,
    json_functions,
    aggregate_functions,
    indicator_functions,
    table_functions,
    introspection_functions,
    lens_functions,
    diagnostic_functions,
)


@cache
def builtin_functions() -> FunctionRegistry:
    """The built-in functions.  The registry is shared and frozen: a database layers its own over it."""
    registry = FunctionRegistry(function for family in _FAMILIES for function in family())
    registry.freeze()
    return registry

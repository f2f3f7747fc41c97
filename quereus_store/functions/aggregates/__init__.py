"""Aggregates: one module a family; see :class:`quereus_store.functions.registry.AggregateFunction`.

Each aggregate comes in two forms that give the same result to the last bit: ``evaluate`` over whole columns,
as loops in C, and an ``algebra`` of immutable states for window frames and maintained views.
"""

from quereus_store.functions.aggregates.assembly import aggregate_functions

__all__ = ["aggregate_functions"]

"""Ranges of keys: what a seek reads.

Equal leading columns are a prefix of their keys, a condition on the next column is a bound within that
prefix.  Values are encoded by their own class (see ``values.py``), so a bound may be any value: ``id < 1.5``
ends just before the key of 2, ``id = 1.5`` is a range that holds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quereus_store.codec.bits import successor
from quereus_store.codec.keys import KeyEncoder
from quereus_store.types.values import Value

KeyRange = tuple[bytes, bytes | None]
"""Lower bound, inclusive, and upper bound, exclusive; None is the end of the key space."""

EMPTY_RANGE: KeyRange = (b"", b"")


class Bound(NamedTuple):
    """One end of a range over a column's values."""

    value: Value
    inclusive: bool


def key_range(
    encoder: KeyEncoder,
    equal: Sequence[Value] = (),
    lower: Bound | None = None,
    upper: Bound | None = None,
) -> KeyRange:
    """The keys whose leading columns equal ``equal`` and whose next column is within the bounds.

    The column after ``equal`` obeys the bounds in *value* order; a descending column is turned around here.
    A range with a bound holds no NULL of that column, whichever end is open, and a bound that is NULL holds
    nothing.  Without bounds the range is everything below ``equal``, NULLs included.
    """
    prefix = encoder.encode_leading(equal)
    if lower is None and upper is None:
        return prefix, successor(prefix)
    if (lower and lower.value is None) or (upper and upper.value is None):
        return EMPTY_RANGE
    index = len(equal)
    encode = encoder.encoders[index]
    low = None if lower is None else prefix + encode(lower.value)
    high = None if upper is None else prefix + encode(upper.value)
    if encoder.columns[index].descending:
        start = prefix if high is None else _start(high, upper)
        end: bytes | None = prefix + b"\xff" if low is None else _end(low, lower)
    else:
        start = prefix + b"\x01" if low is None else _start(low, lower)
        end = successor(prefix) if high is None else _end(high, upper)
    if end is not None and start >= end:
        return EMPTY_RANGE
    return start, end


def _start(key: bytes, bound: Bound | None) -> bytes:
    """The first key of the range that begins at a value's keys, or behind them."""
    if bound is None or bound.inclusive:
        return key
    # A value's key holds a byte below FF: its tag, or in a descending column the end of its body.
    return successor(key) or key


def _end(key: bytes, bound: Bound | None) -> bytes | None:
    return successor(key) if bound is None or bound.inclusive else key

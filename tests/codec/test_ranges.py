"""A range of keys holds just the rows that the condition names."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.codec import (
    EMPTY_RANGE,
    Bound,
    KeyColumn,
    is_faithful,
    key_column,
    key_encoder,
    key_range,
    successor,
)
from quereus_store.types.collations import NOCASE
from quereus_store.types.comparison import compare
from quereus_store.types.logical import ANY, INTEGER, JSON, TEXT, TIMESPAN
from tests.codec.strategies import integers, numbers, texts

Rows = list[tuple[Any, ...]]


def _inside(rows: Rows, columns: list[KeyColumn], *arguments: Any, **bounds: Any) -> Rows:
    encoder = key_encoder(columns, prefix=b"\x10")
    lower, upper = key_range(encoder, *arguments, **bounds)
    return [
        row for row in rows if lower <= encoder.encode(row) and (upper is None or encoder.encode(row) < upper)
    ]


@pytest.mark.parametrize("descending", [False, True], ids=["asc", "desc"])
def test_a_real_probe_on_an_integer_key(descending: bool) -> None:
    columns = [KeyColumn(INTEGER, nullable=False, descending=descending)]
    rows: Rows = [(-1,), (0,), (1,), (2,), (2**53 + 1,)]
    half = Bound(1.5, inclusive=True)
    assert _inside(rows, columns, (1.5,)) == []
    assert _inside(rows, columns, upper=half) == [(-1,), (0,), (1,)]
    assert _inside(rows, columns, lower=half) == [(2,), (2**53 + 1,)]
    assert _inside(rows, columns, (2.0**53 + 2,)) == []
    assert _inside(rows, columns, lower=Bound(2.0**53, inclusive=False)) == [(2**53 + 1,)]
    assert _inside(rows, columns, (1.0,)) == [(1,)]
    assert _inside(rows, columns, (True,)) == [(1,)]
    assert _inside(rows, columns, upper=Bound(math.inf, inclusive=False)) == rows
    assert _inside(rows, columns, lower=Bound("text", inclusive=True)) == []
    assert _inside(rows, columns, upper=Bound("text", inclusive=True)) == rows


@pytest.mark.parametrize("descending", [False, True], ids=["asc", "desc"])
def test_bounds_leave_out_nulls(descending: bool) -> None:
    columns = [KeyColumn(INTEGER, descending=descending)]
    rows: Rows = [(None,), (1,), (2,)]
    assert _inside(rows, columns) == rows
    assert _inside(rows, columns, (None,)) == [(None,)]
    assert _inside(rows, columns, upper=Bound(1, inclusive=True)) == [(1,)]
    assert _inside(rows, columns, lower=Bound(1, inclusive=True)) == [(1,), (2,)]
    assert key_range(key_encoder(columns), lower=Bound(None, inclusive=True)) == EMPTY_RANGE


def test_equal_leading_columns_then_a_range() -> None:
    columns = [key_column(TEXT, collation=NOCASE), KeyColumn(INTEGER, nullable=False, descending=True)]
    rows: Rows = [("fig", 1), ("FIG", 5), ("fig\0", 5), ("figs", 5), (None, 5)]
    assert _inside(rows, columns, ("Fig",)) == [("fig", 1), ("FIG", 5)]
    assert _inside(rows, columns, ("Fig",), lower=Bound(2, inclusive=True)) == [("FIG", 5)]
    assert _inside(rows, columns, ("Fig",), upper=Bound(5, inclusive=False)) == [("fig", 1)]


OPERATORS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), integers | texts | st.none()), min_size=1, max_size=8),
    st.integers(0, 2),
    numbers | texts,
    st.sampled_from(list(OPERATORS)),
    st.booleans(),
)
def test_ranges_agree_with_the_operators(
    rows: Rows, first: int, probe: Any, operator: str, descending: bool
) -> None:
    columns = [KeyColumn(INTEGER, nullable=False), KeyColumn(ANY, descending=descending)]
    bound = Bound(probe, inclusive="=" in operator)
    side = {"upper": bound} if "<" in operator else {"lower": bound}
    expected = [
        row
        for row in rows
        if row[0] == first and row[1] is not None and OPERATORS[operator](compare(row[1], probe))
    ]
    assert _inside(rows, columns, (first,), **side) == expected


@given(st.binary(max_size=4), st.binary(max_size=6))
def test_the_successor_is_the_end_of_a_prefix(prefix: bytes, key: bytes) -> None:
    end = successor(prefix)
    within = prefix <= key and (end is None or key < end)
    assert within == key.startswith(prefix)


def test_probes_that_a_seek_cannot_answer() -> None:
    assert not is_faithful(KeyColumn(TIMESPAN), 5)
    assert not is_faithful(KeyColumn(TIMESPAN), "1 hour")
    assert is_faithful(KeyColumn(TIMESPAN), "PT60M")
    assert not is_faithful(KeyColumn(JSON), b"x")
    assert is_faithful(KeyColumn(JSON), {"a": 1})
    assert not is_faithful(KeyColumn(ANY), "PT60M")
    assert is_faithful(KeyColumn(ANY), "Paris")
    assert is_faithful(KeyColumn(TEXT), "PT60M")

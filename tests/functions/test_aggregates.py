"""Aggregates by example, and the laws of their algebras."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quereus_store.functions.aggregates import aggregate_functions, exact
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.sortkeys import any_order_key

from .calling import aggregate

INF, NAN = math.inf, math.nan

EXAMPLES: list[tuple[str, tuple[list[Any], ...], Any]] = [
    ("count", ([1, None, "x"],), 2),
    ("sum", ([1, 2, None],), 3),
    ("sum", ([],), None),
    ("sum", ([None],), None),
    ("sum", ([9007199254740991, 9],), 9007199254741000),
    ("sum", ([2**80, 1],), 2**80 + 1),
    ("sum", ([4.0, 5.0],), 9.0),
    ("sum", ([0.1] * 10,), 1.0),
    ("sum", ([1, 0.5],), 1.5),
    ("sum", ([True, 1],), 2),
    ("sum", (["10", "20", " 30 "],), 60),
    ("sum", (["abc", b"x", {}],), None),
    ("sum", (["abc", 1],), 1),
    ("sum", ([1e308, 1e308],), INF),
    ("sum", ([1e308, 1e308, -1e308],), 1e308),
    ("sum", ([INF, -INF],), None),
    ("sum", ([1.0, NAN],), None),
    ("total", ([],), 0.0),
    ("total", ([1, 2],), 3.0),
    ("total", (["abc"],), 0.0),
    ("avg", ([1, 2],), 1.5),
    ("avg", ([],), None),
    ("avg", (["x"],), None),
    ("avg", (["3", "x", 1],), 2.0),
    ("avg", ([10**400],), INF),
    ("min", (["20", "100", "b"],), "100"),
    ("max", ([2, 3.5],), 3.5),
    ("max", ([],), None),
    ("group_concat", ([1, None, 2.0, b"x"],), "1,2,x"),
    ("group_concat", ([],), None),
    ("group_concat", (["a", "b", "c"], ["-", "+", None]), "a+b+c"),
    ("group_concat", (["a", "b"], [None, None]), "a,b"),
    ("string_agg", (["a", "b"], ["/", "/"]), "a/b"),
    ("string_concat", (["a", 1, "b"],), "a,b"),
    ("string_concat", ([],), ""),
    ("var_pop", ([1, 2, 3],), 2 / 3),
    ("var_samp", ([1, 2, 3],), 1.0),
    ("var_samp", ([1],), None),
    ("var_pop", ([1],), 0.0),
    ("stddev_pop", ([2, 4, 4, 4, 5, 5, 7, 9],), 2.0),
    ("stddev_samp", ([1.5, 2.5],), math.sqrt(0.5)),
    ("var_pop", ([1e15 + 1, 1e15 + 2, 1e15 + 3],), 2 / 3),
    ("var_pop", ([INF, 1.0],), None),
    ("median", ([5, 1, 3],), 3.0),
    ("median", ([1, 2],), 1.5),
    ("json_group_array", ([1, None, "x", b"y"],), [1, None, "x", None]),
    ("json_group_array", ([],), None),
    ("json_group_object", (["a", None, 1, "a"], [1, 2, 3, 4]), {"a": 4, "1": 3}),
    ("json_group_object", ([None], [1]), None),
    ("every", ([True, 1, "x"],), False),
    ("some", ([False, "2"],), True),
    ("every", ([],), None),
    ("any_value", ([None, 3],), 3),
    ("corr", ([1, 2, 3, 4], [2, 4, 6, 8]), 1.0),
    ("corr", ([1, 2, 3], [3, 2, 1]), -1.0),
    ("corr", ([1, 1], [2, 3]), None),
    ("corr", ([1.0, INF], [2, 3]), None),
    ("corr", ([None, 2, 3, 4], [9, None, 1, 2]), 1.0),
    ("covar_pop", ([1, 2, 3], [10, 20, 60]), 50 / 3),
    ("covar_samp", ([1, 2, 3], [10, 20, 60]), 25.0),
    ("covar_samp", ([1], [10]), None),
    ("regr_slope", ([3, 5, 7], [1, 2, 3]), 2.0),
    ("regr_slope", ([3, 5], [1, 1]), None),
    ("regr_intercept", ([3.5, 5.5, 7.5], [1, 2, 3]), 1.5),
    ("regr_r2", ([5, 5], [1, 2]), 1.0),
    ("regr_r2", ([1, 2, 4], [1, 2, 3]), 27 / 28),
    ("regr_count", ([1, None, "3", "x"], [1, 1, 1, 1]), 2),
    ("regr_count", ([], []), 0),
    ("regr_avgx", ([1, 2, None], [10, 30, 90]), 20.0),
    ("regr_avgy", ([1, 2, 3], [10, 30, None]), 1.5),
    ("regr_sxx", ([1, 2, 3], [1, 2, 4]), 14 / 3),
    ("regr_syy", ([1, 2, 4], [1, 2, 3]), 14 / 3),
    ("regr_sxy", ([1, 2, 4], [1, 2, 3]), 3.0),
    ("regr_sxy", ([], []), None),
    ("bit_and", ([7, 14, None],), 6),
    ("bit_or", ([1, 6.9, "8", "x"],), 15),
    ("bit_xor", ([1, 3, 2**80],), 2**80 + 2),
    ("bit_xor", ([INF],), None),
    ("listagg", (["a", None, "b"], ["/", "/", "/"]), "a/b"),
    ("arg_max", (["a", "b", "c", None], [1, 3, 3, 9]), "b"),
    ("max_by", (["a", "b"], [None, None]), None),
    ("arg_min", (["a", "b", "c"], [None, 3, 2]), "c"),
    ("min_by", ([1, 2], ["b", "a"]), 2),
    ("first", ([None, 1],), None),
    ("last", ([1, None, 2],), 2),
    ("last", ([],), None),
    ("mode", ([2, 1, 2, 1, 3],), 1),
    ("mode", ([2, 1, 2, 1, 3], [True] * 5), 2),
    ("mode", ([None],), None),
]


@pytest.mark.parametrize(("name", "columns", "value"), EXAMPLES)
def test_value(name: str, columns: tuple[list[Any], ...], value: Any) -> None:
    result = aggregate(name, *columns)
    assert (type(result), result) == (type(value), value)


def test_min_and_max_take_the_order_from_a_key() -> None:
    column = ["b", "A", "c", "B"]
    function = next(f for f in aggregate_functions() if f.name == "min")
    assert function.evaluate(column, key=str.lower) == "A"
    assert aggregate("max", column) == "c"


ALGEBRAIC = [f for f in aggregate_functions() if isinstance(f, AggregateFunction) and f.algebra is not None]

numbers = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True)
    | st.floats(-10, 10)
    | st.sampled_from(["7", "x", "1e3", "", "0.1"])
)
texts = st.none() | st.sampled_from(["a", "b", "", "10"])


def rows_for(function: AggregateFunction) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of arguments that fit an aggregate: min and max get comparable values."""
    if function.name in ("min", "max"):
        return st.lists(st.tuples(st.none() | st.integers(-5, 5) | st.floats(-5, 5)), max_size=8)
    if function.name.startswith(("regr_", "corr", "covar")):
        return st.lists(st.tuples(numbers, numbers), max_size=8)
    if function.name.startswith(("arg_", "max_", "min_")):
        return st.lists(st.tuples(texts, st.none() | st.integers(-3, 3)), max_size=8)
    width = max(function.minimum, 0)
    values = [numbers, texts][:width] if width < 2 else [numbers, texts]
    return st.lists(st.tuples(*values), max_size=8)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and repr(left) == repr(right)


def folded(algebra: Algebra, rows: list[tuple[Any, ...]]) -> Any:
    return reduce(algebra.add, rows, algebra.start())


def evaluated(function: AggregateFunction, rows: list[tuple[Any, ...]]) -> Any:
    if function.maximum == 0:
        return function.evaluate([()] * len(rows))
    kept = [row for row in rows if not (function.skips_nulls and row[0] is None)]
    columns = list(map(list, zip(*kept, strict=True))) or [[] for _ in range(function.minimum)]
    return function.evaluate(*columns)


@pytest.mark.parametrize("function", ALGEBRAIC, ids=lambda f: f"{f.name}/{f.minimum}")
@given(data=st.data())
def test_evaluating_a_column_equals_adding_its_rows(function: AggregateFunction, data: st.DataObject) -> None:
    rows = data.draw(rows_for(function))
    algebra = function.algebra
    assert algebra is not None
    assert same(evaluated(function, rows), algebra.finish(folded(algebra, rows)))


@pytest.mark.parametrize("function", ALGEBRAIC, ids=lambda f: f"{f.name}/{f.minimum}")
@given(data=st.data())
def test_merging_parts_equals_adding_all_rows(function: AggregateFunction, data: st.DataObject) -> None:
    algebra = function.algebra
    assert algebra is not None
    if algebra.merge is None:
        pytest.skip("no merge")
    first, second = data.draw(rows_for(function)), data.draw(rows_for(function))
    merged = algebra.merge(folded(algebra, first), folded(algebra, second))
    assert same(algebra.finish(merged), algebra.finish(folded(algebra, first + second)))
    assert same(algebra.finish(algebra.merge(merged, algebra.start())), algebra.finish(merged))
    assert same(algebra.finish(algebra.merge(algebra.start(), merged)), algebra.finish(merged))


def _shown(state: object) -> str:
    """A state as text; which of the two zeros min and max hold is settled when they are finished."""
    return repr(state).replace("-0.0", "0.0")


TOTALLING = [f for f in ALGEBRAIC if f.algebra is not None and f.algebra.total is not None]


def test_the_usual_aggregates_take_whole_columns() -> None:
    assert {f.name for f in TOTALLING} >= {"count", "sum", "total", "avg", "min", "max"}


@pytest.mark.parametrize("function", TOTALLING, ids=lambda f: f"{f.name}/{f.minimum}")
@given(data=st.data())
def test_the_state_of_a_column_is_that_of_its_rows(function: AggregateFunction, data: st.DataObject) -> None:
    algebra = function.algebra
    assert algebra is not None
    assert algebra.total is not None
    assert algebra.merge is not None
    first, second = data.draw(rows_for(function)), data.draw(rows_for(function))
    column = [row[0] if row else row for row in second]
    assert _shown(algebra.total(column)) == _shown(folded(algebra, second))
    merged = algebra.merge(folded(algebra, first), algebra.total(column))
    assert _shown(merged) == _shown(folded(algebra, first + second))


REMOVABLE = [f for f in ALGEBRAIC if f.algebra is not None and f.algebra.remove is not None]


@pytest.mark.parametrize("function", REMOVABLE, ids=lambda f: f"{f.name}/{f.minimum}")
@given(data=st.data())
def test_removing_what_was_added_leaves_no_trace(function: AggregateFunction, data: st.DataObject) -> None:
    algebra = function.algebra
    assert algebra is not None
    assert algebra.remove is not None
    kept, passing = data.draw(rows_for(function)), data.draw(rows_for(function))
    state = folded(algebra, kept)
    assert reduce(algebra.remove, passing, reduce(algebra.add, passing, state)) == state
    assert reduce(algebra.remove, kept, state) == algebra.start()


@pytest.mark.parametrize("name", ["count", "sum", "min", "max"])
@given(rows=st.lists(st.tuples(st.integers(-9, 9)), max_size=6), more=st.lists(st.tuples(st.integers(-9, 9))))
def test_a_decoded_state_goes_on_like_the_original(
    name: str, rows: list[tuple[int]], more: list[tuple[int]]
) -> None:
    function = next(f for f in ALGEBRAIC if f.name == name and f.minimum == 1)
    algebra = function.algebra
    assert algebra is not None
    assert algebra.decode is not None
    original = folded(algebra, rows)
    decoded = algebra.decode(algebra.finish(original))
    assert algebra.finish(reduce(algebra.add, more, decoded)) == algebra.finish(
        reduce(algebra.add, more, original)
    )
    if algebra.decode_exact and algebra.remove is not None:
        assert algebra.finish(reduce(algebra.remove, rows, decoded)) == algebra.finish(algebra.start())


@given(st.lists(st.integers(-5, 5)))
def test_avg_is_made_of_sum_and_count(values: list[int]) -> None:
    function = next(f for f in ALGEBRAIC if f.name == "avg")
    assert function.algebra is not None
    assert function.algebra.decompose is not None
    assert function.algebra.decompose.partials == (("sum", False), ("count", False))
    combined = function.algebra.decompose.combine(aggregate("sum", values), aggregate("count", values))
    assert combined == aggregate("avg", values)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms(use_true_random=False)
)
def test_the_order_of_the_rows_does_not_matter_to_sums(values: list[float], shuffler: random.Random) -> None:
    shuffled = values[:]
    shuffler.shuffle(shuffled)
    exact = sum(map(Fraction, values))
    for name in ("regr_sxy", "corr"):
        assert aggregate(name, values, values) == aggregate(name, shuffled, shuffled)
    for name in ("sum", "avg", "total", "var_pop", "stddev_samp"):
        assert aggregate(name, values) == aggregate(name, shuffled)
    if abs(exact) < Fraction(2) ** 1000:
        assert aggregate("sum", values) == float(exact)


@given(st.lists(st.none() | st.integers(-3, 3) | st.sampled_from(["a", "P1D", b"x"]) | st.booleans()))
def test_keyed_extremes_agree_with_sorting(values: list[Any]) -> None:
    present = [value for value in values if value is not None]
    for name, pick in (("min", min), ("max", max)):
        function = next(f for f in ALGEBRAIC if f.name == name)
        assert function.keyed_algebra is not None
        algebra = function.keyed_algebra(any_order_key)
        expected = pick(present, key=any_order_key) if present else None
        assert same(function.evaluate(present, key=any_order_key), expected)
        assert same(algebra.finish(folded(algebra, [(value,) for value in values])), expected)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from([0.1, -0.0, 5e-324, 1.7e308, -1.7e308, math.inf, math.nan]),
        max_size=30,
    )
)
def test_many_floats_at_once_have_the_state_that_they_have_one_by_one(values: list[float]) -> None:
    state = exact.EMPTY
    for value in values:
        state = exact.add(state, (value,))
    assert exact.total_of(values) == state

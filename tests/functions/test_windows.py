"""Window functions: every fast way gives what looking at each frame row by row gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.functions.aggregates import aggregate_functions
from quereus_store.functions.registry import AggregateFunction
from quereus_store.functions.user import aggregate_class_from, aggregate_function_from
from quereus_store.functions.windows import (
    WINDOW_FUNCTIONS,
    Frames,
    FrameSpecification,
    Partition,
    aggregate_over,
    check_window_call,
    frame_offset,
    frames_of,
    peers_of,
)

BOUNDS = ("unbounded preceding", "preceding", "current row", "following", "unbounded following")

specifications = st.builds(
    FrameSpecification,
    unit=st.sampled_from(["rows", "range", "groups"]),
    start=st.sampled_from(BOUNDS[:4]),
    end=st.sampled_from(BOUNDS[1:]),
    start_offset=st.integers(0, 3),
    end_offset=st.integers(0, 3),
    exclusion=st.sampled_from(["no others", "current row", "group", "ties"]),
)

ordered_keys = st.lists(st.none() | st.integers(-4, 4) | st.sampled_from([0.5, "z"]), max_size=9)


def order(key: Any) -> tuple[int, Any]:
    return (0, 0) if key is None else (2, key) if isinstance(key, str) else (1, key)


def naive_frame(spec: FrameSpecification, keys: list[Any], row: int, descending: bool) -> list[int]:
    """The rows of a frame by the definition: one test per row and bound."""
    sign = -1 if descending else 1
    groups = sorted({keys.index(key) for key in keys})
    group_of = [groups.index(keys.index(key)) for key in keys]

    def place(other: int) -> Any:
        if spec.unit == "rows":
            return other
        if spec.unit == "groups":
            return group_of[other]
        return keys[other]

    def reaches(other: int, bound: str, offset: float, is_start: bool) -> bool:
        if bound.startswith("unbounded"):
            return True
        shift = {"preceding": -offset, "current row": 0, "following": offset}[bound]
        if spec.unit == "range" and (bound == "current row" or not shift or not is_number(keys[row])):
            left, right = group_of[other], group_of[row]
        elif spec.unit == "range":
            if not is_number(keys[other]):
                # Keys without a distance lie outside of every interval, on the side where they sort.
                return (other > row) == is_start
            left, right = sign * keys[other], sign * keys[row] + shift
        else:
            left, right = place(other), place(row) + shift
        return bool(left >= right) if is_start else bool(left <= right)

    excluded: Callable[[int], bool] = {
        "no others": lambda other: False,
        "current row": lambda other: other == row,
        "group": lambda other: group_of[other] == group_of[row],
        "ties": lambda other: group_of[other] == group_of[row] and other != row,
    }[spec.exclusion]
    return [
        other
        for other in range(len(keys))
        if reaches(other, spec.start, spec.start_offset, True)
        and reaches(other, spec.end, spec.end_offset, False)
        and not excluded(other)
    ]


def is_number(key: Any) -> bool:
    return isinstance(key, int | float)


def rows_in(frames: Frames, row: int) -> list[int]:
    return [place for starts, ends in frames.parts for place in range(starts[row], ends[row])]


def build(keys: list[Any], spec: FrameSpecification, descending: bool) -> tuple[list[Any], Frames]:
    ordered = sorted(keys, key=order, reverse=descending)
    return ordered, frames_of(spec, peers_of(len(keys), ordered), ordered, descending=descending)


@given(ordered_keys, specifications, st.booleans())
@settings(max_examples=300)
def test_frames_hold_the_rows_of_the_definition(
    keys: list[Any], spec: FrameSpecification, descending: bool
) -> None:
    ordered, frames = build(keys, spec, descending)
    assert [rows_in(frames, row) for row in range(len(keys))] == [
        naive_frame(spec, ordered, row, descending) for row in range(len(keys))
    ]
    for starts, ends in frames.parts:
        assert starts == sorted(starts)
        assert ends == sorted(ends)


class Product:
    """A program's aggregate that can slide."""

    def __init__(self) -> None:
        self.factors: list[int] = []

    def step(self, value: int) -> None:
        self.factors.append(value)

    def inverse(self, value: int) -> None:
        self.factors.remove(value)

    def value(self) -> int:
        return math.prod(self.factors)

    finalize = value


OWN = [
    aggregate_class_from(Product, "product"),
    aggregate_function_from(lambda acc, x: [*acc, x], lambda acc: repr(acc), list, "listing", arguments=1),
    aggregate_function_from(lambda acc, x: acc * 10 + x, lambda acc: acc, 0, "digits", arguments=1),
    aggregate_function_from(lambda acc: acc + 1, lambda acc: acc, 0, "rows", arguments=0),
]

AGGREGATES = [f for f in aggregate_functions() if isinstance(f, AggregateFunction)]


def naive_aggregate(
    function: AggregateFunction, frames: Frames, columns: list[list[Any]], keep: list[bool] | None
) -> list[Any]:
    results = []
    for row in range(frames.size):
        places = [place for place in rows_in(frames, row) if keep is None or keep[place]]
        if function.skips_nulls and columns:
            places = [place for place in places if columns[0][place] is not None]
        gathered = [[column[place] for place in places] for column in columns]
        results.append(function.evaluate(*(gathered or [[()] * len(places)])))
    return results


@pytest.mark.parametrize("function", [*AGGREGATES, *OWN], ids=lambda f: f"{f.name}/{f.minimum}")
@given(data=st.data())
@settings(max_examples=60)
def test_aggregates_over_frames_equal_evaluating_each_frame(
    function: AggregateFunction, data: st.DataObject
) -> None:
    keys = data.draw(st.lists(st.integers(0, 4), max_size=9))
    spec = data.draw(specifications)
    _, frames = build(keys, spec, False)
    own = function in OWN
    values = st.integers(1, 4) if own else st.none() | st.integers(-4, 4) | st.floats(-4, 4)
    width = function.minimum
    further = st.none() | st.floats(0, 1) if function.name.startswith("percentile") else values
    columns = [
        data.draw(st.lists(further if place else values, min_size=len(keys), max_size=len(keys)))
        for place in range(width)
    ]
    keep = data.draw(st.none() | st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)))
    fast = aggregate_over(function, frames, columns, keep=keep)
    assert list(map(repr, fast)) == list(map(repr, naive_aggregate(function, frames, columns, keep)))


@given(st.lists(st.sampled_from(["b", "A", "c", "B", None]), max_size=9), specifications)
def test_extremes_under_a_collation(values: list[Any], spec: FrameSpecification) -> None:
    _, frames = build([0] * len(values), spec, False)
    for name, pick in (("min", min), ("max", max)):
        function = next(f for f in AGGREGATES if f.name == name)
        fast = aggregate_over(function, frames, [values], key=str.lower)
        for row, found in enumerate(fast):
            present = [values[place] for place in rows_in(frames, row) if values[place] is not None]
            assert found == (pick(present, key=str.lower) if present else None)


# --- functions that need OVER -------------------------------------------------------------------------------


def over(
    name: str, keys: list[Any], *columns: list[Any], ignore_nulls: bool = False, **frame: Any
) -> list[Any]:
    peers = peers_of(len(keys), keys)
    partition = Partition(len(keys), peers, frames_of(FrameSpecification(**frame), peers, keys))
    return WINDOW_FUNCTIONS[name].evaluate(partition, columns, ignore_nulls)


KEYS = [10, 20, 20, 30, 40]
TEXT = ["a", "b", "c", "d", "e"]
GAPS = ["a", None, "c", None, "e"]
TWO = [2] * 5
AROUND = {"unit": "rows", "start": "preceding", "start_offset": 1, "end": "following", "end_offset": 1}


@pytest.mark.parametrize(
    ("name", "columns", "options", "values"),
    [
        ("row_number", (), {}, [1, 2, 3, 4, 5]),
        ("rank", (), {}, [1, 2, 2, 4, 5]),
        ("dense_rank", (), {}, [1, 2, 2, 3, 4]),
        ("percent_rank", (), {}, [0.0, 0.25, 0.25, 0.75, 1.0]),
        ("cume_dist", (), {}, [0.2, 0.6, 0.6, 0.8, 1.0]),
        ("ntile", (TWO,), {}, [1, 1, 1, 2, 2]),
        ("ntile", ([9] * 5,), {}, [1, 2, 3, 4, 5]),
        ("ntile", ([None] * 5,), {}, [1] * 5),
        ("ntile", ([0] * 5,), {}, [1] * 5),
        ("lag", (TEXT,), {}, [None, "a", "b", "c", "d"]),
        ("lead", (TEXT,), {}, ["b", "c", "d", "e", None]),
        ("lag", (TEXT, TWO), {}, [None, None, "a", "b", "c"]),
        ("lag", (TEXT, [-1] * 5, ["z"] * 5), {}, ["b", "c", "d", "e", "z"]),
        ("lead", (TEXT, [0, None, "x", 1, 2.9]), {}, ["a", "b", "c", "e", None]),
        ("lag", (GAPS,), {"ignore_nulls": True}, [None, "a", "a", "c", "c"]),
        ("lead", (GAPS,), {"ignore_nulls": True}, ["c", "c", "e", "e", None]),
        ("first_value", (TEXT,), {}, ["a"] * 5),
        ("last_value", (TEXT,), {}, ["a", "c", "c", "d", "e"]),
        ("first_value", (TEXT,), AROUND, ["a", "a", "b", "c", "d"]),
        ("last_value", (TEXT,), AROUND, ["b", "c", "d", "e", "e"]),
        ("last_value", (TEXT,), {**AROUND, "exclusion": "current row"}, ["b", "c", "d", "e", "d"]),
        ("first_value", (TEXT,), {"unit": "rows", "start": "following", "start_offset": 2,
                                  "end": "unbounded following"}, ["c", "d", "e", None, None]),
        ("first_value", (GAPS,), {**AROUND, "ignore_nulls": True}, ["a", "a", "c", "c", "e"]),
        ("nth_value", (TEXT, TWO), {}, [None, "b", "b", "b", "b"]),
        ("nth_value", (TEXT, TWO), {**AROUND, "exclusion": "current row"}, [None, "c", "d", "e", None]),
    ],
)  # fmt: skip
def test_window_function(
    name: str, columns: tuple[list[Any], ...], options: dict[str, Any], values: list[Any]
) -> None:
    found = over(name, KEYS, *columns, **options)
    assert list(map(repr, found)) == list(map(repr, values))


def test_every_window_function_takes_an_empty_partition() -> None:
    for name, function in WINDOW_FUNCTIONS.items():
        assert over(name, [], *[[] for _ in range(function.maximum)]) == []


@pytest.mark.parametrize(
    ("name", "arguments", "ordered", "message"),
    [
        ("Nope", 0, True, "Unknown window function: Nope"),
        ("rank", 0, False, "Window function rank requires ORDER BY clause"),
        ("first_value", 0, True, "Window function first_value expects 1 arguments, got 0"),
        ("ntile", 0, True, "Window function ntile expects 1 arguments, got 0"),
        ("LAG", 0, True, "lag requires at least one argument"),
    ],
)
def test_calls_that_are_refused(name: str, arguments: int, ordered: bool, message: str) -> None:
    with pytest.raises(Error, match=message):
        check_window_call(name, arguments, ordered)


def test_frame_offsets() -> None:
    assert frame_offset(2.0, "rows") == 2
    assert frame_offset(1.5, "range") == 1.5
    for value, unit in ((1.5, "rows"), (-1, "range"), (None, "rows"), ("1", "rows"), (True, "rows")):
        with pytest.raises(Error, match="Invalid window frame offset"):
            frame_offset(value, unit)


def counted(operations: list[str], *, inverse: bool, merge: bool) -> AggregateFunction:
    """A sum that notes what is done to it."""

    def noting(kind: str, change: Callable[[int, int], int]) -> Callable[[int, int], int]:
        def operation(state: int, other: int) -> int:
            operations.append(kind)
            return change(state, other)

        return operation

    return aggregate_function_from(
        noting("add", int.__add__),
        lambda state: state,
        0,
        "counted",
        arguments=1,
        inverse=noting("remove", int.__sub__) if inverse else None,
        merge=noting("merge", int.__add__) if merge else None,
    )


@pytest.mark.parametrize(("inverse", "merge", "per_row"), [(True, False, 2), (False, True, 4)])
def test_the_cost_of_sliding_does_not_depend_on_the_width(inverse: bool, merge: bool, per_row: int) -> None:
    size = 500
    keys = list(range(size))
    for width in (1, 10, 250, 499):
        operations: list[str] = []
        frames = frames_of(
            FrameSpecification("rows", "preceding", "current row", width), peers_of(size, keys)
        )
        found = aggregate_over(counted(operations, inverse=inverse, merge=merge), frames, [keys])
        assert found == [sum(range(max(0, row - width), row + 1)) for row in range(size)]
        assert len(operations) <= per_row * size

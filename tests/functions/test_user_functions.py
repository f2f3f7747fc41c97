"""Functions of the program: what is read from Python callables, and how they fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from enum import IntEnum
from typing import Any

import pytest

import quereus_store
from quereus_store.errors import Error, SourcePosition, StatusCode
from quereus_store.functions.registry import guarded, guarded_aggregate, guarded_rows
from quereus_store.functions.user import (
    aggregate_class_from,
    aggregate_function_from,
    scalar_function_from,
    table_function_from,
)
from quereus_store.types.logical import ANY, BLOB, BOOLEAN, INTEGER, JSON, NUMERIC, REAL, TEXT


def area(width: float, height: float = 1.0) -> float:
    return width * height


def test_a_signature_declares_arity_and_type() -> None:
    function = scalar_function_from(area)
    assert (function.name, function.minimum, function.maximum) == ("area", 1, 2)
    assert function.returns is REAL
    assert not function.nullable
    assert not function.deterministic
    assert not function.null_propagates
    assert function.call(2.0, 3.0) == 6.0


def returning(annotation: Any) -> Any:
    def function() -> Any:
        return None

    function.__annotations__["return"] = annotation
    return function


@pytest.mark.parametrize(
    ("annotation", "logical_type", "nullable"),
    [
        (int, INTEGER, False),
        (bool, BOOLEAN, False),
        (bytes, BLOB, False),
        (dict[str, int], JSON, False),
        (list, JSON, False),
        (str | None, TEXT, True),
        (int | str, ANY, True),
        (complex, ANY, True),
        (Any, ANY, True),
    ],
)
def test_return_annotations(annotation: Any, logical_type: Any, nullable: bool) -> None:
    function = scalar_function_from(returning(annotation), "f")
    assert function.returns is logical_type
    assert function.nullable is nullable


def test_options_override_what_is_read() -> None:
    function = scalar_function_from(
        lambda *values: len(values),
        "Many",
        arguments=-1,
        deterministic=True,
        returns="decimal",
        flags=0x80000,
    )
    assert (function.name, function.minimum, function.maximum) == ("Many", 0, None)
    assert function.returns is NUMERIC
    assert function.deterministic
    assert function.flags == 0x80000


def test_types_may_be_inferred_and_refused() -> None:
    function = scalar_function_from(
        max,
        "top",
        arguments=2,
        infer_return_type=lambda types: types[0],
        validate_arg_types=lambda types: TEXT in types,
    )
    assert callable(function.returns)
    assert function.returns([INTEGER, TEXT]) is INTEGER
    assert function.check is not None
    function.check([INTEGER, TEXT])
    with pytest.raises(Error, match="Invalid argument types for function top") as caught:
        function.check([INTEGER, INTEGER])
    assert caught.value.code is StatusCode.MISMATCH


def test_failures_name_function_and_place() -> None:
    def fail(value: int) -> int:
        raise RuntimeError("no luck")

    call = guarded(scalar_function_from(fail, "Fail"), SourcePosition(2, 8))
    message = "Function fail failed: no luck (at line 2, column 8)"
    with pytest.raises(Error, match=re.escape(message)) as caught:
        call(1)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scalar_function_from(5, "x"), "schema.implementation must be a function"),
        (lambda: scalar_function_from(area, " "), "schema.name must be a non-empty string"),
        (lambda: scalar_function_from(area, arguments=-2), "schema.numArgs must be an integer >= -1"),
        (
            lambda: aggregate_function_from(area, None, name="a"),
            "aggregate schema.finalizeFunction must be a function",
        ),
        (
            lambda: aggregate_function_from(None, area, name="a"),
            "schema must have implementation (scalar/TVF) or stepFunction+finalizeFunction (aggregate)",
        ),
    ],
)
def test_declarations_that_make_no_sense(make: Any, message: str) -> None:
    with pytest.raises(Error, match=re.escape(f"registerFunction: {message}")) as caught:
        make()
    assert caught.value.code is StatusCode.MISUSE


class TestAggregates:
    def test_steps_over_columns(self) -> None:
        function = aggregate_function_from(
            lambda total, x, weight: total + (x or 0) * weight, lambda total: total, 0, "weighted"
        )
        assert (function.minimum, function.maximum) == (2, 2)
        assert function.evaluate([1, None, 3], [10, 10, 1]) == 13
        assert function.evaluate([], []) == 0
        assert not function.skips_nulls

    @pytest.mark.parametrize("initial", [list, [], lambda: []])
    def test_every_group_starts_afresh(self, initial: Any) -> None:
        def collect(state: list[int], value: int) -> list[int]:
            state.append(value)
            return state

        function = aggregate_function_from(collect, len, initial, "collected")
        assert [function.evaluate([1, 2]), function.evaluate([3])] == [2, 1]

    def test_of_a_class(self) -> None:
        class Longest:
            def __init__(self) -> None:
                self.best = ""

            def step(self, text: str) -> None:
                self.best = max(self.best, text, key=len)

            def finalize(self) -> str:
                return self.best

        function = aggregate_class_from(Longest)
        assert (function.name, function.minimum, function.maximum) == ("Longest", 1, 1)
        assert function.evaluate(["a", "ccc", "bb"]) == "ccc"
        assert function.returns is TEXT
        assert function.algebra is not None
        assert function.algebra.remove is None
        assert not function.algebra.shares_state

    def test_of_no_arguments(self) -> None:
        function = aggregate_function_from(lambda n: n + 1, lambda n: n, 0, "rows")
        assert function.evaluate([(), (), ()]) == 3

    def test_failures(self) -> None:
        function = aggregate_function_from(lambda state, x: state + x, lambda state: state, 0, "plus")
        with pytest.raises(Error, match="Function plus failed: unsupported operand"):
            guarded_aggregate(function).evaluate(["x"])


class TestTableFunctions:
    def test_rows_are_fitted_to_the_columns(self) -> None:
        def uneven(count: int) -> Iterator[tuple[int, ...]]:
            for number in range(count):
                yield tuple(range(number))

        function = table_function_from(uneven, ["a", ("b", "integer"), ("c", INTEGER)])
        assert [(column.name, column.type) for column in function.columns] == [
            ("a", ANY),
            ("b", INTEGER),
            ("c", INTEGER),
        ]
        assert list(function.call(5)) == [
            (None, None, None),
            (0, None, None),
            (0, 1, None),
            (0, 1, 2),
            (0, 1, 2),
        ]

    def test_an_integrated_function_gets_the_context(self) -> None:
        function = table_function_from(lambda context, n: [(context, n)], ["a", "b"], "both", integrated=True)
        assert function.needs_context
        assert (function.minimum, function.maximum) == (1, 1)
        assert list(function.call("ctx", 2)) == [("ctx", 2)]

    def test_failures(self) -> None:
        def broken() -> Iterator[tuple[int]]:
            yield (1,)
            raise ValueError("ran dry")

        call = guarded_rows(table_function_from(broken, ["a"]))()
        assert next(call) == (1,)
        with pytest.raises(Error, match="Table-valued function broken failed: ran dry"):
            next(call)

    def test_columns_are_required(self) -> None:
        with pytest.raises(Error, match="must declare its columns"):
            table_function_from(lambda: [], [], "nothing")


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (Level.HIGH, 3),
        (bytearray(b"a"), b"a"),
        ([1, {"k": None}], [1, {"k": None}]),
        (True, True),
        (None, None),
    ],
)
def test_results_become_values(given: Any, value: Any) -> None:
    result = scalar_function_from(lambda: given, "f").call()
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize("given", [object(), {1, 2}, date(2024, 1, 2), [object()], 1 + 2j])
def test_what_is_no_value_is_no_result(given: Any) -> None:
    connection = quereus_store.connect(":memory:")
    connection.create_function("f", 0, lambda: given)
    connection.create_aggregate("g", 1, type("G", (), {"step": lambda *_: None, "finalize": lambda _: given}))
    connection.database.create_table_function("h", lambda: [(given,)], columns=["x"])
    for query in (
        "select f()",
        "select f() || 'x'",
        "select g(1)",
        "select g(1) || 'x'",
        "select x from h()",
    ):
        with pytest.raises(Error, match="expected SqlValue, got"):
            connection.execute(query).fetchall()


class TestPromises:
    """What a function gives is of the type that it declares."""

    @pytest.mark.parametrize(
        ("returns", "given", "wanted"),
        [
            ("real", 2, 2.0),
            ("integer", True, 1),
            ("integer", 3.0, 3),
            ("boolean", 1, True),
            ("numeric", 5, 5),
            ("any", "x", "x"),
            ("date", "2024-03-01", "2024-03-01"),
            ("json", "text", "text"),
            ("text", None, None),
        ],
    )
    def test_numbers_are_taken_as_the_declared_kind(self, returns: str, given: Any, wanted: Any) -> None:
        result = scalar_function_from(lambda: given, "f", returns=returns).call()
        assert (type(result), result) == (type(wanted), wanted)

    @pytest.mark.parametrize(
        ("returns", "given"),
        [("integer", "5"), ("integer", 2.5), ("text", 5), ("blob", "x"), ("boolean", "true"), ("real", [])],
    )
    def test_another_type_is_a_mismatch(self, returns: str, given: Any) -> None:
        with pytest.raises(Error, match="is declared, but") as caught:
            scalar_function_from(lambda: given, "f", returns=returns).call()
        assert caught.value.code is StatusCode.MISMATCH

    def test_no_null_against_the_annotation(self) -> None:
        def never(value: Any) -> int:
            return value  # type: ignore[no-any-return]

        with pytest.raises(Error, match="INTEGER NOT NULL is declared, but NULL was returned"):
            scalar_function_from(never).call(None)

    def test_columns_of_table_functions(self) -> None:
        def rows() -> Iterator[tuple[Any, ...]]:
            yield (1, "x")

        assert list(table_function_from(rows, [("a", "real"), ("b", "text")]).call()) == [(1.0, "x")]
        with pytest.raises(Error, match="INTEGER is declared, but string was returned"):
            list(table_function_from(rows, ["a", ("b", "integer")]).call())

"""Arithmetic: numbers, dispatch by type and by value, bits, text (types-and-values, section 6)."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import NotSupportedError
from quereus_store.types.arithmetic import (
    BITWISE,
    BY_VALUE,
    NUMBERS,
    ArithmeticMode,
    arithmetic_plan,
    arithmetic_template,
    concat,
    invert_bits,
    negate,
    positive,
)
from quereus_store.types.logical import (
    ANY,
    BOOLEAN,
    DATE,
    INTEGER,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (7, "/", 2, 3.5),
        (8, "/", 4, 2.0),
        (2**53 + 1, "/", 2**53 + 1, 1.0),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (5.5, "%", 2, 1.5),
        (-5.5, "%", 2, -1.5),
        (2**53 + 1, "%", 2, 1),
        (-9007199254740995, "%", 10, -5),
        (9007199254740991, "*", 3, 27021597764222973),
        (10**30, "+", 1, 10**30 + 1),
        (9007199254740995, "+", 0.5, 9007199254740996.0),
        ("12ab", "+", 1, 1),
        ("12", "+", 1, 13),
        (" 1e2 ", "*", 2, 200.0),
        ("0x10", "-", 1, 15),
        (True, "+", True, 2),
        (b"5", "+", 1, 1),
        ([5], "+", 1, 1),
        ("Paris", "+", 1, 1),
        ("Plum", "+", "-Pear", 0),
        ("2025-13-01", "+", 1, 1),
    ],
)
def test_numbers_by_value(left, operator, right, expected):
    result = BY_VALUE[operator](left, right)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        (3, "/", 0),
        (3, "%", 0),
        (3.5, "%", 0),
        (0.0, "/", 0),
        (1e308, "*", 10),
        (-1e308, "-", 1e308),
        (10**400, "+", 1.5),
        (10**400, "/", 3),
        (math.inf, "-", math.inf),
        (math.inf, "+", 1),
        (math.inf, "%", 2),
        (math.nan, "*", 1),
        (None, "+", 1),
        ("2025-01-01", "+", None),
    ],
)
def test_no_number_is_null_never_an_error(left, operator, right):
    assert BY_VALUE[operator](left, right) is None


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        ("2025-03-01", "+", 1),
        ("2025-03-01", "*", "P1D"),
        ("PT1H", "+", 1),
        (2, "/", "PT1H"),
        ("10:00:00", "-", "2025-03-01"),
        ("2025-03-01", "+", "2025-03-01"),
        ("PT1H", "%", 2),
    ],
)
def test_a_pair_without_an_entry_is_refused(left, operator, right):
    with pytest.raises(NotSupportedError, match="Unsupported temporal operation"):
        BY_VALUE[operator](left, right)


def test_text_that_is_a_date_from_end_to_end_counts_as_one():
    assert BY_VALUE["-"]("2025-03-01", "2025-01-30") == "P30D"
    assert BY_VALUE["+"]("23:30:00", "PT45M") == "00:15:00"
    assert BY_VALUE["*"]("PT10S", "3") == "PT30S"


@pytest.mark.parametrize(
    ("left", "right", "mode"),
    [
        (INTEGER, REAL, ArithmeticMode.NUMBERS),
        (DATE, TIMESPAN, ArithmeticMode.TEMPORAL),
        (TIMESPAN, NUMERIC, ArithmeticMode.TEMPORAL),
        (DATE, TEXT, ArithmeticMode.BY_VALUE),
        (BOOLEAN, INTEGER, ArithmeticMode.BY_VALUE),
        (TIMESTAMP, INTEGER, ArithmeticMode.BY_VALUE),
        (ANY, INTEGER, ArithmeticMode.BY_VALUE),
    ],
)
def test_the_rule_comes_from_the_declared_types(left, right, mode):
    assert arithmetic_plan(left, right) is mode


def test_integers_are_added_inline():
    assert arithmetic_template("+", INTEGER, INTEGER).source == "({0} + {1})"
    assert arithmetic_template("%", INTEGER, INTEGER).compile(2)(-7, 3) == -1
    assert arithmetic_template("/", INTEGER, INTEGER).compile(2)(7, 2) == 3.5
    assert arithmetic_template("*", REAL, INTEGER).compile(2)(1e308, 10) is None


def test_temporal_templates_take_null():
    minus = arithmetic_template("-", DATE, DATE).compile(2)
    assert minus("2025-03-01", "2025-02-28") == "P1D"
    assert minus(None, "2025-02-28") is None
    assert arithmetic_template("+", TEXT, ANY).compile(2)("2", 3) == 5
    with pytest.raises(NotSupportedError):
        arithmetic_template("+", DATE, TIME).compile(2)("2025-03-01", "10:00:00")


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (negate, 5, -5),
        (negate, "5", -5),
        (negate, "ab", None),
        (negate, b"5", None),
        (negate, True, -1),
        (negate, "PT2H", "-PT2H"),
        (negate, "-PT2H", "PT2H"),
        (negate, "Paris", None),
        (negate, None, None),
        (positive, "42", 42),
        (positive, "ab", None),
        (positive, "PT2H", None),
        (positive, False, 0),
        (invert_bits, 2.9, -3),
        (invert_bits, 3_000_000_000, -3_000_000_001),
        (invert_bits, "7", -8),
        (invert_bits, math.inf, None),
        (invert_bits, None, None),
    ],
)
def test_unary_operators(operator, value, expected):
    result = operator(value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (6, "&", 3, 2),
        (6, "|", 3, 7),
        (6.9, "&", "3", 2),
        (1, "<<", 70, 2**70),
        (2**70, ">>", 69, 2),
        (8, "<<", -2, 2),
        (8, ">>", -2, 32),
        (1, "<<", 10**12, None),
        (1, ">>", 10**12, 0),
        (0, "<<", 10**12, 0),
        (None, "&", 1, None),
        (math.inf, "|", 1, None),
        ("x", "|", 1, 1),
    ],
)
def test_bit_operators(left, operator, right, expected):
    assert BITWISE[operator](left, right) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("a", "b", "ab"), (2.0, "", "2"), (None, "x", None), ("x", None, None), (b"\xff", True, "\ufffdtrue")],
)
def test_concatenation(left, right, expected):
    assert concat(left, right) == expected


@settings(max_examples=60)
@given(st.integers(), st.integers().filter(bool))
def test_integers_are_exact_and_the_remainder_follows_the_dividend(a, b):
    remainder = NUMBERS["%"](a, b)
    assert (a - remainder) % b == 0
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)
    assert NUMBERS["-"](NUMBERS["+"](a, b), b) == a

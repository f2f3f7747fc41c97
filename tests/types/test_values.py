"""Values without a declared type: typeof, text, numbers in text, truth (types-and-values)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quereus_store.types.values import (
    int_from_text,
    int_to_text,
    integer_prefix,
    number_from_text,
    numeric_prefix,
    real_prefix,
    storage_rank,
    to_text,
    truth,
    typeof,
    value_kind,
)


@pytest.mark.parametrize(
    ("value", "name", "rank"),
    [
        (None, "null", 0),
        (4, "integer", 1),
        (4.0, "real", 1),
        (math.inf, "real", 1),
        (True, "integer", 1),
        ("4", "text", 2),
        (b"4", "blob", 3),
        ([4], "json", 4),
        ({"a": 4}, "json", 4),
    ],
)
def test_typeof_and_storage_class(value, name, rank):
    assert typeof(value) == name
    assert storage_rank(value) == rank


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        (2**53, "bigint"),
        (-(2**53), "bigint"),
        ("x", "string"),
        (b"", "object"),
        ([], "object"),
        ({}, "object"),
    ],
)
def test_kinds_in_messages(value, kind):
    assert value_kind(value) == kind


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("it's", "it's"),
        (2.0, "2"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1.25e20, "125000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (0.000001, "0.000001"),
        (0.0000015, "0.0000015"),
        (1e-7, "1e-7"),
        (-2.5e-10, "-2.5e-10"),
        (123456789012345680000.0, "123456789012345680000"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (10**30, "1" + "0" * 30),
        (True, "true"),
        (False, "false"),
        (b"ab", "ab"),
        (b"\xff", "\ufffd"),
        (b"\xef\xbb\xbf", "\ufeff"),
        ({"b": 2.0, "a": [1, None, True]}, '{"b":2,"a":[1,null,true]}'),
        (["/", "ä", math.inf], '["/","ä",null]'),
    ],
)
def test_text_of_a_value(value, text):
    assert to_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_float_reads_back(number):
    assert float(to_text(number)) == number


@given(st.integers())
def test_text_of_an_integer_reads_back(number):
    assert int_from_text(int_to_text(number)) == number


def test_integers_of_many_thousand_digits_survive_text():
    number = -(7**12_000)
    assert int_from_text(int_to_text(number)) == number


@pytest.mark.parametrize(
    ("text", "arithmetic", "integer", "real", "numeric"),
    [
        ("12ab", None, 12, 12.0, 12.0),
        ("", 0, None, None, None),
        ("ab", None, None, None, None),
        ("0x10", 16, 0, 0.0, 0.0),
        ("0o17", 15, 0, 0.0, 0.0),
        ("0b11", 3, 0, 0.0, 0.0),
        ("-0x10", None, 0, 0.0, 0.0),
        (".5", 0.5, None, 0.5, 0.5),
        ("5.", 5.0, 5, 5.0, 5.0),
        ("1e3", 1000.0, 1, 1000.0, 1000.0),
        ("1e", None, 1, 1.0, 1.0),
        (" -8.9kg", None, -8, -8.9, -8.9),
        (" 42 ", 42, 42, 42.0, 42),
        ("+7", 7, 7, 7.0, 7),
        ("Infinity", math.inf, None, math.inf, math.inf),
        ("-Infinity", -math.inf, None, -math.inf, -math.inf),
        ("nan", None, None, None, None),
        ("inf", None, None, None, None),
        ("1_0", None, 1, 1.0, 1.0),
        ("٣", None, None, None, None),
        ("9007199254740993", 2**53 + 1, 2**53 + 1, 9007199254740992.0, 2**53 + 1),
    ],
)
def test_four_ways_to_read_a_number(text, arithmetic, integer, real, numeric):
    assert number_from_text(text) == arithmetic
    assert integer_prefix(text) == integer
    assert real_prefix(text) == real
    assert numeric_prefix(text) == numeric


@pytest.mark.parametrize("value", [1, -0.5, True, " 2 ", "0x10", "1e-3", 10**40])
def test_true(value):
    assert truth(value) is True


@pytest.mark.parametrize("value", [0, 0.0, False, "abc", "true", "0", "", b"\x01", [1], {"a": 1}, math.nan])
def test_false(value):
    assert truth(value) is False


def test_null_is_unknown():
    assert truth(None) is None

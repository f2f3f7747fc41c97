"""Announced types (types-and-values, section 16)."""

import pytest

from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
)
from quereus_store.types.result_types import (
    arithmetic_is_nullable,
    arithmetic_type,
    cast_is_nullable,
    merge_types,
    set_operation_type,
    unary_type,
)


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", INTEGER, INTEGER, INTEGER),
        ("%", INTEGER, INTEGER, INTEGER),
        ("/", INTEGER, INTEGER, NUMERIC),
        ("/", REAL, REAL, REAL),
        ("+", REAL, INTEGER, NUMERIC),
        ("*", NUMERIC, NUMERIC, NUMERIC),
        ("-", DATE, DATETIME, TIMESPAN),
        ("-", TIME, TIME, TIMESPAN),
        ("+", DATE, TIMESPAN, DATE),
        ("+", TIMESPAN, DATETIME, DATETIME),
        ("*", INTEGER, TIMESPAN, TIMESPAN),
        ("/", TIMESPAN, TIMESPAN, REAL),
        ("+", DATE, INTEGER, ANY),
        ("+", TEXT, INTEGER, ANY),
        ("+", BOOLEAN, BOOLEAN, ANY),
    ],
)
def test_arithmetic(operator, left, right, expected):
    assert arithmetic_type(operator, left, right) is expected


def test_arithmetic_is_nullable_but_for_exact_integers():
    assert not arithmetic_is_nullable("*", INTEGER, False, INTEGER, False)
    assert arithmetic_is_nullable("*", INTEGER, True, INTEGER, False)
    assert arithmetic_is_nullable("/", INTEGER, False, INTEGER, False)
    assert arithmetic_is_nullable("+", REAL, False, INTEGER, False)


def test_unary():
    assert unary_type("~", TEXT) is INTEGER
    assert unary_type("-", TIMESPAN) is TIMESPAN
    assert unary_type("-", REAL) is REAL
    assert unary_type("+", TEXT) is ANY


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([TEXT, TEXT], TEXT),
        ([NULL, DATE], DATE),
        ([NULL, NULL], NULL),
        ([], NULL),
        ([INTEGER, REAL], NUMERIC),
        ([INTEGER, TEXT], ANY),
        ([JSON, TEXT], ANY),
        ([BOOLEAN, INTEGER], ANY),
    ],
)
def test_merging(types, expected):
    assert merge_types(types) is expected


def test_set_operations_and_json():
    assert set_operation_type(JSON, BLOB) is JSON
    assert set_operation_type(TEXT, JSON) is JSON
    assert set_operation_type(INTEGER, NULL) is INTEGER


def test_a_converting_cast_may_give_null():
    assert cast_is_nullable(TEXT, INTEGER, False)
    assert not cast_is_nullable(INTEGER, TEXT, False)
    assert not cast_is_nullable(INTEGER, INTEGER, False)
    assert cast_is_nullable(INTEGER, TEXT, True)

"""Conversion on write, CAST and strict conversion (types-and-values, sections 3 and 13)."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import DataError, StatusCode
from quereus_store.types.conversion import (
    cast,
    column_is_clean,
    convert,
    convert_column,
    retype_column,
    strict_convert,
)
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    BUILT_IN_TYPES,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
    PhysicalType,
)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        ("12ab", INTEGER, 12),
        (" \t", INTEGER, None),
        (2.99, INTEGER, 2),
        (-2.99, INTEGER, -2),
        (True, INTEGER, 1),
        (10**30, INTEGER, 10**30),
        ("1.5kg", REAL, 1.5),
        (4, REAL, 4.0),
        (10**400, REAL, math.inf),
        ("Infinity", REAL, math.inf),
        ("", NUMERIC, None),
        ("9007199254740993", NUMERIC, 9007199254740993),
        ("1e3", NUMERIC, 1000.0),
        (False, NUMERIC, 0),
        (1e20, TEXT, "100000000000000000000"),
        (True, TEXT, "true"),
        (b"\xffa", TEXT, "\ufffda"),
        ({"a": [1.0]}, TEXT, '{"a":[1]}'),
        ("6162", BLOB, b"6162"),
        (42, BLOB, b"42"),
        (True, BLOB, b"true"),
        (" YES ", BOOLEAN, True),
        ("Off", BOOLEAN, False),
        (0.5, BOOLEAN, True),
        (0, BOOLEAN, False),
        ("2025-03-01T01:00:00+02:00", DATE, "2025-02-28"),
        (86400, DATE, "1970-01-01"),
        (86_400_000.0, DATE, "1970-01-02"),
        ("2025-03-01T10:30:00+02:00", TIME, "08:30:00"),
        (3725.25, TIME, "01:02:05.25"),
        (86_400 + 1, TIME, "00:00:01"),
        ("2025-03-01 10:30", DATETIME, "2025-03-01T10:30:00"),
        (1, DATETIME, "1970-01-01T00:00:00.001"),
        ("2 hours 15 mins", TIMESPAN, "PT2H15M"),
        (45, TIMESPAN, "PT45S"),
        (-45, TIMESPAN, "-PT45S"),
        (" 17 ", TIMESTAMP, 17),
        ("", TIMESTAMP, None),
        ("1970-01-01T00:00:01Z", TIMESTAMP, 1000),
        (2.0, TIMESTAMP, 2),
        ("null", JSON, None),
        ('{"a": 1}', JSON, {"a": 1}),
        ('"7"', JSON, "7"),
        (True, JSON, True),
        (b"x", ANY, b"x"),
        ("5", ANY, "5"),
    ],
)
def test_a_written_cell_converts(value, target, expected):
    result = convert(value, target, "c")
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "target", "reason"),
    [
        ("ab", INTEGER, "Cannot convert 'ab' to INTEGER"),
        (b"1", INTEGER, "Cannot convert object to INTEGER"),
        ([1], REAL, "Cannot convert object to REAL"),
        ([1], BLOB, "Cannot convert object to BLOB"),
        ("", BOOLEAN, "Cannot convert '' to BOOLEAN"),
        ("maybe", BOOLEAN, "Cannot convert 'maybe' to BOOLEAN"),
        ("soon", DATE, "Cannot convert 'soon' to DATE: Cannot parse: soon"),
        (
            "2025-14-01",
            DATE,
            "Cannot convert '2025-14-01' to DATE: Invalid isoMonth: 14; must be between 1-12",
        ),
        (
            "2025-02-30",
            DATE,
            "Cannot convert '2025-02-30' to DATE: Invalid isoDay: 30; must be between 1-28",
        ),
        ("25:00", TIME, "Cannot convert '25:00' to TIME: Invalid isoHour: 25; must be between 0-23"),
        (True, DATE, "Cannot convert boolean to DATE"),
        (2**53, DATE, "Cannot convert bigint to DATE"),
        (2**53, TIME, "Cannot convert bigint to TIME"),
        (2**53, TIMESPAN, "Cannot convert bigint to TIMESPAN"),
        (1.5, DATETIME, "Non-integer number: 1.5"),
        (1.5, TIMESPAN, "Non-integer seconds: 1.5"),
        (-1, TIME, "Cannot convert '-1' to TIME: value must be a non-negative finite number of seconds"),
        (1.5, TIMESTAMP, "Cannot convert non-integer number '1.5' to TIMESTAMP"),
        ("1.5 hours", TIMESPAN, "Cannot convert '1.5 hours' to TIMESPAN"),
        ("{a}", JSON, "Cannot convert '{a}' to JSON: invalid JSON syntax"),
        ("NaN", JSON, "Cannot convert 'NaN' to JSON: invalid JSON syntax"),
        (b"1", JSON, "Cannot convert object to JSON"),
    ],
)
def test_a_cell_that_does_not_convert_names_its_column(value, target, reason):
    with pytest.raises(DataError) as caught:
        convert(value, target, "c")
    assert caught.value.code is StatusCode.MISMATCH
    assert str(caught.value).startswith("Type conversion failed for column 'c': ")
    assert str(caught.value).endswith(reason)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_infinity_is_a_mismatch_for_integer(value):
    with pytest.raises(DataError) as caught:
        convert(value, INTEGER, "n")
    assert str(caught.value) == "Type mismatch for column 'n': expected INTEGER, got number"


@pytest.mark.parametrize("target", BUILT_IN_TYPES, ids=str)
def test_null_passes(target):
    assert convert(None, target, "c") is None
    assert cast(None, target) is None


# --- columns ---


@pytest.mark.parametrize(
    ("values", "target"),
    [
        ([1, 2, None], INTEGER),
        ([1.5, None], REAL),
        ([1, 1.5], NUMERIC),
        (["a", None], TEXT),
        ([b"", None], BLOB),
        ([True, None], BOOLEAN),
        ([1, None], TIMESTAMP),
        ([1, "a", b"", [1], None, True], ANY),
        ([1, [1], {"a": 1}, True, None], JSON),
        (["2025-03-01", None], DATE),
        (["23:59:59"], TIME),
        (["2025-03-01T10:30:00"], DATETIME),
    ],
)
def test_a_clean_column_comes_back_as_the_same_list(values, target):
    assert convert_column(values, target, "c") is values


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (["1", "2"], INTEGER, [1, 2]),
        ([1, "2", None, True], INTEGER, [1, 2, None, 1]),
        ([1, 2.5], REAL, [1.0, 2.5]),
        (["2025-03-01", "20250302"], DATE, ["2025-03-01", "2025-03-02"]),
        (["2025-W10-1"], TEXT, ["2025-W10-1"]),
        (["2025-03-01T10:00:00Z"], DATETIME, ["2025-03-01T10:00:00"]),
        (["10:00:00.50"], TIME, ["10:00:00.5"]),
        (["-000005-03-01"], DATE, ["-000005-03-01"]),
        (["[1]", None], JSON, [[1], None]),
    ],
)
def test_a_column_that_needs_it_converts(values, target, expected):
    assert convert_column(values, target, "c") == expected


@pytest.mark.parametrize("text", ["2025-W10-1", "2025-02-30", "2025-1-1", "2025-03-01 "])
def test_the_fast_check_of_dates_lets_nothing_through(text):
    with pytest.raises(DataError, match="to DATE"):
        convert_column(["2025-03-01", text], DATE, "d")


def test_an_offset_of_just_the_right_length_is_no_canonical_datetime():
    assert convert_column(["2025-03-01T10+02:00"], DATETIME, "d") == ["2025-03-01T08:00:00"]


def test_booleans_are_not_clean_integers():
    assert not column_is_clean({int, bool}, INTEGER)
    assert column_is_clean({int, type(None)}, INTEGER)


def test_json_converts_exactly_once():
    # A literal is TEXT and parses; a copy from a JSON column stays the string it is.
    assert convert('"7"', JSON, "j", source_type=TEXT) == "7"
    assert convert("7", JSON, "j", source_type=JSON) == "7"
    assert convert_column(["7", "fig"], JSON, "j", source_type=JSON) == ["7", "fig"]


def test_a_datetime_that_ends_in_z_is_brought_into_form_whatever_it_came_from():
    assert convert_column(["2025-03-01T10:00:00.000Z"], DATETIME, "d", source_type=DATETIME) == [
        "2025-03-01T10:00:00"
    ]


def test_a_column_fails_at_its_first_bad_cell():
    with pytest.raises(DataError, match="column 'n': Cannot convert 'x' to INTEGER"):
        convert_column([1, "x", "y"], INTEGER, "n")


def test_set_data_type_names_the_type_as_written():
    assert retype_column(["1", None], INTEGER, "n", "bigint") == [1, None]
    with pytest.raises(DataError) as caught:
        retype_column(["x"], INTEGER, "n", "bigint")
    assert str(caught.value) == "Cannot convert value in 'n' to bigint"


# --- CAST and the functions ---


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        ("ab", INTEGER, 0),
        ("", INTEGER, None),
        ("1e3", INTEGER, 1),
        ("1e3", NUMERIC, 1000.0),
        (b"3132", INTEGER, 0),
        (math.inf, INTEGER, 0),
        ("ab", REAL, 0.0),
        ("maybe", BOOLEAN, None),
        ("soon", DATE, None),
        ("fig", JSON, "fig"),
        (b"\x00", JSON, None),
        ({"a": 1}, TEXT, '{"a":1}'),
        ({"a": 1}, BLOB, b'{"a":1}'),
        ("6162", BLOB, b"6162"),
        (1.5, TIMESTAMP, None),
    ],
)
def test_cast_never_raises(value, target, expected):
    result = cast(value, target)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "target", "message"),
    [
        ("ab", INTEGER, "Cannot convert to INTEGER: Cannot convert 'ab' to INTEGER"),
        ("soon", DATE, "Cannot convert to DATE: Cannot convert 'soon' to DATE: Cannot parse: soon"),
        ("", JSON, "Cannot convert to JSON: Cannot convert '' to JSON: invalid JSON syntax"),
        ([1], BLOB, "Cannot convert to BLOB: Cannot convert object to BLOB"),
    ],
)
def test_strict_functions_say_why(value, target, message):
    with pytest.raises(DataError) as caught:
        strict_convert(value, target)
    assert str(caught.value) == message
    assert caught.value.code is StatusCode.MISMATCH


def test_strict_functions_convert():
    assert strict_convert("  -8.9kg", INTEGER) == -8
    assert strict_convert("", REAL) is None
    assert strict_convert("2 hours", TIMESPAN) == "PT2H"


# --- registered types ---


def _even(value):
    return int(value)


EVEN = LogicalType("EVEN", PhysicalType.INTEGER, parse=_even, validate=lambda value: value % 2 == 0)


def test_a_registered_type_parses_then_validates():
    assert convert("4", EVEN, "e") == 4
    assert convert_column(["4", None, 6], EVEN, "e") == [4, None, 6]
    with pytest.raises(DataError, match="Type mismatch for column 'e': expected EVEN, got number"):
        convert("5", EVEN, "e")
    with pytest.raises(DataError, match="Type conversion failed for column 'e': invalid literal"):
        convert("x", EVEN, "e")


# --- properties ---

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4)
)


@settings(max_examples=60)
@given(st.sampled_from(BUILT_IN_TYPES), scalars)
def test_conversion_is_idempotent(target, value):
    if target is JSON and type(value) is str:
        return
    once = cast(value, target)
    assert repr(convert(once, target, "c", source_type=target)) == repr(once)
    assert repr(cast(once, target)) == repr(once) or target is JSON


@settings(max_examples=60)
@given(st.sampled_from(BUILT_IN_TYPES), st.lists(scalars, max_size=5))
def test_a_column_converts_as_its_cells_do(target, values):
    def outcome(work):
        try:
            return repr(work())
        except DataError as failure:
            return str(failure)

    cell_by_cell = outcome(lambda: [convert(value, target, "c") for value in values])
    assert outcome(lambda: convert_column(values, target, "c")) == cell_by_cell

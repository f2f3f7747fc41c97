"""Byte order is SQL order, and equal bytes are equal values: golden cases, then any values at all."""

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quereus_store.codec import KeyColumn, encode_value, key_column, key_encoder
from quereus_store.errors import Error, StatusCode
from quereus_store.types.collations import BINARY, NOCASE, RTRIM, Collation
from quereus_store.types.comparison import compare
from quereus_store.types.json import compare_json
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
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
from quereus_store.types.sortkeys import any_identity_key
from quereus_store.types.temporal.duration import compare_timespans
from tests.codec.strategies import blobs, containers, documents, integers, numbers, reals, texts, timespans

BIG = 2**53


def _keys(column: KeyColumn, values: list[Any]) -> list[bytes]:
    return key_encoder([column]).encode_many([(value,) for value in values])


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _order(left: bytes, right: bytes) -> int:
    return (left > right) - (left < right)


# --- golden cases -----------------------------------------------------------------------------------------


def test_golden_order() -> None:
    ordered = [None, -1000, 0, 2, 2.5, 3, BIG, BIG + 1, "abc", "xyz", b"\1\2", b"\3", {"a": 1, "b": 2}]
    keys = _keys(KeyColumn(ANY), ordered)
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert encode_value({"a": 1, "b": 2}) == encode_value({"b": 2, "a": 1})
    assert encode_value(5) == encode_value(5.0)


def test_numbers_interleave_exactly_at_any_size() -> None:
    ordered = [
        -math.inf,
        -(10**400),
        -1e308,
        -(2**63) - 1,
        -(2**63),
        -1.5,
        -1,
        -0.5,
        -5e-324,
        0,
        5e-324,
        0.5,
        True,
        1.5,
        BIG - 1,
        float(BIG),
        BIG + 1,
        BIG + 2,
        2**63 - 1,
        2**63,
        2**63 + 1,
        10**30,
        10**30 + 1,
        2**120,
        2**120 + 2**64,
        10**400,
        math.inf,
        math.nan,
    ]
    for column in (KeyColumn(NUMERIC), KeyColumn(ANY), KeyColumn(INTEGER, nullable=False)):
        keys = _keys(column, ordered)
        assert keys == sorted(keys)
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("column", "alike"),
    [
        (KeyColumn(NUMERIC), [5, 5.0]),
        (KeyColumn(NUMERIC), [0, -0.0, 0.0, False]),
        (KeyColumn(NUMERIC), [1, True, 1.0]),
        (KeyColumn(NUMERIC), [BIG, 2.0**53]),
        (KeyColumn(NUMERIC), [int(1e300), 1e300]),
        (KeyColumn(NUMERIC), [-(2**63), -(2.0**63)]),
        (KeyColumn(REAL), [math.nan, -math.nan]),
        (KeyColumn(ANY), [{"a": [1, 2.0]}, {"a": [1.0, 2]}]),
        (KeyColumn(ANY), [{"a": 1e21}, {"a": 10**21}]),
        (KeyColumn(JSON), [{"x": 1, "y": -0.0}, {"y": 0, "x": 1.0}]),
        (KeyColumn(TIMESPAN), ["PT1H", "PT60M", "PT3600S"]),
        (KeyColumn(TIMESPAN), ["P1M", "P31D"]),
        (key_column(TEXT, collation=NOCASE), ["Ä", "ä"]),
        (key_column(TEXT, collation=RTRIM), ["a", "a  "]),
        (key_column(ANY, collation=NOCASE), ["Ab", "aB"]),
        (key_column(JSON, collation=NOCASE), ["b", "B"]),
    ],
)
def test_equal_values_have_one_key(column: KeyColumn, alike: list[Any]) -> None:
    assert len(set(_keys(column, alike))) == 1


@pytest.mark.parametrize(
    ("column", "different"),
    [
        (KeyColumn(ANY), ["Ab", "aB"]),
        (KeyColumn(ANY), [1, "1", b"1", [1]]),
        (KeyColumn(ANY), [[None], [math.inf], [-math.inf], [math.nan]]),
        (KeyColumn(JSON), [True, 1, "1"]),
        (KeyColumn(JSON), [{}, {"": 1}, [], [None], [[]]]),
        (key_column(JSON, collation=NOCASE), [["x"], ["X"]]),
        (KeyColumn(JSON), ["x", "X"]),
        (key_column(TEXT, collation=RTRIM), ["a", "a\t"]),
        (key_column(TEXT, collation=NOCASE), ["straße", "STRASSE"]),
        (KeyColumn(TEXT), ["", "\0", "\0\0", "\1", "a", "a\0"]),
    ],
)
def test_different_values_have_different_keys(column: KeyColumn, different: list[Any]) -> None:
    assert len(set(_keys(column, different))) == len(different)


@pytest.mark.parametrize(
    ("column", "ordered"),
    [
        (KeyColumn(ANY), [1, 1.5, "1", b"1"]),
        (KeyColumn(JSON), [True, 7, "x", [2], [10], {}, {"a": 1, "b": 2}]),
        (KeyColumn(JSON), [{"a": 9, "c": 9}, {"b": 0}]),
        (KeyColumn(BLOB), [b"", b"\0", b"\0\1", b"\1", b"\1\0", b"\xff"]),
        (KeyColumn(TEXT), ["z", "é", "\uffff", "\U0001f600"]),
        (KeyColumn(DATE), [None, "2024-12-31", "2025-01-01"]),
        (KeyColumn(TIMESPAN), ["-PT1S", "PT0S", "PT59M", "PT1H", "P1D", "P1Y"]),
        (KeyColumn(BOOLEAN), [None, False, True]),
        (KeyColumn(TIMESTAMP), [-1, 0, 1_700_000_000_000]),
    ],
)
def test_order_within_types(column: KeyColumn, ordered: list[Any]) -> None:
    keys = _keys(column, ordered)
    assert keys == sorted(keys)
    descending = _keys(KeyColumn(column.type, column.nullable, True, column.normalizer), ordered)
    assert descending == sorted(descending, reverse=True)


# --- any values -------------------------------------------------------------------------------------------


def _number_order(left: Any, right: Any) -> int:
    """An order of numbers that shares nothing with the code under test."""

    def rank(number: Any) -> tuple[int, Fraction]:
        if isinstance(number, float) and not math.isfinite(number):
            return (3 if math.isnan(number) else 2 if number > 0 else 0), Fraction(0)
        return 1, Fraction(Decimal(number) if isinstance(number, float) else int(number))

    return (rank(left) > rank(right)) - (rank(left) < rank(right))


def _any_order(left: Any, right: Any) -> int:
    if any_identity_key(left) == any_identity_key(right):
        return 0
    return _sign(compare(left, right))


Case = tuple[LogicalType, Collation, st.SearchStrategy[Any], Callable[[Any, Any], int]]


def _by_text_folded(left: str, right: str) -> int:
    return (left.casefold() > right.casefold()) - (left.casefold() < right.casefold())


# What a program may register: "ß" and "SS" are one text.
FOLDED = Collation("FOLDED", _by_text_folded, str.casefold, order_preserving=True)

CASES: dict[str, Case] = {
    "integer": (INTEGER, BINARY, integers, _number_order),
    "real": (REAL, BINARY, reals, _number_order),
    "numeric": (NUMERIC, BINARY, numbers, _number_order),
    "boolean": (BOOLEAN, BINARY, st.booleans(), compare),
    "text": (TEXT, BINARY, texts, compare),
    "text nocase": (TEXT, NOCASE, texts, lambda a, b: compare(a, b, NOCASE)),
    "text rtrim": (TEXT, RTRIM, texts, lambda a, b: compare(a, b, RTRIM)),
    "text folded": (TEXT, FOLDED, texts, _by_text_folded),
    "blob": (BLOB, BINARY, blobs, compare),
    "date": (DATE, BINARY, st.dates().map(str), compare),
    "time": (TIME, BINARY, st.times().map(lambda time: time.replace(microsecond=0).isoformat()), compare),
    "datetime": (DATETIME, BINARY, st.datetimes().map(lambda moment: moment.isoformat()), compare),
    "timespan": (TIMESPAN, BINARY, timespans, compare_timespans),
    "json": (JSON, BINARY, documents.filter(lambda value: value is not None), compare_json),
    "any": (ANY, BINARY, numbers | texts | blobs, _any_order),
    "any nocase": (ANY, NOCASE, numbers | texts | blobs, lambda a, b: compare(a, b, NOCASE)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("descending", [False, True], ids=["asc", "desc"])
@pytest.mark.parametrize("nullable", [False, True], ids=["not null", "nullable"])
def test_bytes_order_as_values_do(name: str, descending: bool, nullable: bool) -> None:
    logical_type, collation, values, order = CASES[name]
    column = key_column(logical_type, nullable=nullable, descending=descending, collation=collation)
    encoder = key_encoder([column], prefix=b"\x10")

    @settings(max_examples=60, deadline=None)
    @given(values, values)
    def check(left: Any, right: Any) -> None:
        expected = _sign(order(left, right))
        single = [encoder.encode((left,)), encoder.encode((right,))]
        assert _order(*single) == (-expected if descending else expected)
        assert encoder.encode_many([(left,), (right,)]) == single
        assert all(key.startswith(b"\x10") for key in single)
        if nullable:
            null = encoder.encode((None,))
            assert null > single[0] if descending else null < single[0]

    check()


@settings(max_examples=150, deadline=None)
@given(containers, containers)
@example({"a": [math.inf, 2]}, {"a": [None, 1]})
@example([0], [0, 0])
def test_documents_in_any_columns_are_equal_when_structurally_equal(left: Any, right: Any) -> None:
    same = any_identity_key(left) == any_identity_key(right)
    assert (encode_value(left) == encode_value(right)) == same


KINDS = list(CASES)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_composite_keys_order_column_by_column(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
    nullable = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    descending = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    columns = [
        key_column(CASES[name][0], nullable=null, descending=down, collation=CASES[name][1])
        for name, null, down in zip(names, nullable, descending, strict=True)
    ]
    # Few different values in each column, so that later columns come to matter.
    pools = [
        data.draw(st.lists(CASES[name][2], min_size=1, max_size=2)) + [None] * null
        for name, null in zip(names, nullable, strict=True)
    ]
    rows = data.draw(st.lists(st.tuples(*map(st.sampled_from, pools)), min_size=2, max_size=6))
    encoder = key_encoder(columns)
    for (left, left_key), (right, right_key) in pairwise(zip(rows, encoder.encode_many(rows), strict=True)):
        expected = 0
        for a, b, name, down in zip(left, right, names, descending, strict=True):
            by_null = (a is not None) - (b is not None)
            step = by_null if a is None or b is None else _sign(CASES[name][3](a, b))
            expected = expected or (-step if down else step)
        assert _order(left_key, right_key) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers | texts | blobs | containers | st.none(), min_size=2, max_size=6))
def test_no_key_is_a_prefix_of_another(values: list[Any]) -> None:
    for left in map(encode_value, values):
        for right in map(encode_value, values):
            assert left == right or not right.startswith(left)


# --- positions, prefixes, registered types ----------------------------------------------------------------


def test_values_are_taken_from_their_positions() -> None:
    columns = [KeyColumn(TEXT, nullable=False), KeyColumn(INTEGER, nullable=False)]
    apart = key_encoder(columns, prefix=b"\x11", positions=(2, 0))
    assert apart.encode((7, None, "fig")) == b"\x11" + key_encoder(columns).encode(("fig", 7))
    assert apart.encode_leading(("fig",)) + encode_value(7) == apart.encode((7, None, "fig"))
    assert key_encoder([], prefix=b"\x11").encode_many([(), ()]) == [b"\x11", b"\x11"]


def test_integer_columns_take_ten_bytes() -> None:
    encoder = key_encoder([KeyColumn(INTEGER, nullable=False)] * 2, prefix=b"\x10")
    assert encoder.encode((1, -1)) == bytes.fromhex("10 12 8000000000000001 80 12 7fffffffffffffff 80")


def test_an_all_integer_key_is_one_call() -> None:
    columns = [
        KeyColumn(INTEGER, nullable=False),
        KeyColumn(INTEGER, nullable=False, descending=True),
        KeyColumn(INTEGER, nullable=False),
    ]
    encoder = key_encoder(columns, prefix=b"\x10")
    expected = encoder.encode((1, 2, 3))
    called: list[str] = []

    def note(_frame: object, event: str, what: Any) -> None:
        called.append(f"{event} {getattr(what, '__qualname__', '')}".strip())

    sys.setprofile(note)
    try:
        key = encoder.encode((1, 2, 3))
    finally:
        sys.setprofile(None)
    assert key == expected
    assert [name for name in called if "call" in name and "setprofile" not in name] == [
        "call",
        "c_call Struct.pack",
    ]


def test_registered_types_are_keyed_by_their_key() -> None:
    version = LogicalType(
        "VERSION",
        PhysicalType.TEXT,
        compare=lambda a, b: 0,
        key=lambda text: tuple(map(int, text.split("."))),
    )
    keys = _keys(KeyColumn(version), [None, "1.2", "1.2.0", "1.10", "2"])
    assert keys == sorted(keys)
    assert _keys(KeyColumn(version), ["01.2"]) == [keys[1]]
    keyless = LogicalType("ODD", PhysicalType.TEXT, compare=lambda a, b: 0)
    with pytest.raises(Error, match="semantic-ordering type ODD cannot key a persisted structure"):
        key_encoder([KeyColumn(keyless)])


@pytest.mark.parametrize("logical_type", [JSON, ANY])
def test_documents_too_deep_to_walk_are_refused(logical_type: LogicalType) -> None:
    document: Any = []
    for _ in range(100_000):
        document = [document]
    with pytest.raises(Error, match="nested too deeply to be part of a key") as caught:
        key_encoder([KeyColumn(logical_type)]).encode((document,))
    assert caught.value.code is StatusCode.TOOBIG

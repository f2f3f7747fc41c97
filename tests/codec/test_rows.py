"""Rows come back exactly as they were."""

import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgpack import ExtType, packb

from quereus_store.codec import row_decoder, row_encoder
from quereus_store.errors import Error, StatusCode
from tests.codec.strategies import blobs, documents, numbers, texts

encode, encode_many = row_encoder()


def exactly(value: Any) -> Any:
    """A stand-in that tells apart what ``==`` does not: classes, signs of zero, NaN, order of keys."""
    if isinstance(value, float):
        return "real", struct.pack("d", value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [exactly(item) for item in value]
    if isinstance(value, dict):
        return "dict", [(name, exactly(item)) for name, item in value.items()]
    return type(value).__name__, value


AWKWARD: list[Any] = [
    None,
    True,
    1,
    1.0,
    -0.0,
    0.0,
    3.0,
    math.inf,
    -math.inf,
    math.nan,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    10**400,
    -(10**400),
    "",
    "a\0b",
    "\ud800",
    "\ud83d\ude00",
    "\U0001f600",
    b"",
    b"\0\xff",
]

DOCUMENTS: list[Any] = [
    [],
    {},
    {"b": 1, "a": [1, 1.0, True, None, {"": -0.0}]},
    {"$bigint": "12"},
    {"$blob": "AA=="},
    ["\ud800", {"\udfff": 2**70}],
    [[[]], math.inf],
]


def test_awkward_values_come_back_exactly() -> None:
    row = tuple(AWKWARD)
    for has_documents in (False, True):
        decode, decode_many = row_decoder(has_documents)
        assert exactly(decode(encode(row))) == exactly(row)
        assert exactly(decode_many(encode_many([row, row]))) == exactly([row, row])


def test_documents_come_back_with_lists_as_lists_and_keys_in_order() -> None:
    decode, decode_many = row_decoder(has_documents=True)
    rows = [(document, index) for index, document in enumerate(DOCUMENTS)]
    assert exactly(decode_many(encode_many(rows))) == exactly(rows)
    assert exactly([decode(encode(row)) for row in rows]) == exactly(rows)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(numbers | texts | blobs | st.none(), documents, st.text()), max_size=4))
def test_any_rows_come_back(rows: list[tuple[Any, ...]]) -> None:
    decode, decode_many = row_decoder(has_documents=True)
    values = encode_many(rows)
    assert values == [encode(row) for row in rows]
    assert exactly(decode_many(values)) == exactly(rows)
    assert exactly([decode(value) for value in values]) == exactly(rows)


def test_deep_documents_come_back() -> None:
    document: Any = "core"
    for level in range(700):
        document = [document] if level % 2 else {"k": document}
    decode, _ = row_decoder(has_documents=True)
    assert decode(encode((document, 1))) == (document, 1)


def test_documents_too_deep_for_python_are_refused() -> None:
    document: Any = []
    for _ in range(100_000):
        document = [document]
    with pytest.raises(Error, match="nested too deeply") as caught:
        encode((document,))
    assert caught.value.code is StatusCode.TOOBIG


def test_batches_of_any_size() -> None:
    rows = [(number, f"n{number}", number * 0.5) for number in range(70_000)]
    _, decode_many = row_decoder(has_documents=False)
    assert decode_many(encode_many(rows)) == rows


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\x93\x01", b"\xc1", encode((1, "a"))[:-1], encode((1,)) + b"\0", packb([ExtType(9, b"")])],
    ids=["empty", "cut", "unknown byte", "cut text", "too long", "unknown extension"],
)
@pytest.mark.parametrize("has_documents", [False, True])
def test_damaged_rows_are_reported(damaged: bytes, has_documents: bool) -> None:
    decode, decode_many = row_decoder(has_documents)
    for action in (lambda: decode(damaged), lambda: decode_many([encode((1,)), damaged])):
        with pytest.raises(Error, match="a stored row is damaged") as caught:
            action()
        assert caught.value.code is StatusCode.CORRUPT

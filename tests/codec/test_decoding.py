"""Keys can be read back for checks: numbers exact, text normalized, blobs as they were."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.codec import KeyColumn, decode_key, encode_value, key_column, key_encoder
from quereus_store.errors import Error, StatusCode
from quereus_store.types.collations import NOCASE
from quereus_store.types.logical import ANY, INTEGER, JSON, TEXT
from tests.codec.strategies import blobs, numbers, texts


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(numbers | texts | blobs | st.none(), st.booleans()), min_size=1, max_size=4))
def test_keys_decode_to_values_with_the_same_key(cells: list[tuple[Any, bool]]) -> None:
    columns = [KeyColumn(ANY, descending=descending) for _, descending in cells]
    values = tuple(value for value, _ in cells)
    encoder = key_encoder(columns)
    decoded = decode_key(columns, encoder.encode(values))
    assert encoder.encode(decoded) == encoder.encode(values)


def test_what_comes_back() -> None:
    columns = [KeyColumn(INTEGER), key_column(TEXT, collation=NOCASE), KeyColumn(JSON), KeyColumn(INTEGER)]
    key = key_encoder(columns).encode((5.0, "Fig", [1], 7))
    number, text, rest = decode_key(columns, key)
    assert (number, type(number), text) == (5, int, "fig")
    assert rest == key_encoder(columns[2:]).encode(([1], 7))


@pytest.mark.parametrize("key", [b"", b"\x12\0", b"\x20abc", b"\x20\xff\0", b"\xfe", encode_value(1) + b"\0"])
def test_damaged_keys_are_reported(key: bytes) -> None:
    with pytest.raises(Error, match="damaged key") as caught:
        decode_key([KeyColumn(INTEGER)], key)
    assert caught.value.code is StatusCode.CORRUPT

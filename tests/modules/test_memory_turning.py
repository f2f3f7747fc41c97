"""Keys of descending text sort in reverse."""

from hypothesis import given
from hypothesis import strategies as st

from quereus_store.modules.memory.turning import descending_key, turned_bytes, turned_text
from quereus_store.types import BLOB, DATETIME, INTEGER, TEXT
from quereus_store.types.collations import BINARY, NOCASE

SMALL_BYTES = st.lists(st.sampled_from([0, 1, 2, 65, 254, 255])).map(bytes)
TEXTS = st.text(st.characters() | st.sampled_from("\x00\x01\ud800\uffff\U0001f600ab"))


@given(SMALL_BYTES, SMALL_BYTES)
def test_bytes(left, right):
    assert (turned_bytes(left) < turned_bytes(right)) == (left > right)


@given(TEXTS, TEXTS)
def test_text(left, right):
    assert (turned_text(left) < turned_text(right)) == (left > right)


@given(st.lists(st.none() | TEXTS))
def test_null_comes_last(values):
    for collation, plain in ((BINARY, str), (NOCASE, str.lower)):
        key = descending_key(TEXT, True, collation).function
        expected = sorted((v for v in values if v is not None), key=plain, reverse=True)
        found = sorted(values, key=key)
        assert [plain(v) for v in found if v is not None] == [plain(v) for v in expected]
        assert None not in found[: len(expected)]


def test_each_type_has_its_way():
    assert descending_key(INTEGER, False, BINARY).function(5) == -5
    assert isinstance(descending_key(DATETIME, False, BINARY).function("2024-01-01T00:00:00"), bytes)
    assert isinstance(descending_key(BLOB, False, BINARY).function(b"x"), bytes)

"""Text with an unpaired surrogate cannot be keyed, and says so before anything is written."""

from typing import Any

import pytest

from quereus_store.codec import Bound, KeyColumn, key_column, key_encoder, key_range
from quereus_store.errors import Error, StatusCode
from quereus_store.types.collations import NOCASE, CollationRegistry
from quereus_store.types.logical import ANY, JSON, TEXT


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        (KeyColumn(TEXT), "ab\ud800", "a text value containing an unpaired surrogate (U+D800 at offset 2)"),
        (
            KeyColumn(TEXT, nullable=False),
            "\udfff",
            "a text value containing an unpaired surrogate (U+DFFF at",
        ),
        (key_column(TEXT, collation=NOCASE), "\ud800", "a text value"),
        (KeyColumn(TEXT, descending=True), "\ud800", "a text value"),
        (KeyColumn(ANY), "\ud800", "a text value"),
        (KeyColumn(JSON), "\ud800", "a JSON string value"),
        (KeyColumn(JSON), [{"a": "\ud800"}], "a JSON string value"),
        (KeyColumn(JSON), {"\ud800": 1}, "a JSON object key"),
    ],
)
def test_unpaired_surrogates_are_refused(column: KeyColumn, value: Any, what: str) -> None:
    encoder = key_encoder([column])
    good: Any = [] if column.type is JSON else "fine"
    for action in (
        lambda: encoder.encode((value,)),
        lambda: encoder.encode_many([(good,), (value,)]),
        lambda: key_range(encoder, (value,)),
        lambda: key_range(encoder, lower=Bound(value, inclusive=True)),
    ):
        with pytest.raises(Error) as caught:
            action()
        assert caught.value.code is StatusCode.ERROR
        assert caught.value.message.startswith(f"cannot store {what}")
        assert caught.value.message.endswith("In-memory tables accept the value.")


def test_documents_in_any_columns_escape_them() -> None:
    encoder = key_encoder([KeyColumn(ANY)])
    assert encoder.encode((["\ud800"],)) != encoder.encode((["\ud801"],))


def test_a_normalizer_may_take_the_surrogate_away() -> None:
    column = KeyColumn(TEXT, normalizer=lambda text: text.rstrip("\ud800"))
    assert key_encoder([column]).encode(("a\ud800",)) == key_encoder([column]).encode(("a",))


def test_a_collation_without_a_normalizer_cannot_key_text() -> None:
    registry = CollationRegistry()
    registry.register("LENGTH", lambda a, b: len(a) - len(b))
    with pytest.raises(Error, match="collation LENGTH cannot key a persisted structure") as caught:
        key_column(TEXT, collation=registry.get("LENGTH"))
    assert caught.value.code is StatusCode.ERROR
    assert key_column(JSON, collation=registry.get("LENGTH")) == KeyColumn(JSON)

"""The codec alone: turning the benchmark's rows into keys and values, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.floor import Floor, best_of
from quereus_store.codec import decode_key, key_column, key_encoder, row_decoder, row_encoder
from quereus_store.types import INTEGER, NOCASE, TEXT


def measure_codec(data: Data, repeat: int) -> Iterator[Floor]:
    """Time keys of three shapes, and rows in both directions, for all rows in one batch."""
    rows = data.items
    number = key_column(INTEGER, nullable=False)
    integer = key_encoder([number], prefix=b"\x10", positions=(0,))
    entry = key_encoder([key_column(TEXT, nullable=False), number], prefix=b"\x11", positions=(2, 0))
    folded = key_encoder([key_column(TEXT, nullable=False, collation=NOCASE)], prefix=b"\x12", positions=(2,))
    _encode, encode_rows = row_encoder()
    _decode, decode_rows = row_decoder(has_documents=False)
    values = encode_rows(rows)
    assert decode_rows(values) == rows
    columns, keys = [number], [key[1:] for key in integer.encode_many(rows)]
    work: dict[str, Callable[[], Any]] = {
        "encode integer keys": partial(integer.encode_many, rows),
        "encode index entries (text, integer)": partial(entry.encode_many, rows),
        "encode NOCASE text keys": partial(folded.encode_many, rows),
        "decode integer keys, one by one": lambda: [decode_key(columns, key) for key in keys],
        "encode rows": partial(encode_rows, rows),
        "decode rows": partial(decode_rows, values),
    }
    for name, action in work.items():
        yield Floor(f"codec: {name}", best_of(repeat, action))

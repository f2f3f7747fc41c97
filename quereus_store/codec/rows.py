"""Rows as values: one msgpack array for each row, every value back exactly as it was.

msgpack keeps what JSON loses: 3.0 is not 3, -0.0, infinities and NaN survive, ``true`` is not 1, bytes are
not text, objects keep their key order.  Two things it lacks are extension types, which nothing else can be
mistaken for:

====  =====================================  ===============================================
ext   value                                  content
====  =====================================  ===============================================
1     integer beyond 64 bits                 two's complement, big-endian
2     part of a document below 256 levels    that part, as a msgpack value of its own
====  =====================================  ===============================================

Text is UTF-8, with unpaired surrogates as three bytes each (``surrogatepass``); such text is fine in a column
that is no part of a key.

The usual row is packed by one C call.  A batch is read by *one* C call too: an array header and the joined
rows are themselves a msgpack array.  Rows without documents come out as tuples at once; where a column may
hold a document (JSON, ANY), lists must stay lists, so the rows come out as lists and are turned into tuples,
about twice the time.  Decoding a row of three columns in a batch costs about as much as iterating over it in
LMDB does.

Which value belongs to which column is not decided here: a stored row may be shorter or longer than its
table has columns (``store/layouts.py``).

Chapter: store-and-modules, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any

from msgpack import ExtType, Packer, unpackb
from msgpack.exceptions import ExtraData, FormatError, StackError, UnpackValueError

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.values import Value

Row = tuple[Value, ...]

LARGE_INTEGER, DEEP_PART = 1, 2
DEEPEST_PLAIN = 256

_ARRAY_HEADER = Struct(">BI")
_ARRAY_32 = 0xDD
_UNUSUAL = (OverflowError, UnicodeEncodeError, ValueError)
_DAMAGED = (ExtraData, FormatError, StackError, UnpackValueError, ValueError, TypeError)


# --- writing ----------------------------------------------------------------------------------------------


def row_encoder() -> tuple[Callable[[Row], bytes], Callable[[Iterable[Row]], list[bytes]]]:
    """The functions that encode one row (a tuple) and a sequence of rows.

    Raises TOOBIG for a document that is nested deeper than Python can walk.
    """
    # This packer has no hooks, so a call never lets another thread in, and one packer serves all.
    pack = Packer(autoreset=True, use_bin_type=True).pack

    def encode(row: Row) -> bytes:
        try:
            packed: bytes = pack(row)
        except _UNUSUAL:
            return _encode_unusual(row)
        return packed

    def encode_many(rows: Iterable[Row]) -> list[bytes]:
        rows = rows if isinstance(rows, Sequence) else list(rows)
        try:
            return list(map(pack, rows))
        except _UNUSUAL:
            return list(map(encode, rows))

    return encode, encode_many


def _encode_unusual(row: Row) -> bytes:
    try:
        return _pack_unusual([_fold(value, 1) for value in row])
    except RecursionError:
        raise sql_error(StatusCode.TOOBIG, "a document is nested too deeply to be stored") from None


def _pack_unusual(value: Any) -> bytes:
    packer = Packer(use_bin_type=True, unicode_errors="surrogatepass", default=_large_integer)
    packed: bytes = packer.pack(value)
    return packed


def _large_integer(value: Any) -> ExtType:
    return ExtType(LARGE_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _fold(value: Any, depth: int) -> Any:
    """The value with its parts below the depth that msgpack can walk packed by themselves."""
    if not isinstance(value, (list, dict)):
        return value
    if depth == DEEPEST_PLAIN:
        return ExtType(DEEP_PART, _pack_unusual(_fold(value, 1)))
    if isinstance(value, list):
        return [_fold(item, depth + 1) for item in value]
    return {name: _fold(item, depth + 1) for name, item in value.items()}


# --- reading ----------------------------------------------------------------------------------------------


def _extension(code: int, data: bytes) -> Any:
    if code == LARGE_INTEGER:
        return int.from_bytes(data, "big", signed=True)
    if code == DEEP_PART:
        return _unpack(data, use_list=True)
    raise ValueError(f"unknown extension {code}")


def _unpack(data: bytes, *, use_list: bool) -> Any:
    return unpackb(data, use_list=use_list, ext_hook=_extension, unicode_errors="surrogatepass")


def _damaged(failure: Exception) -> Exception:
    return sql_error(StatusCode.CORRUPT, f"a stored row is damaged: {str(failure) or type(failure).__name__}")


def row_decoder(
    has_documents: bool,
) -> tuple[Callable[[bytes], Row], Callable[[Sequence[bytes]], list[Row]]]:
    """The functions that decode one stored row and a batch of them.

    ``has_documents``: whether a column may hold a list (JSON, ANY, registered types).
    Raises CORRUPT for bytes that are no row.
    """
    return _document_decoders() if has_documents else _plain_decoders()


def _join(values: Sequence[bytes]) -> bytes:
    return _ARRAY_HEADER.pack(_ARRAY_32, len(values)) + b"".join(values)


def _plain_decoders() -> tuple[Callable[[bytes], Row], Callable[[Sequence[bytes]], list[Row]]]:
    def decode(value: bytes) -> Row:
        try:
            row: Row = unpackb(value, use_list=False, ext_hook=_extension, unicode_errors="surrogatepass")
        except _DAMAGED as failure:
            raise _damaged(failure) from failure
        return row

    def decode_many(values: Sequence[bytes]) -> list[Row]:
        try:
            return list(_unpack(_join(values), use_list=False))
        except _DAMAGED as failure:
            raise _damaged(failure) from failure

    return decode, decode_many


def _document_decoders() -> tuple[Callable[[bytes], Row], Callable[[Sequence[bytes]], list[Row]]]:
    def decode(value: bytes) -> Row:
        try:
            return tuple(unpackb(value, use_list=True, ext_hook=_extension, unicode_errors="surrogatepass"))
        except _DAMAGED as failure:
            raise _damaged(failure) from failure

    def decode_many(values: Sequence[bytes]) -> list[Row]:
        try:
            return list(map(tuple, _unpack(_join(values), use_list=True)))
        except _DAMAGED as failure:
            raise _damaged(failure) from failure

    return decode, decode_many

"""Keys: bytes whose order is SQL order.

``key_encoder`` turns the values of a key into bytes such that byte order is the order of the dialect and
equal bytes are equal values, for every type, collation and direction.  Each value is self-delimiting and none
is a prefix of another one's, so keys of several columns are plain concatenations: they sort column by column,
and the keys that share their leading columns are one contiguous range (``key_range`` in ``ranges.py``).

=============  =====================  =======================================  =============
first byte     value                  rest                                     module
=============  =====================  =======================================  =============
``00``         NULL                                                            ``values``
``02``-``04``  JSON null, false, true (inside JSON columns)                    ``documents``
``10``         -infinity                                                       ``numbers``
``11``         integer below -2^63    flipped (bit length, bits, ``00``)       ``numbers``
``12``         number, 64 bit part    integer part + 2^63, marker, fraction    ``numbers``
``13``         integer from 2^63      bit length (4 bytes), bits, ``00``       ``numbers``
``14`` ``15``  +infinity, NaN                                                  ``numbers``
``20``         text                   normalized UTF-8, escaped, ``00``        ``text``
``28`` ``2C``  JSON array, object (in JSON columns)                            ``documents``
``30``         blob                   bytes, escaped, ``00``                   ``values``
``40``         list or dict in ANY    canonical text, escaped, ``00``          ``documents``
``50``         several-part key of a registered type: the parts, ``00``        ``values``
=============  =====================  =======================================  =============

Escaping turns ``00`` into ``01 01`` and ``01`` into ``01 02``.  A boolean is the number 0 or 1 (but a node of
its own inside JSON), a date or time its canonical text, a duration its length in nanoseconds as a number.  A
descending column has every byte XOR FF, so its NULLs come last.

The encoder of a key is Python source written for its shape.  All-integer stretches become one ``struct``
call, text one ``encode`` and two ``replace``; in a batch an integer key costs about half of what storing its
row costs.  The fast source assumes that a column holds its type's plain values; where it does not (a huge
integer, a real probe, a NULL, an unpaired surrogate) the operations themselves fail, and the general encoders
of ``values`` take over.

Chapter: store-and-modules, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError  # noqa: N812 - the class has a lower-case name
from typing import Any

from quereus_store.codec.bits import FLIP_TABLE, TERMINATOR
from quereus_store.codec.numbers import BIAS, INTEGRAL, PLAIN
from quereus_store.codec.text import TEXT_TAG
from quereus_store.codec.values import NULL_KEY, KeyColumn, ValueEncoder, column_encoder
from quereus_store.types.collations import NOCASE
from quereus_store.types.logical import BOOLEAN, DATE, DATETIME, INTEGER, TEXT, TIME, TIMESTAMP
from quereus_store.types.values import Value

Row = Sequence[Value]

_INTEGER_TYPES = frozenset((INTEGER, TIMESTAMP, BOOLEAN))
_TEXT_TYPES = frozenset((TEXT, DATE, TIME, DATETIME))

# What the generated source raises when a value is not of its column's plain class.
_NOT_PLAIN = (StructError, TypeError, AttributeError, UnicodeEncodeError, OverflowError)


@dataclass(frozen=True, slots=True)
class KeyEncoder:
    """The encoder of one key.

    ``columns`` are the key's columns, ``positions`` where their values stand in the rows that ``encode`` and
    ``encode_many`` take, ``prefix`` the bytes before each key.  All calls raise ERROR for text or JSON
    strings with an unpaired surrogate (store-and-modules, section 3), before anything is written.
    """

    columns: tuple[KeyColumn, ...]
    positions: tuple[int, ...]
    prefix: bytes
    encode: Callable[[Row], bytes]
    """The key of a row."""
    encode_many: Callable[[Sequence[Row]], list[bytes]]
    """The keys of rows, in their order."""
    encoders: tuple[ValueEncoder, ...]
    """The general encoder of each column, direction included."""

    def encode_leading(self, values: Sequence[Value]) -> bytes:
        """The prefix and the leading columns of a key: values by *column*, not by position in a row."""
        if len(values) < 2:
            return self.prefix + self.encoders[0](values[0]) if values else self.prefix
        return self.prefix + b"".join(
            [encode(value) for encode, value in zip(self.encoders, values, strict=False)]
        )


def key_encoder(
    columns: Sequence[KeyColumn], *, prefix: bytes = b"", positions: Sequence[int] | None = None
) -> KeyEncoder:
    """Build the encoder of a key.

    ``prefix`` is put before every key (the id of the logical store).  ``positions`` are the indices of the
    key's columns in the rows given to the encoder; left out, a row is the tuple of the key's values.  Raises
    ERROR for a registered type that cannot key a persisted structure.
    """
    columns = tuple(columns)
    places = tuple(range(len(columns)) if positions is None else positions)
    encoders = tuple(map(column_encoder, columns))

    def encode_any(row: Row) -> bytes:
        return prefix + b"".join([encode(row[place]) for encode, place in zip(encoders, places, strict=True)])

    encode, encode_many = _generate(columns, places, prefix, encoders, encode_any)
    return KeyEncoder(columns, places, prefix, encode, encode_many, encoders)


# --- source for a key's shape -----------------------------------------------------------------------------


class _Source:
    """Collects the parts of a key's expression; constant bytes and integers join into one ``struct`` call."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"FLIP": FLIP_TABLE}
        self._parts: list[str] = []
        self._constant = b""
        self._format = ">"
        self._arguments: list[str] = []

    def name(self, value: object) -> str:
        """A global name of the generated source for an object."""
        name = f"g{len(self.names)}"
        self.names[name] = value
        return name

    def constant(self, data: bytes) -> None:
        """Fixed bytes."""
        self._constant += data

    def integer(self, expression: str) -> None:
        """Eight bytes of an unsigned integer."""
        self._flush_constant_into_struct()
        self._format += "Q"
        self._arguments.append(expression)

    def variable(self, expression: str) -> None:
        """Bytes of any length."""
        self._flush()
        self._parts.append(expression)

    def expression(self) -> str:
        """The whole key."""
        self._flush()
        return " + ".join(self._parts) if self._parts else "b''"

    def _flush_constant_into_struct(self) -> None:
        if self._constant:
            self._format += f"{len(self._constant)}s"
            self._arguments.append(repr(self._constant))
            self._constant = b""

    def _flush(self) -> None:
        if self._arguments:
            self._flush_constant_into_struct()
            pack = self.name(Struct(self._format).pack)
            self._parts.append(f"{pack}({', '.join(self._arguments)})")
            self._format, self._arguments = ">", []
        elif self._constant:
            self._parts.append(repr(self._constant))
            self._constant = b""


def _add_integer(source: _Source, column: KeyColumn, value: str) -> None:
    if column.descending:
        source.constant(bytes((PLAIN ^ 0xFF,)))
        source.integer(f"{BIAS - 1} - {value}")
        source.constant(bytes((INTEGRAL ^ 0xFF,)))
    else:
        source.constant(bytes((PLAIN,)))
        source.integer(f"{value} + {BIAS}")
        source.constant(bytes((INTEGRAL,)))


def _integer_expression(source: _Source, column: KeyColumn, value: str) -> str:
    alone = _Source()
    _add_integer(alone, column, value)
    text = alone.expression()
    packer = next(name for name in alone.names if name != "FLIP")
    return text.replace(packer, source.name(alone.names[packer]), 1)


def _text_body(source: _Source, column: KeyColumn, value: str) -> str:
    normalizer = column.normalizer if column.type is TEXT else None
    if normalizer is None:
        text = value
    elif normalizer is NOCASE.normalizer:
        text = f"{value}.lower()"
    else:
        text = f"{source.name(_only_text(normalizer))}({value})"
    body = rf'{text}.encode().replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")'
    return f"{body}.translate(FLIP)" if column.descending else body


def _add_text(source: _Source, column: KeyColumn, value: str) -> None:
    source.constant(_directed(column, TEXT_TAG))
    source.variable(_text_body(source, column, value))
    source.constant(_directed(column, TERMINATOR))


def _text_expression(source: _Source, column: KeyColumn, value: str) -> str:
    body = _text_body(source, column, value)
    return f"{_directed(column, TEXT_TAG)!r} + {body} + {_directed(column, TERMINATOR)!r}"


def _directed(column: KeyColumn, data: bytes) -> bytes:
    return data.translate(FLIP_TABLE) if column.descending else data


def _only_text(normalizer: Callable[[str], str]) -> Callable[[Any], str]:
    def normalize(value: Any) -> str:
        if type(value) is not str:
            raise TypeError
        return normalizer(value)

    return normalize


def _add_column(source: _Source, column: KeyColumn, value: str, encoder: ValueEncoder) -> None:
    if column.type not in _INTEGER_TYPES and column.type not in _TEXT_TYPES:
        source.variable(f"{source.name(encoder)}({value})")
    elif column.nullable:
        write = _integer_expression if column.type in _INTEGER_TYPES else _text_expression
        null = _directed(column, NULL_KEY)
        source.variable(f"({write(source, column, value)} if {value} is not None else {null!r})")
    elif column.type in _INTEGER_TYPES:
        _add_integer(source, column, value)
    else:
        _add_text(source, column, value)


def _generate(
    columns: tuple[KeyColumn, ...],
    places: tuple[int, ...],
    prefix: bytes,
    encoders: tuple[ValueEncoder, ...],
    encode_any: Callable[[Row], bytes],
) -> tuple[Callable[[Row], bytes], Callable[[Sequence[Row]], list[bytes]]]:
    source = _Source()
    source.constant(prefix)
    for column, place, encoder in zip(columns, places, encoders, strict=True):
        _add_column(source, column, f"row[{place}]", encoder)
    expression = source.expression()
    names = {**source.names, "NOT_PLAIN": _NOT_PLAIN, "encode_any": encode_any}
    text = (
        "def encode(row):\n"
        f"    try:\n        return {expression}\n"
        "    except NOT_PLAIN:\n        return encode_any(row)\n"
        "def encode_many(rows):\n"
        f"    try:\n        return [{expression} for row in rows]\n"
        "    except NOT_PLAIN:\n        return [encode(row) for row in rows]\n"
    )
    exec(compile(text, f"<key encoder of {len(columns)} columns>", "exec"), names)
    return names["encode"], names["encode_many"]

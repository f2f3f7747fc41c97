"""Rows whose stored form is not their columns in order: what ADD COLUMN and DROP COLUMN leave behind.

A row is stored as an array of *places*.  As long as a table has no :class:`RowLayout` the places are its
columns.  Afterwards:

* a column that was added with one value for all rows has the place after the last; rows that were written
  before **end before it**, and are read with the value that the layout has for the place;
* a column that was dropped leaves its place behind, **retired**: old rows keep what they have there, new ones
  have NULL, and nobody reads it.

So neither statement touches a row.  The layout is part of the table's catalog entry, hence of the
snapshot: whoever reads an older state reads it with the layout of then.  Whatever rewrites the rows
(another key, another type) writes them as columns again and ends the layout.

=======================  ==========================  ==============================================
statement                layout (``slots``, fills)   a row of before, a row written now
=======================  ==========================  ==============================================
``create table t (a, b)``  none                      ``[1, 'x']``
``add c … default 7``      (0, 1, 2), (-, -, 7)      ``[1, 'x']``, ``[1, 'x', 9]``
``drop column b``          (0, 2), (-, -, 7)         ``[1, 'x']``, ``[1, None, 9]``
=======================  ==========================  ==============================================

Chapter: alter-and-ddl-lifecycle, sections 8 and 9; store-and-modules, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import RowLayout

EncodeOne = Callable[[Row], bytes]
EncodeMany = Callable[[Iterable[Row]], list[bytes]]
DecodeOne = Callable[[bytes], Row]
DecodeMany = Callable[[Sequence[bytes]], list[Row]]


# --- layouts of changed tables ----------------------------------------------------------------------------


def appended(layout: RowLayout | None, width: int, value: Any) -> RowLayout:
    """The layout of a table of ``width`` columns once one more has come whose value is ``value``."""
    layout = layout or _plain(width)
    places = len(layout.fills)
    return RowLayout((*layout.slots, places), (*layout.fills, value), layout.least)


def retired(layout: RowLayout | None, width: int, position: int) -> RowLayout:
    """The layout of a table of ``width`` columns without one of them."""
    layout = layout or _plain(width)
    return RowLayout(layout.slots[:position] + layout.slots[position + 1 :], layout.fills, layout.least)


def _plain(width: int) -> RowLayout:
    return RowLayout(tuple(range(width)), (None,) * width, width)


# --- encoding and decoding --------------------------------------------------------------------------------


def laid_out_encoder(
    layout: RowLayout, encode: EncodeOne, encode_many: EncodeMany
) -> tuple[EncodeOne, EncodeMany]:
    """The encoders of one row and of many that put each value in its place, NULL in retired ones."""
    if _in_order(layout):
        return encode, encode_many
    columns = {slot: column for column, slot in enumerate(layout.slots)}
    retired_place = len(layout.slots)
    spread = _picker([columns.get(place, retired_place) for place in range(len(layout.fills))])
    nothing = (None,)

    def encode_spread(row: Row) -> bytes:
        return encode(spread(row + nothing))

    def encode_many_spread(rows: Iterable[Row]) -> list[bytes]:
        return encode_many([spread(row + nothing) for row in rows])

    return encode_spread, encode_many_spread


def laid_out_decoder(
    layout: RowLayout, decode: DecodeOne, decode_many: DecodeMany
) -> tuple[DecodeOne, DecodeMany]:
    """The decoders of one row and of many that complete short rows and give the columns in order.

    Both raise CORRUPT for a row that is shorter or longer than any can be.
    """
    fills, least, places = layout.fills, layout.least, len(layout.fills)
    lengths = set(range(least, places + 1))
    whole = {places}
    in_order = _in_order(layout)
    pick = _picker(layout.slots)

    def decode_one(value: bytes) -> Row:
        row = decode(value)
        if len(row) != places:
            if len(row) not in lengths:
                raise _impossible(len(row), least, places)
            row = row + fills[len(row) :]
        return row if in_order else pick(row)

    def decode_all(values: Sequence[bytes]) -> list[Row]:
        rows = decode_many(values)
        found = set(map(len, rows))
        if not found <= whole:
            if not found <= lengths:
                raise _impossible(min(found - lengths), least, places)
            rows = [row if len(row) == places else row + fills[len(row) :] for row in rows]
        return rows if in_order else list(map(pick, rows))

    return decode_one, decode_all


def _in_order(layout: RowLayout) -> bool:
    """Whether the columns are the places in order, with none retired."""
    return layout.slots == tuple(range(len(layout.fills)))


def _picker(places: Sequence[int]) -> Callable[[Row], Row]:
    """A function that makes a row of some places of another."""
    if len(places) == 1:
        place = places[0]
        return lambda row: (row[place],)
    return itemgetter(*places)


def _impossible(length: int, least: int, most: int) -> Error:
    return sql_error(StatusCode.CORRUPT, f"it has {length} values where there are {least} to {most}")

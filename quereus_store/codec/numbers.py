"""Numbers as keys: integers of any size and reals on one exact scale.

A double cannot hold 2^53 + 1 and an integer cannot hold 1.5, so neither can carry both.  A number is taken
apart into its integer part (truncated toward zero) and its fraction, which a double holds exactly::

    12  integer part + 2^63 in 8 bytes          80                       integral
                                                81  fraction as a double     positive, not integral
                                                7F  flipped double of -fraction     negative, not integral

The marker byte orders what shares an integer part: -1.5 < -1, and -0.5 < 0 < 0.5.  An integer of 64 bits is
thus one ``struct`` call.  Beyond 64 bits nothing has a fraction, and the number is the length of its integer
in bits, then its bits aligned to the left with trailing zero bytes cut (so that ``1e300`` stays short)::

    13  bit length in 4 bytes, escaped bits, 00        from 2^63 up
    11  the same of the magnitude, flipped             below -2^63

``10`` and ``14`` are the infinities, ``15`` is NaN, above all numbers.  Equal numbers have equal bytes: 5 and
5.0, 0 and -0.0, true and 1, 10^300 as integer and as the real that equals it.
"""

from __future__ import annotations

from math import inf, modf
from struct import Struct
from struct import error as StructError  # noqa: N812 - the class has a lower-case name

from quereus_store.codec.bits import FLIP_TABLE, escape, unescape
from quereus_store.errors import StatusCode, sql_error

NEGATIVE_INFINITY, LARGE_NEGATIVE, PLAIN, LARGE_POSITIVE, POSITIVE_INFINITY, NAN = range(0x10, 0x16)
INTEGRAL, POSITIVE_FRACTION, NEGATIVE_FRACTION = 0x80, 0x81, 0x7F
BIAS = 1 << 63

_INTEGER = Struct(">BQB")
_FRACTION = Struct(">BQBd")
_DOUBLE = Struct(">d")
_BIT_LENGTH = Struct(">I")
_pack_integer = _INTEGER.pack
_pack_fraction = _FRACTION.pack


def encode_integer(number: int) -> bytes:
    """The key of an integer (or boolean) of any size."""
    try:
        return _pack_integer(PLAIN, number + BIAS, INTEGRAL)
    except StructError:
        return _encode_large(number)


def encode_real(number: float) -> bytes:
    """The key of a double; integral ones have the key of their integer."""
    fraction, whole = modf(number)
    if not fraction:
        if whole in (inf, -inf):
            return bytes((POSITIVE_INFINITY if whole > 0 else NEGATIVE_INFINITY,))
        return encode_integer(int(whole))
    if fraction > 0:
        return _pack_fraction(PLAIN, int(whole) + BIAS, POSITIVE_FRACTION, fraction)
    if fraction < 0:
        head = _pack_integer(PLAIN, int(whole) + BIAS, NEGATIVE_FRACTION)
        return head + _DOUBLE.pack(-fraction).translate(FLIP_TABLE)
    return bytes((NAN,))


def _encode_large(number: int) -> bytes:
    magnitude = abs(number)
    length = magnitude.bit_length()
    if length >> 32:
        raise sql_error(StatusCode.TOOBIG, "an integer of more than 2^32 bits cannot be part of a key")
    size = (length + 7) // 8
    digits = (magnitude << (size * 8 - length)).to_bytes(size, "big").rstrip(b"\0")
    body = _BIT_LENGTH.pack(length) + escape(digits) + b"\0"
    if number > 0:
        return bytes((LARGE_POSITIVE,)) + body
    return bytes((LARGE_NEGATIVE,)) + body.translate(FLIP_TABLE)


def decode_number(key: bytes, start: int) -> tuple[int | float, int]:
    """The number whose key starts at ``start`` and the offset behind it; integral ones as integers."""
    tag = key[start]
    if tag == PLAIN:
        _, biased, marker = _INTEGER.unpack_from(key, start)
        end = start + _INTEGER.size
        if marker == INTEGRAL:
            return biased - BIAS, end
        body = key[end : end + 8]
        sign = 1 if marker == POSITIVE_FRACTION else -1
        (fraction,) = _DOUBLE.unpack(body if sign > 0 else body.translate(FLIP_TABLE))
        return biased - BIAS + sign * fraction, end + 8
    if tag in (LARGE_POSITIVE, LARGE_NEGATIVE):
        return _decode_large(key, start, tag == LARGE_NEGATIVE)
    return {NEGATIVE_INFINITY: -inf, POSITIVE_INFINITY: inf, NAN: float("nan")}[tag], start + 1


def _decode_large(key: bytes, start: int, negative: bool) -> tuple[int, int]:
    end = key.index(b"\xff" if negative else b"\0", start + 5) + 1
    body = key[start + 1 : end]
    if negative:
        body = body.translate(FLIP_TABLE)
    (length,) = _BIT_LENGTH.unpack_from(body)
    digits = unescape(body[4:-1])
    shift = length - len(digits) * 8
    number = int.from_bytes(digits, "big")
    magnitude = number << shift if shift >= 0 else number >> -shift
    return (-magnitude if negative else magnitude), end

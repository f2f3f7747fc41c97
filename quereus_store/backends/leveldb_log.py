"""Where a LevelDB log is damaged: at its end, as a crash leaves it, or in the middle of commits.

LevelDB writes each commit to a log before it answers, in blocks of 32 KiB.  A commit is one *record*, cut
into fragments that fit the blocks; a fragment is a header and its bytes::

    checksum   4 bytes   CRC-32C of kind and bytes, masked
    length     2 bytes   little-endian, as the checksum
    kind       1 byte    1 the whole record, 2 its first fragment, 3 a middle one, 4 the last

When the system fails while a commit is being written, the end of the log is torn: nobody was told that this
commit is kept, and it may be dropped.  But when a later record starts behind the damage, the damaged ones had
been acknowledged.  LevelDB itself does not tell the two apart: it either drops what it cannot read or refuses
both, so the question is answered here, and only after LevelDB has refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

_BLOCK_SIZE = 32 * 1024
_HEADER = Struct("<IHB")
_STARTS = frozenset({1, 2})
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _table() -> tuple[int, ...]:
    entries = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        entries.append(value)
    return tuple(entries)


_TABLE = _table()


def _checksum(data: bytes) -> int:
    """The masked CRC-32C of some bytes, as the log holds it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def _fragments(block: bytes) -> Iterator[int | None]:
    """The kinds of a block's fragments; ends with None where one cannot be read."""
    position = 0
    while len(block) - position >= _HEADER.size:
        checksum, length, kind = _HEADER.unpack_from(block, position)
        start, end = position + _HEADER.size, position + _HEADER.size + length
        if end > len(block) or _checksum(block[start - 1 : end]) != checksum:
            yield None
            return
        yield kind
        position = end


def damaged_before_a_later_commit(folder: Path) -> bool:
    """Whether some log of a LevelDB folder holds a record that starts behind a place that cannot be read."""
    return any(map(_log_is_damaged, sorted(folder.glob("*.log"))))


def _log_is_damaged(path: Path) -> bool:
    damaged = False
    with path.open("rb") as log:
        while block := log.read(_BLOCK_SIZE):
            for kind in _fragments(block):
                if kind is None:
                    damaged = True
                elif damaged and kind in _STARTS:
                    return True
    return False

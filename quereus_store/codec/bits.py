"""Byte tricks that every part of the key encoding shares.

``escape`` makes bytes self-delimiting: the result holds no ``00``, so a ``00`` may end it, and byte order is
kept.  (A length prefix would sort by length.)  ``FLIP_TABLE`` turns an encoding upside down for descending
columns.
"""

from __future__ import annotations

FLIP_TABLE = bytes(255 - byte for byte in range(256))
"""Table for ``bytes.translate``: every byte XOR FF."""

TERMINATOR = b"\0"


def escape(data: bytes) -> bytes:
    """``00`` becomes ``01 01`` and ``01`` becomes ``01 02``: no ``00`` is left, order is kept."""
    return data.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")


def unescape(data: bytes) -> bytes:
    """The bytes that :func:`escape` was given."""
    return data.replace(b"\1\1", b"\0").replace(b"\1\2", b"\1")


def successor(prefix: bytes) -> bytes | None:
    """The first key after all keys that start with ``prefix``; None when there is none (all ``FF``)."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None

"""How much memory rows take, and sizes as a user writes them: ``64 MB``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from sys import getsizeof
from types import MappingProxyType
from typing import Any

_NESTED = frozenset({tuple, list, dict})
_UNITS = MappingProxyType(
    {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
    | {"k": 1024, "m": 1024**2, "g": 1024**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}
)
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def rows_size(rows: Sequence[Any]) -> int:
    """About how many bytes these rows or values take, with everything inside them."""
    size = 0
    while rows:
        size += sum(map(getsizeof, rows))
        if _NESTED.isdisjoint(map(type, rows)):
            break
        rows = list(chain.from_iterable([_parts(value) for value in rows if type(value) in _NESTED]))
    return size


def about_size(rows: Sequence[Any]) -> int:
    """The size of many rows judged by every eighth of them."""
    if len(rows) < 64:
        return rows_size(rows)
    return rows_size(rows[::8]) * 8


def _parts(value: Any) -> Iterable[Any]:
    return chain(value, value.values()) if type(value) is dict else value


def parse_size(value: Any) -> int:
    """A number of bytes from a number or from text such as ``64 MB`` or ``1 GiB``; 0 for none.

    :raises ValueError: for anything else.
    """
    if value is None or value is False:
        return 0
    if isinstance(value, str):
        if value.strip().lower() in ("off", "none", ""):
            return 0
        match = _SIZE.fullmatch(value)
        unit = None if match is None else _UNITS.get(match[2].lower())
        if match is None or unit is None:
            raise ValueError(f"a size is a number of bytes or a text like '64 MB', not '{value}'")
        return int(float(match[1]) * unit)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"a size is a number of bytes or a text like '64 MB', not {value}")
    return int(value)

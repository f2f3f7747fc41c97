"""What LevelDB's failures mean: one of our status codes, and a message that names the database."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.backends.leveldb_binding import plyvel
from quereus_store.errors import Error, StatusCode, sql_error

FAILURES = (plyvel.Error, OSError)
"""What the binding raises."""

_BY_TEXT: Mapping[str, StatusCode] = MappingProxyType(
    {
        "No space left": StatusCode.FULL,
        "quota exceeded": StatusCode.FULL,
        "File too large": StatusCode.FULL,
        "Permission denied": StatusCode.READONLY,
        "Read-only": StatusCode.READONLY,
        "already held by process": StatusCode.BUSY,
        "temporarily unavailable": StatusCode.BUSY,
        "No such file": StatusCode.CANTOPEN,
    }
)
"""What LevelDB's messages hold, the first that fits."""


def translate(failure: Exception, path: str, doing: str) -> Error:
    """The error for ``failure``, met while ``doing`` ("open", "read", "write to") the database."""
    text = failure.args[0] if failure.args else str(failure)
    reason = text.decode(errors="replace") if isinstance(text, bytes) else str(failure)
    return sql_error(_code(failure, reason), f"cannot {doing} '{path}': {reason}")


def _code(failure: Exception, reason: str) -> StatusCode:
    if isinstance(failure, plyvel.CorruptionError):
        return StatusCode.CORRUPT
    return next((code for text, code in _BY_TEXT.items() if text in reason), StatusCode.IOERR)

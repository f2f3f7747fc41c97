"""Errors: status codes, the exception tree and source positions.

The lowest layer; it knows nothing of the others.
"""

from quereus_store.errors.codes import StatusCode
from quereus_store.errors.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    SourcePosition,
    Warning,  # noqa: A004 - the name is PEP 249's
    outward,
    placed_at,
    sql_error,
    unsupported,
)

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "SourcePosition",
    "StatusCode",
    "Warning",
    "outward",
    "placed_at",
    "sql_error",
    "unsupported",
]

"""Status codes: the machine-readable half of every error.

Each exception carries one of these numbers as ``.code``.  They are the codes of
the dialect (dml-transactions-constraints, section 16), so that a program can
tell a constraint from a missing table without reading the message.
"""

from enum import IntEnum


class StatusCode(IntEnum):
    """Why a statement failed."""

    OK = 0
    ERROR = 1
    INTERNAL = 2
    PERM = 3
    ABORT = 4
    BUSY = 5
    LOCKED = 6
    NOMEM = 7
    READONLY = 8
    INTERRUPT = 9
    IOERR = 10
    CORRUPT = 11
    NOTFOUND = 12
    FULL = 13
    CANTOPEN = 14
    PROTOCOL = 15
    EMPTY = 16
    SCHEMA = 17
    TOOBIG = 18
    CONSTRAINT = 19
    MISMATCH = 20
    MISUSE = 21
    NOLFS = 22
    AUTH = 23
    FORMAT = 24
    RANGE = 25
    NOTADB = 26
    NOTICE = 27
    WARNING = 28
    SYNTAX = 29
    UNSUPPORTED = 30

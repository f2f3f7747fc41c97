"""Quereus Store: an embedded SQL database, durable on LMDB or LevelDB.

::

    import quereus_store

    with quereus_store.connect("crew.qdb") as con:
        con.execute("create table crew (id integer primary key, name text)")
        con.executemany("insert into crew values (?, ?)", [(1, "Ann"), (2, "Bo")])
        print(con.execute("select name from crew where id = ?", (2,)).fetchone())

The module follows PEP 249; see :func:`connect` and :class:`Connection`.
"""

from quereus_store.api import Connection, Cursor, Database, PlanStep, Row, connect, dict_row
from quereus_store.api.pep249 import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from quereus_store.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    StatusCode,
    Warning,  # noqa: A004 - the name is PEP 249's
)

__version__ = "0.1.0"

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "Database",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PlanStep",
    "ProgrammingError",
    "Row",
    "StatusCode",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "dict_row",
    "paramstyle",
    "threadsafety",
]

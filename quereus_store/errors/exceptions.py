"""The one exception tree: PEP 249's names, a status code, a place in the text.

Code anywhere in the package raises through :func:`sql_error`, which picks the
PEP 249 class for a status code from a table, so that the class and the code
never disagree::

    raise sql_error(StatusCode.NOTFOUND, f"Table not found: {name}", node.position)

A position is shown at the end of the message, `` (at line 2, column 8)``, and
kept as ``.line`` and ``.column`` (both from 1; ``None`` where there is no text).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from quereus_store.errors.codes import StatusCode
from quereus_store.records import record


@record(frozen=True, slots=True)
class SourcePosition:
    """Where in a statement's text something stands: line and column, from 1."""

    line: int
    column: int


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """Something worth telling that did not stop the statement."""


NO_DETAILS: Mapping[str, Any] = MappingProxyType({})


class Error(Exception):
    """Base of every error the package raises.

    ``details`` says for a program what the message says for people; a constraint's error names ``schema``,
    ``table``, ``columns``, ``constraint``, ``kind`` and, where a key is concerned, its ``values``.
    """

    default_code = StatusCode.ERROR

    def __init__(
        self,
        message: str,
        code: StatusCode | None = None,
        position: SourcePosition | None = None,
    ) -> None:
        self.message = message
        self.code = self.default_code if code is None else code
        self.position = position
        self._shows_position = True
        self.details: Mapping[str, Any] = NO_DETAILS
        super().__init__(message)

    @property
    def line(self) -> int | None:
        """Line of the offending token, from 1."""
        return self.position.line if self.position else None

    @property
    def column(self) -> int | None:
        """Column of the offending token, from 1."""
        return self.position.column if self.position else None

    def __str__(self) -> str:
        if self.position is None or not self._shows_position:
            return self.message
        return f"{self.message} (at line {self.position.line}, column {self.position.column})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process borders: what a program is told in ``details`` goes along as far as it can."""
        state = {**self.__dict__, "details": {k: v for k, v in self.details.items() if _travels(v)}}
        return type(self), (self.message, self.code, self.position), state

    def located(self, position: SourcePosition | None) -> Error:
        """Give the error a position if its message shows none yet, and return it."""
        if self.position is None or not self._shows_position:
            self.position = position
            self._shows_position = True
        return self

    def of_statement(self, position: SourcePosition | None) -> None:
        """Note where the statement begins whose rows caused the error, if there is no position yet.

        A program finds it in ``position``; the message stays the same wherever the statement stands.
        """
        if self.position is None and position is not None:
            self.position = position
            self._shows_position = False


@contextmanager
def placed_at(position: SourcePosition | None) -> Iterator[None]:
    """Errors in a stored text, which is no part of the statement, stand at a place of the statement."""
    try:
        yield
    except Error as error:
        if error.position is not None:
            error.position = position
        raise


_TRAVELLERS = (str, bytes, int, float, list, tuple, dict, type(None))


def _travels(detail: Any) -> bool:
    """Whether a detail is a value that can be copied to another process; a module of this one cannot."""
    return isinstance(detail, _TRAVELLERS)


class InterfaceError(Error):
    """The Python side used the interface wrongly (a closed connection, a bad parameter)."""

    default_code = StatusCode.MISUSE


class DatabaseError(Error):
    """Base of the errors that come from the database itself."""


class DataError(DatabaseError):
    """A value does not fit its type."""

    default_code = StatusCode.MISMATCH


class OperationalError(DatabaseError):
    """The storage could not do its work: busy, full, unreadable, not a database."""

    default_code = StatusCode.IOERR


class IntegrityError(DatabaseError):
    """A constraint or an assertion refused a change."""

    default_code = StatusCode.CONSTRAINT


class InternalError(DatabaseError):
    """A defect of the package."""

    default_code = StatusCode.INTERNAL


class ProgrammingError(DatabaseError):
    """The statement is wrong: syntax, unknown names, wrong arity."""


class NotSupportedError(DatabaseError):
    """The statement is understood but not available."""

    default_code = StatusCode.UNSUPPORTED


_CLASS_OF_CODE: Mapping[StatusCode, type[Error]] = MappingProxyType(
    {
        StatusCode.INTERNAL: InternalError,
        StatusCode.PERM: OperationalError,
        StatusCode.ABORT: OperationalError,
        StatusCode.BUSY: OperationalError,
        StatusCode.LOCKED: OperationalError,
        StatusCode.NOMEM: OperationalError,
        StatusCode.READONLY: OperationalError,
        StatusCode.INTERRUPT: OperationalError,
        StatusCode.IOERR: OperationalError,
        StatusCode.CORRUPT: OperationalError,
        StatusCode.FULL: OperationalError,
        StatusCode.CANTOPEN: OperationalError,
        StatusCode.PROTOCOL: OperationalError,
        StatusCode.NOTADB: OperationalError,
        StatusCode.CONSTRAINT: IntegrityError,
        StatusCode.MISMATCH: DataError,
        StatusCode.TOOBIG: DataError,
        StatusCode.MISUSE: InterfaceError,
        StatusCode.UNSUPPORTED: NotSupportedError,
    }
)


def sql_error(code: StatusCode, message: str, position: SourcePosition | None = None) -> Error:
    """Build the exception for a status code; the caller raises it.

    Codes without an entry in the table (ERROR, NOTFOUND, RANGE, SYNTAX, ...) are
    mistakes in the statement: :class:`ProgrammingError`.
    """
    return _CLASS_OF_CODE.get(code, ProgrammingError)(message, code, position)


def outward(error: Error) -> Error:
    """An error as a program sees it: raised by the call that it made, without the way it took inside.

    Raise it from its own cause, which stays.  An internal error keeps its whole traceback: it is ours to look
    into.
    """
    if isinstance(error, InternalError):
        return error
    return error.with_traceback(None)


def unsupported(what: str, position: SourcePosition | None = None) -> Error:
    """The error for a statement or clause whose meaning is not built yet."""
    return sql_error(StatusCode.UNSUPPORTED, f"{what} is not supported yet", position)

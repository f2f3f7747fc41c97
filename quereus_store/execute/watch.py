"""Stopping a statement while it runs: ``Connection.interrupt`` and progress handlers.

Generated programs pass the batches that they read (of tables, ranges, table functions and recursions)
through :meth:`Watch.over`, so a statement comes by here once in about a thousand rows.  What is raised
there is an error of the statement like any other: a query ends, a change is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error

ProgressHandler = Callable[[], Any]


class Watch:
    """What a session looks at while it reads; ``active`` says that there is anything to do.

    :meth:`interrupt` may be called by any thread, all else is for the session's own.
    """

    __slots__ = ("_every", "_handler", "_rows", "active", "interrupted")

    def __init__(self) -> None:
        self.active = False
        self.interrupted = False
        self._handler: ProgressHandler | None = None
        self._every = 0
        self._rows = 0

    def interrupt(self) -> None:
        """Let what runs, or is still being read, fail at its next step."""
        self.interrupted = True
        self.active = True

    def rearm(self) -> None:
        """A new statement begins: an interruption was not meant for it."""
        self.interrupted = False
        self.active = self._handler is not None

    def set_handler(self, handler: ProgressHandler | None, every: int) -> None:
        """Call ``handler`` about every so many rows; None, or less than one row, for no handler."""
        self._handler = handler if every > 0 else None
        self._every = every
        self._rows = 0
        self.active = self.interrupted or self._handler is not None

    def step(self, rows: int) -> None:
        """So many rows have been read; raises INTERRUPT where the statement is to end."""
        if self.interrupted:
            raise _interrupted()
        handler = self._handler
        if handler is None:
            return
        self._rows += rows
        if self._rows < self._every:
            return
        self._rows = 0
        # The handler may itself run statements: these are not for it to watch.
        self._handler = None
        try:
            stop = handler()
        except Exception as failure:
            raise _interrupted() from failure
        finally:
            self._handler = handler
        if stop:
            raise _interrupted()

    def over(self, batches: Iterable[list[Any]]) -> Iterable[list[Any]]:
        """The batches, with a step for each; a tuple of them, all read already, passes as it is."""
        if type(batches) is not tuple:
            return self._watched(batches)
        if self.active:
            for batch in batches:
                self.step(len(batch))
        return batches

    def _watched(self, batches: Iterable[list[Any]]) -> Iterator[list[Any]]:
        for batch in batches:
            if self.active:
                self.step(len(batch))
            yield batch


def _interrupted() -> Error:
    return sql_error(StatusCode.INTERRUPT, "interrupted")


IDLE = Watch()
"""The watch of programs that run for no session; nobody interrupts it."""

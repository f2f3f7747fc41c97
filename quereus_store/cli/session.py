"""A session: one connection, how to show results, and running statements with error reports.

The shell, ``quereus run`` and piped input are all this class; they differ in where the text comes
from and in whether an error ends the run.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from quereus_store.cli.diagnostics import report
from quereus_store.cli.results import MODES, fetch_rows
from quereus_store.cli.statements import Statement, split_statements
from quereus_store.errors import Error

if TYPE_CHECKING:
    from quereus_store import Connection


class Session:
    """Runs statements on a connection and prints what they return."""

    def __init__(
        self,
        connection: Connection,
        *,
        mode: str = "table",
        limit: int = 0,
        timer: bool = False,
        output: TextIO | None = None,
        errors: TextIO | None = None,
    ) -> None:
        self.connection = connection
        self.mode = mode
        self.limit = limit
        self.timer = timer
        self.output = output or sys.stdout
        self.errors = errors or sys.stderr

    def execute(self, statement: Statement, name: str = "") -> bool:
        """Run one statement, print its rows or its error; false when it failed."""
        started = time.perf_counter()
        try:
            cursor = self.connection.execute(statement.text)
            if cursor.description:
                names = [column[0] for column in cursor.description]
                MODES[self.mode](self.output, names, fetch_rows(cursor), self.limit)
            cursor.close()
        except Error as error:
            # What was printed so far belongs before the error on a terminal.
            self.output.flush()
            report(
                error,
                self.errors,
                text=statement.text,
                name=name,
                line=statement.line,
                column=statement.column,
            )
            return False
        if self.timer:
            print(f"{(time.perf_counter() - started) * 1000:.1f} ms", file=self.output)
        return True

    def run_script(self, text: str, name: str = "") -> bool:
        """Run the statements of a script until one fails; false when one did."""
        return all(self.execute(statement, name) for statement in split_statements(text))

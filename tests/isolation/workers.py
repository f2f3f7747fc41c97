"""Other processes at work on a file: ``python -m tests.isolation.workers PATH`` runs what it is sent.

A request is a line of JSON, ``[sql, parameters]``; the answer is one, too: ``{"rows": …}`` or
``{"error": code, "message": …}``.  So a test holds transactions open in two processes and decides
itself in which order they do what.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quereus_store
from quereus_store.errors import Error, StatusCode

ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Worker:
    """Another process with a connection, used as if it were one."""

    process: subprocess.Popen[str]

    def send(self, sql: str, *parameters: Any) -> None:
        """Let it begin with a statement."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([sql, parameters]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[tuple[Any, ...]]:
        """The rows of what was sent; raises the error that it met there."""
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise quereus_store.errors.sql_error(StatusCode[answer["error"]], answer["message"])
        return list(map(tuple, answer["rows"]))

    def run(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement there and wait for it."""
        self.send(sql, *parameters)
        return self.answer()

    def end(self) -> None:
        """Let it close its connection and end."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


def start(path: Path, timeout: float) -> Worker:
    """Start a process that has the database open once this returns."""
    command = [sys.executable, "-m", "tests.isolation.workers", str(path), str(timeout)]
    pipe = subprocess.PIPE
    worker = Worker(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
    assert worker.run("select 1") == [(1,)]
    return worker


def main(path: str, timeout: str) -> None:
    """Answer requests until there are no more."""
    with quereus_store.connect(path, timeout=float(timeout), synchronous="off") as connection:
        for line in sys.stdin:
            sql, parameters = json.loads(line)
            try:
                answer: dict[str, Any] = {"rows": connection.execute(sql, parameters).fetchall()}
            except Error as error:
                answer = {"error": error.code.name, "message": error.message}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

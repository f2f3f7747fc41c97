"""Processes to be killed: ``python -m tests.crash.writers`` makes one for each line that it reads.

A line names a job, a backend, a setting of ``synchronous``, a path and the number to start with.  The job
runs in a forked child, so that a kill costs no start of an interpreter.  Both write to the same pipe:
``begun PID``, then ``done N`` once step ``N`` is committed, and ``dead`` when the child is gone.  The forking
process itself never opens a database.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import quereus_store
from quereus_store.store import building
from tests.crash import bank, reshaping

OPTIONS: Mapping[str, Mapping[str, int]] = {"lmdb": {}, "leveldb": {"write_buffer_size": 2**16}}
"""With a small buffer LevelDB writes and compacts files all the time, so kills come in the middle of it."""


def tell(*words: object) -> None:
    """One line, in one write that cannot be torn."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def keep_books(connection: quereus_store.Connection, number: int) -> None:
    """Step after step of the bank, for ever."""
    content = bank.content_after(number)
    tell("begun", os.getpid())
    while True:
        statements = bank.take_step(content, number)
        if len(statements) == 1:
            statements[0].run(connection)
        else:
            with connection.transaction():
                for statement in statements:
                    statement.run(connection)
        number += 1
        tell("done", number)


def reshape(connection: quereus_store.Connection, number: int) -> None:
    """Schema change after schema change, for ever."""
    tell("begun", os.getpid())
    while True:
        reshaping.change(connection, number)
        number += 1
        tell("done", number)


def reshape_and_die(connection: quereus_store.Connection, number: int) -> None:
    """The schema change that the number names, until the write to the storage that it names.

    The number is the change times a thousand and the count of the writes that are still made.
    Indexes are built in many small runs, so that there is a middle to die in.
    """
    change, left = divmod(number, 1000)
    building.ENTRIES_AT_ONCE = 500
    with connection.transaction():
        connection.execute("delete from made where change < 0")
        transaction = connection.session.transaction
        assert transaction is not None
        writer = type(transaction.writer("store").kv)
    writes = itertools.count()

    def dying(method: Callable[..., object]) -> Callable[..., object]:
        def write(*arguments: object, **options: object) -> object:
            if next(writes) == left:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*arguments, **options)

        return write

    for name in ("put", "put_many", "insert_many", "delete_range", "commit"):
        setattr(writer, name, dying(getattr(writer, name)))
    tell("begun", os.getpid())
    reshaping.change(connection, change)
    tell("done", next(writes))
    os._exit(0)


JOBS: Mapping[str, Callable[[quereus_store.Connection, int], None]] = {
    "keep_books": keep_books,
    "reshape": reshape,
    "reshape_and_die": reshape_and_die,
}


class InAttached:
    """A connection to which the bank is attached: what defines something names the database."""

    def __init__(self, connection: quereus_store.Connection) -> None:
        self.executemany = connection.executemany
        self.transaction = connection.transaction
        self._execute = connection.execute

    def execute(self, sql: str, parameters: object = ()) -> object:
        """Run a statement."""
        return self._execute(sql.replace(" index ", " index bank."), parameters)


def keep_attached_books(backend: str, synchronous: str, path: str, number: int) -> None:
    """Step after step of a bank that is attached to a database in memory."""
    connection = quereus_store.connect()
    options = "".join(f", {name} = {value}" for name, value in OPTIONS[backend].items())
    connection.execute(
        f"attach ? as bank (backend = {backend}, synchronous = {synchronous}{options})", (path,)
    )
    attached: Any = InAttached(connection)
    keep_books(attached, number)


def work(job: str, backend: str, synchronous: str, path: str, number: str) -> None:
    """What a child does until it is killed."""
    if job == "keep_attached_books":
        keep_attached_books(backend, synchronous, path, int(number))
    connection = quereus_store.connect(path, backend=backend, synchronous=synchronous, **OPTIONS[backend])
    JOBS[job](connection, int(number))


def main() -> None:
    """Fork a child for each line; wait for its end before the next."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                work(*line.split())
            except BaseException as error:
                tell("failed", type(error).__name__, error)
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        tell("dead")


if __name__ == "__main__":
    main()

"""A writer is killed at random moments: what it was told is committed is there, nothing is half done."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

import quereus_store
from quereus_store.cli.checking import check_database
from tests.crash import bank, reshaping

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


@dataclass(slots=True)
class Nursery:
    """The process that forks writers, seen from the test."""

    process: subprocess.Popen[bytes]
    _read: bytes = b""
    _lines: list[str] = field(default_factory=list)

    def line(self, deadline: float | None = None) -> str | None:
        """The next line; None when the moment comes first."""
        assert self.process.stdout is not None
        while not self._lines:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                return None
            read = os.read(self.process.stdout.fileno(), 65536)
            assert read, "the process that forks writers has ended"
            *lines, self._read = (self._read + read).split(b"\n")
            self._lines += [line.decode() for line in lines]
        return self._lines.pop(0)

    def let_die(self, job: str, backend: str, path: Path, number: int) -> int | None:
        """Let a writer work until it kills itself (None), or does not and tells a number."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{job} {backend} normal {path} {number}\n".encode())
        self.process.stdin.flush()
        begun = self.line()
        assert begun is not None
        assert begun.startswith("begun"), begun
        told = None
        while (line := self.line()) != "dead":
            told = _told(line)
        return told

    def kill_one(self, job: str, backend: str, path: Path, number: int, dice: Random) -> int:
        """Let a writer take up to a dozen steps, kill it within the next; the last number that it told of.

        How far within is a part of the time that a step took, however fast the machine is.
        """
        assert self.process.stdin is not None
        synchronous = dice.choice(["full", "normal", "off"])
        self.process.stdin.write(f"{job} {backend} {synchronous} {path} {number}\n".encode())
        self.process.stdin.flush()
        begun = self.line()
        assert begun is not None
        assert begun.startswith("begun"), begun
        try:
            step, moment = 0.01, time.monotonic()
            for _ in range(dice.randrange(12)):
                number = _told(self.line())
                step, moment = time.monotonic() - moment, time.monotonic()
            deadline = moment + dice.uniform(0, 1.5) * step
            while (line := self.line(deadline)) is not None:
                number = _told(line)
        finally:
            os.kill(int(begun.split()[1]), signal.SIGKILL)
        while (line := self.line()) != "dead":
            number = _told(line)
        return number


def _told(line: str | None) -> int:
    assert line is not None
    word, number = line.split(maxsplit=1)
    assert word == "done", line
    return int(number)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.crash.writers"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def in_order(connection: quereus_store.Connection, thoroughly: bool) -> None:
    """Indexes agree with rows, counts with both, nothing is left over; thoroughly: constraints hold, too."""
    assert connection.database.problems == ()
    assert connection.database.check() == []
    if thoroughly:
        report = io.StringIO()
        assert check_database(connection, report), report.getvalue()


def indexes(connection: quereus_store.Connection) -> set[str]:
    return {row[0] for row in connection.execute("select name from schema() where type = 'index'").fetchall()}


# --- rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_killed_writer_loses_nothing(
    backend: str, nursery: Nursery, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kill_and_compare("keep_books", backend, nursery, tmp_path / "bank", pytestconfig)


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_nor_does_one_to_whose_database_the_file_is_attached(
    backend: str, nursery: Nursery, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kill_and_compare("keep_attached_books", backend, nursery, tmp_path / "bank", pytestconfig)


def kill_and_compare(
    job: str, backend: str, nursery: Nursery, path: Path, pytestconfig: pytest.Config
) -> None:
    """Kill a writer again and again; after each time what it was told is there, and no half step."""
    dice = Random(backend)
    with quereus_store.connect(path, backend=backend) as connection:
        connection.executescript(bank.SCHEMA)
    content, steps = bank.Content(), 0
    for round_ in range(600 if pytestconfig.getoption("--long") else 14):
        acknowledged = nursery.kill_one(job, backend, path, steps, dice)
        while steps < acknowledged:
            bank.take_step(content, steps)
            steps += 1
        with quereus_store.connect(path, backend=backend) as connection:
            if not holds(connection, content):
                # The last commit may have been made without having been told.
                bank.take_step(content, steps)
                steps += 1
                compare(connection, content)
            in_order(connection, thoroughly=round_ % 7 == 6)
    assert steps > 14


def holds(connection: quereus_store.Connection, content: bank.Content) -> bool:
    return stored(connection) == content.tables() and ("by_amount" in indexes(connection)) == content.indexed


def compare(connection: quereus_store.Connection, content: bank.Content) -> None:
    assert stored(connection) == content.tables()
    assert ("by_amount" in indexes(connection)) == content.indexed


def stored(connection: quereus_store.Connection) -> dict[str, list[tuple[object, ...]]]:
    keys = {"account": "id", "entry": "step, line", "document": "name", "wealth": "owner"}
    return {
        table: connection.execute(f"select * from {table} order by {key}").fetchall()
        for table, key in keys.items()
    }


# --- schema changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_schema_change_is_made_or_not(
    backend: str, nursery: Nursery, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    path, dice = tmp_path / "items", Random(backend)
    with quereus_store.connect(path, backend=backend) as connection:
        reshaping.fill(connection)
    changes = 0
    for round_ in range(400 if pytestconfig.getoption("--long") else 8):
        acknowledged = nursery.kill_one("reshape", backend, path, changes, dice)
        with quereus_store.connect(path, backend=backend) as connection:
            made = connection.execute("select change from made order by change").fetchall()
            changes = len(made)
            assert changes in (acknowledged, acknowledged + 1)
            assert made == [(number,) for number in range(changes)]
            assert shape_of(connection, reshaping.shape(changes)[0]) == reshaping.shape(changes)
            in_order(connection, thoroughly=round_ % 7 == 6)
    assert changes > 8


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_killed_while_rows_are_rewritten(
    backend: str, nursery: Nursery, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Every schema change in turn, over rows of many batches, killed at its n-th write to the storage."""
    path, dice, rows = tmp_path / "items", Random(backend), 1500
    attempts = 20 if pytestconfig.getoption("--long") else 1
    with quereus_store.connect(path, backend=backend) as connection:
        reshaping.fill(connection, rows)
    deaths = change = 0
    while change < len(reshaping.CHANGES):
        # The last attempt has more writes than any change makes.
        for moment in (*(dice.randrange(16) for _ in range(attempts)), 999):
            survived = nursery.let_die("reshape_and_die", backend, path, change * 1000 + moment) is not None
            change += survived
            deaths += not survived
            expected = reshaping.shape(change, rows)
            with quereus_store.connect(path, backend=backend) as connection:
                assert shape_of(connection, expected[0]) == expected
                if not survived or change % 5 == 0:
                    in_order(connection, thoroughly=survived)
            if survived:
                break
    assert deaths > 5


def shape_of(
    connection: quereus_store.Connection, table: str
) -> tuple[str, tuple[str, ...], set[str], list[tuple[object, ...]]]:
    cursor = connection.execute(f"select * from {table} order by id")
    columns = tuple(column[0] for column in cursor.description or ())
    return table, columns, indexes(connection), cursor.fetchall()

"""Running a history in SQLite and in Quereus, and comparing after each step."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quereus_store
from tests.differential.choices import Choices
from tests.differential.comparing import Difference, Rows, normalized
from tests.differential.modifications import INDEXES, TABLES, Histories, Step, schema
from tests.differential.worlds import sqlite_connection


@dataclass(frozen=True)
class Outcome:
    """What a step did: failed or not, rows changed, rows returned (sorted)."""

    failed: bool
    count: int = -1
    returned: tuple[Any, ...] = ()


def run_history(choices: Choices, folder: Path | None, backends: tuple[str, ...] = ("memory",)) -> None:
    """One random history on every backend; raises :class:`Difference` at the first disagreement."""
    sqlite = sqlite_connection()
    for statement in schema("sqlite"):
        sqlite.execute(statement)
    paths = {
        backend: ":memory:" if backend == "memory" else str((folder or Path()) / f"{backend}.qdb")
        for backend in backends
    }
    options = {backend: {} if backend == "memory" else {"backend": backend} for backend in backends}
    connections = {b: quereus_store.connect(paths[b], **options[b]) for b in backends}  # type: ignore[arg-type]
    log: list[str] = []
    try:
        indexes = [index for index in INDEXES if choices.chance(60)]
        for connection in connections.values():
            for statement in [*schema("quereus"), *indexes]:
                connection.execute(statement)
        histories = Histories(choices)
        followed = True
        for _ in range(2 + choices.below(24)):
            step = histories.step()
            log.append(f"{step.quereus} {step.parameters or ''}{step.rows or ''}")
            followed = _compare_step(sqlite, connections, step, log)
            if not followed:
                break
            if not sqlite.in_transaction and histories.in_transaction:
                histories.ended()
        for backend, connection in connections.items():
            connection.rollback()
            findings = connection.database.check() if backend != "memory" else []
            if findings:
                raise Difference(f"{backend}: {findings}\n" + "\n".join(log))
        if sqlite.in_transaction:
            sqlite.execute("rollback")
        for backend in backends:
            connections[backend].close()
            if backend != "memory":
                connections[backend] = quereus_store.connect(paths[backend], **options[backend])  # type: ignore[arg-type]
                if followed:
                    _compare_tables(sqlite, connections[backend], f"{backend}, reopened", log)
    finally:
        for connection in connections.values():
            connection.close()
        sqlite.close()


def _compare_step(
    sqlite: sqlite3.Connection, connections: dict[str, quereus_store.Connection], step: Step, log: list[str]
) -> bool:
    """Run and compare one step; False where SQLite cannot be followed."""
    expected = _sqlite_outcome(sqlite, step)
    if expected.failed and step.sqlite.startswith("update or replace"):
        # SQLite may take the row that moves for one in its own way.
        return False
    for label, connection in connections.items():
        actual = _outcome(connection, step, label, log)
        if actual.failed != expected.failed or (
            not expected.failed
            and (actual.returned != expected.returned or -1 not in (actual.count, expected.count))
            and actual != expected
        ):
            raise Difference(f"{label}: {actual} instead of {expected}\n" + "\n".join(log))
        if connection.in_transaction != sqlite.in_transaction:
            raise Difference(f"{label}: in transaction {connection.in_transaction}\n" + "\n".join(log))
        _compare_tables(sqlite, connection, label, log)
    return True


def _sqlite_outcome(sqlite: sqlite3.Connection, step: Step) -> Outcome:
    try:
        if step.rows is not None:
            return Outcome(False, _executemany(sqlite, step))
        cursor = sqlite.execute(step.sqlite, step.parameters)
        returned = cursor.fetchall()
        return Outcome(False, -1 if step.types else cursor.rowcount, _sorted(returned, step))
    except sqlite3.Error as error:
        if step.sqlite == "commit":
            sqlite.execute("rollback")
        if not isinstance(error, sqlite3.IntegrityError):
            raise
        return Outcome(True)


def _executemany(sqlite: sqlite3.Connection, step: Step) -> int:
    """All rows or none, as one statement."""
    alone = not sqlite.in_transaction
    sqlite.execute("savepoint many")
    try:
        count = sqlite.executemany(step.sqlite, step.rows or ()).rowcount
        sqlite.execute("release many")
    except sqlite3.Error:
        if alone and " or fail" not in step.sqlite:
            sqlite.execute("rollback")
        elif " or fail" not in step.sqlite:
            sqlite.execute("rollback to many")
            sqlite.execute("release many")
        else:
            sqlite.execute("release many")
        raise
    return count


def _outcome(connection: quereus_store.Connection, step: Step, label: str, log: list[str]) -> Outcome:
    try:
        if step.rows is not None:
            return Outcome(False, connection.executemany(step.quereus, step.rows).rowcount)
        cursor = connection.execute(step.quereus, step.parameters)
        count = -1 if step.types else cursor.rowcount
        return Outcome(False, count, _sorted(cursor.fetchall(), step))
    except quereus_store.IntegrityError:
        return Outcome(True)
    except Exception as error:
        raise Difference(f"{label}: {type(error).__name__}: {error}\n" + "\n".join(log)) from error


def _sorted(rows: Rows, step: Step) -> tuple[Any, ...]:
    return tuple(sorted(normalized(rows, step.types), key=repr))


def _compare_tables(
    sqlite: sqlite3.Connection, connection: quereus_store.Connection, label: str, log: list[str]
) -> None:
    for table in TABLES:
        order = ", ".join(str(index + 1) for index in range(len(table.key)))
        sql = f"select * from {table.name} order by {order}"
        wanted, got = sqlite.execute(sql).fetchall(), connection.execute(sql).fetchall()
        if wanted != got:
            raise Difference(f"{label}: {table.name} is {got} instead of {wanted}\n" + "\n".join(log))

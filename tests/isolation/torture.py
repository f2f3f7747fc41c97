"""Workers that fight for keys: ``python -m tests.isolation.torture PATH CONTEST SEED STEPS PROCESS THREADS``.

A contest is a schema, transactions picked by dice, and queries that must find nothing, whatever the
workers do and whenever they are asked.  Keys are few, so that workers meet each other all the time: most
of what they try is refused, and a refusal must leave nothing behind.

Every transaction notes itself in ``journal`` with the number of rows that it added to each table.  So at the
end it can be told that whatever was committed is there once, and whatever was refused is not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType

import quereus_store
from quereus_store import Connection, IntegrityError, OperationalError
from quereus_store.errors import StatusCode

JOURNAL = "create table journal (worker text, step integer, added integer, primary key (worker, step));"
_KEYS = 12

Statement = tuple[str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Contest:
    """What is fought over: ``violations`` are queries without rows; ``tables`` are counted."""

    schema: str
    tables: tuple[str, ...]
    move: Callable[[Random], Statement]
    violations: Mapping[str, str]


def _foreign_key_move(dice: Random) -> Statement:
    key, other = dice.randrange(_KEYS), dice.randrange(_KEYS)
    null_or_key = dice.choice([None, other])
    moves: tuple[Statement, ...] = (
        ("insert into team values (?, ?)", (key, f"code {key}")),
        ("insert into person values (?, ?, ?)", (dice.randrange(3 * _KEYS), other, null_or_key)),
        ("insert into badge values (?, ?, ?)", (dice.randrange(3 * _KEYS), other, f"code {key}")),
        ("update team set id = ? where id = ?", (key, other)),
        ("update team set code = ? where id = ?", (f"code {key}", other)),
        ("update person set team = ?, boss = ? where id = ?", (key, null_or_key, other)),
        ("update person set id = id + 100 where team = ?", (key,)),
        ("delete from team where id = ?", (key,)),
        ("delete from person where team = ? or boss = ?", (key, other)),
        ("delete from badge where person between ? and ?", (key, key + 3)),
        ("insert or replace into team values (?, ?)", (key, f"code {other}")),
    )
    return dice.choice(moves)


def _unique_move(dice: Random) -> Statement:
    key, other = dice.randrange(3 * _KEYS), dice.randrange(_KEYS)
    name = dice.choice(["Ann", "ann", "BO", "bo", "Cy", None]) and f"{dice.choice('aAbB')}{other}"
    row = (key, name, dice.choice([None, other]), dice.randrange(3), dice.choice(["on", "off"]))
    moves: tuple[Statement, ...] = (
        ("insert into item values (?, ?, ?, ?, ?)", row),
        ("insert or ignore into item values (?, ?, ?, ?, ?)", row),
        ("insert or replace into item values (?, ?, ?, ?, ?)", row),
        ("insert into item values (?, ?, ?, ?, ?) on conflict (id) do update set a = excluded.a", row),
        ("insert into item values (?, ?, ?, ?, ?) on conflict do nothing", row),
        ("update item set name = ? where id = ?", (name, key)),
        ("update item set a = ?, b = ? where id = ?", (row[2], row[3], key)),
        ("update item set state = ? where a = ?", (row[4], other)),
        ("update item set id = ? where id = ?", (key, other)),
        ("update item set a = a + 1 where b = ?", (row[3],)),
        ("delete from item where a = ? or id = ?", (other, key)),
    )
    return dice.choice(moves)


CONTESTS: Mapping[str, Contest] = MappingProxyType(
    {
        "foreign keys": Contest(
            """
            create table team (id integer primary key, code text unique);
            create table person (
                id integer primary key,
                team integer null references team (id) on delete cascade on update cascade,
                boss integer null references person (id) on delete set null on update cascade
            );
            create index person_team on person (team);
            create table badge (
                id integer primary key,
                person integer references person (id) on update cascade,
                code text null references team (code) on delete set null on update cascade
            );
            create index badge_code on badge (code, person);
            """,
            ("team", "person", "badge"),
            _foreign_key_move,
            MappingProxyType(
                {
                    "a person of no team": "select id from person as p where team is not null "
                    "and not exists (select 1 from team as t where t.id = p.team)",
                    "a boss who is not there": "select p.id from person as p left join person as b "
                    "on b.id = p.boss where p.boss is not null and b.id is null",
                    "a badge of nobody": "select id from badge where person not in (select id from person)",
                    "a badge of no team": "select id from badge where code is not null "
                    "and code not in (select code from team)",
                }
            ),
        ),
        "unique": Contest(
            """
            create table item (
                id integer primary key,
                name text null collate nocase unique,
                a integer null, b integer, state text,
                unique (a, b)
            );
            create unique index one_on on item (b) where state = 'on';
            create index by_state on item (state, a);
            """,
            ("item",),
            _unique_move,
            MappingProxyType(
                {
                    "one name twice": "select lower(name) from item where name is not null "
                    "group by lower(name) having count(*) > 1",
                    "one pair twice": "select a, b from item where a is not null "
                    "group by a, b having count(*) > 1",
                    "two that are on": "select b from item where state = 'on' group by b having count(*) > 1",
                    "an index that has less": "select 1 where (select count(*) from item) "
                    "<> (select count(*) from item where state in ('on', 'off'))",
                }
            ),
        ),
    }
)


def attempt(connection: Connection, contest: Contest, worker: str, step: int, dice: Random) -> bool:
    """One transaction of a few moves; whether it was committed."""
    moves = [contest.move(dice) for _ in range(dice.randrange(1, 4))]
    doubts = dice.random() < 0.3
    try:
        with connection.transaction():
            connection.execute("insert into journal values (?, ?, 0)", (worker, step))
            before = count(connection, contest)
            if doubts:
                connection.execute("savepoint doubt")
                _try(connection, *contest.move(dice))
                connection.execute("rollback to doubt")
                assert count(connection, contest) == before
            for sql, parameters in moves:
                _try(connection, sql, parameters)
            added = count(connection, contest) - before
            note = "update journal set added = ? where worker = ? and step = ?"
            connection.execute(note, (added, worker, step))
    except IntegrityError:
        return False
    except OperationalError as error:
        if error.code is not StatusCode.BUSY:
            raise
        return False
    return True


def _try(connection: Connection, sql: str, parameters: tuple[object, ...]) -> None:
    """A statement that is refused leaves the transaction as it was."""
    try:
        connection.execute(sql, parameters)
    except IntegrityError:
        assert connection.in_transaction


def count(connection: Connection, contest: Contest) -> int:
    """The rows of all tables together."""
    counts = " + ".join(f"(select count(*) from {table})" for table in contest.tables)
    return int(connection.execute(f"select {counts}").fetchone()[0])


def violations(connection: Connection, contest: Contest) -> dict[str, list[tuple[object, ...]]]:
    """What one snapshot has that must not be, and the sum of the journal against the rows."""
    with connection.transaction():
        found = {
            name: rows
            for name, sql in contest.violations.items()
            if (rows := connection.execute(sql).fetchall())
        }
        total = connection.execute("select coalesce(sum(added), 0) from journal").fetchone()[0]
        if total != count(connection, contest):
            found["rows that nobody added"] = [(total, count(connection, contest))]
    return found


def fight(path: Path, contest: Contest, worker: str, seed: str, steps: int) -> list[int]:
    """The work of one thread, which looks for violations between its own steps; the steps committed."""
    dice = Random(f"{seed} {worker}")
    committed = []
    with quereus_store.connect(path, timeout=120.0, synchronous="off") as connection:
        for step in range(steps):
            if attempt(connection, contest, worker, step, dice):
                committed.append(step)
            if step % 5 == 4:
                found = violations(connection, contest)
                assert not found, found
    return committed


def fight_together(
    path: Path, contest: Contest, names: list[str], seed: str, steps: int
) -> dict[str, list[int]]:
    """All threads of one process; raises the first failure of any."""
    committed: dict[str, list[int]] = {}
    failures: list[BaseException] = []

    def work(worker: str) -> None:
        try:
            committed[worker] = fight(path, contest, worker, seed, steps)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return committed


def main(path: str, contest: str, seed: str, steps: str, process: str, threads: str) -> None:
    """One process of a fight; prints a line for each thread: its name and the steps it was told are there."""
    names = [f"{process}.{thread}" for thread in range(int(threads))]
    told = fight_together(Path(path), CONTESTS[contest], names, seed, int(steps))
    for name, committed in told.items():
        print(name, *committed)


if __name__ == "__main__":
    main(*sys.argv[1:])

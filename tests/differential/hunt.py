"""Hunt for differences: ``python -m tests.differential.hunt KIND --seed 0 --count 1000``.

Every difference is made as small as it gets and printed with the seed that gives it.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.differential import exotic, worlds
from tests.differential.choices import Choices, shrink
from tests.differential.comparing import Difference, check_own_query, check_query
from tests.differential.correlated import Correlated
from tests.differential.exotic import ExoticQueries
from tests.differential.extended import ExtendedQueries
from tests.differential.histories import run_history
from tests.differential.joining import Joining
from tests.differential.queries import Queries
from tests.differential.seeks import Seeks
from tests.differential.worlds import World, open_world

Check = Callable[[World, Choices], bool]


def check_random_query(world: World, choices: Choices) -> bool:
    """One random query."""
    return check_query(world, Queries(choices).query())


def check_extended_query(world: World, choices: Choices) -> bool:
    """One random query of those that SQLite does not have."""
    check_own_query(world, ExtendedQueries(choices).query())
    return True


def check_exotic_query(world: World, choices: Choices) -> bool:
    """One random query over columns of all types."""
    check_own_query(world, ExoticQueries(choices).query())
    return True


def check_seek(world: World, choices: Choices) -> bool:
    """One query that invites the use of indexes."""
    return check_query(world, Seeks(choices, worlds.TABLES, worlds.VALUES, {}, world.rows).query())


def check_correlated(world: World, choices: Choices) -> bool:
    """One query with subqueries that depend on the outer row."""
    return check_query(world, Correlated(choices, worlds.TABLES, worlds.VALUES, {}, world.rows).query())


def check_joining(world: World, choices: Choices) -> bool:
    """One query over several tables."""
    return check_query(world, Joining(choices, worlds.TABLES, worlds.VALUES, {}, world.rows).query())


def check_exotic_seek(world: World, choices: Choices) -> bool:
    """The same over columns of all types."""
    values = {**worlds.VALUES, **exotic.VALUES}
    seeks = Seeks(choices, exotic.TABLES, values, exotic.LITERALS, world.rows, mixed=True)
    check_own_query(world, seeks.query())
    return True


CHECKS: dict[str, Check] = {
    "correlated": check_correlated,
    "joining": check_joining,
    "seek": check_seek,
    "exotic seek": check_exotic_seek,
    "query": check_random_query,
    "extended": check_extended_query,
    "exotic": check_exotic_query,
}


def hunt_histories(seed: int, count: int, durable: bool, limit: int) -> int:
    """Random histories of changes."""
    found = 0
    backends = ("memory", "lmdb", "leveldb") if durable else ("memory",)

    def attempt(choices: Choices) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_history(choices, Path(folder), backends)

    for number in range(seed, seed + count):
        choices = Choices(number)
        try:
            attempt(choices)
        except Difference as error:
            found += 1
            print(f"--- history {number}")
            smallest = minimal(attempt, choices.recorded, error)
            print(smallest, flush=True)
            if found >= limit:
                break
    print(f"{count} done, {found} differences")
    return found


def minimal(attempt: Callable[[Choices], object], recorded: Sequence[int], error: Difference) -> Difference:
    """The difference of the smallest list of choices that still makes one, found within a minute."""
    smallest = error
    until = time.monotonic() + 60

    def fails(candidate: Sequence[int]) -> bool:
        nonlocal smallest
        if time.monotonic() > until:
            return False
        try:
            attempt(Choices(replay=candidate))
        except Difference as again:
            smallest = again
            return True
        except (IndexError, sqlite3.Error):
            return False
        return False

    shrink(recorded, fails)
    return smallest


def first_line(error: BaseException) -> str:
    return str(error).split("\n")[0]


def hunt(check: Check, seed: int, count: int, per_world: int, durable: bool, limit: int, wide: bool) -> int:
    found = 0
    refused = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(0, count, per_world):
            world_seed = seed + number
            path = Path(folder) / str(world_seed) if durable else None
            choices = Choices(world_seed)
            if check in (check_exotic_query, check_exotic_seek):
                world = exotic.open_world(choices, path, (40, 200, 600) if wide else (0, 5, 12, 30))
            else:
                world = open_world(choices, path, (40, 200, 1500) if wide else (0, 3, 6, 9, 14), wide)
            for query_seed in range(world_seed, world_seed + per_world):
                choices = Choices(query_seed)
                try:
                    refused += not check(world, choices)
                except Difference as error:
                    found += 1
                    report(check, world, world_seed, query_seed, choices.recorded, error)
                    if found >= limit:
                        return found
            world.close()
    print(
        f"{count} done, {found} differences, {refused} without comparison, {time.monotonic() - started:.0f} s"
    )
    return found


def report(
    check: Check, world: World, world_seed: int, query_seed: int, recorded: Sequence[int], error: Difference
) -> None:
    print(f"--- world {world_seed}, query {query_seed}, indexes {list(world.indexes)}")
    print(minimal(lambda choices: check(world, choices), recorded, error), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*sorted(CHECKS), "history"], nargs="?", default="query")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--world", type=int, default=50, help="queries per database")
    parser.add_argument("--durable", action="store_true", help="on LMDB and LevelDB as well")
    parser.add_argument("--wide", action="store_true", help="tables of up to 1500 rows")
    parser.add_argument("--limit", type=int, default=5, help="stop after so many differences")
    given = parser.parse_args()
    if given.kind == "history":
        hunt_histories(given.seed, given.count, given.durable, given.limit)
        return
    hunt(CHECKS[given.kind], given.seed, given.count, given.world, given.durable, given.limit, given.wide)


if __name__ == "__main__":
    main()

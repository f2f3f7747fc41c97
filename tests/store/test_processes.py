"""Crashes and company: a killed writer, several processes on one file."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.schema.objects import TableSchema
from quereus_store.store.check import check_store
from tests.store.processes import KEPT, LAST, LOG, content, make, opened, schemas
from tests.store.support import all_rows, flat, reading, writing

ROOT = Path(__file__).parents[2]


def start(job: str, backend: str, path: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.store.processes", job, backend, str(path), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    process.communicate(timeout=60)
    assert process.returncode == 0


def rounds(config: pytest.Config) -> int:
    """How often the writer is killed: ``--long`` or QUEREUS_LONG ask for more."""
    return 60 if config.getoption("--long", default=False) or os.environ.get("QUEREUS_LONG") else 6


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_killed_writer_loses_nothing(backend: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path = tmp_path / "crash"
    module = opened(backend, str(path))
    make(module, LOG, LAST)
    module.close()
    dice = random.Random(backend)
    for _ in range(rounds(pytestconfig)):
        acknowledged = kill_after(start("write_for_ever", backend, path), dice)
        assert commits_found(backend, path) in (acknowledged, acknowledged + 1)


def kill_after(process: subprocess.Popen[bytes], dice: random.Random) -> int:
    """Let a writer do some commits, kill it within the next; the number of the last it told of."""
    assert process.stdout is not None
    told = int(process.stdout.readline().split()[1])
    for _ in range(dice.choice([0, 1, 2, KEPT, 2 * KEPT])):
        told = int(process.stdout.readline().split()[1])
    # The kill falls on any moment of a commit, not on the one just after telling.
    select.select([], [], [], dice.uniform(0, 0.004))
    process.kill()
    lines = [line for line in process.stdout if line.endswith(b"\n")]
    process.wait(timeout=60)
    process.stdout.close()
    return int(lines[-1].split()[1]) if lines else told


def commits_found(backend: str, path: Path) -> int:
    """How many commits the database holds; all of each, none of any other."""
    module = opened(backend, str(path))
    last, log = schemas(module)
    with reading(module) as transaction:
        assert check_store(module, transaction) == []
        row = module.table(last).point(transaction, ("writer",))
        commits = 0 if row is None else row[1]
        assert flat(module.table(log).scan(transaction)) == content(commits)
    module.close()
    return int(commits)


def test_processes_count_together(tmp_path: Path) -> None:
    path = tmp_path / "shared.qdb"
    module = opened("lmdb", str(path))
    make(module, LAST)
    (last,) = schemas(module)
    with writing(module) as transaction:
        module.table(last).insert(transaction, [("counter", 0)])
    workers = [start("count_up", "lmdb", path, "40") for _ in range(3)]
    seen = [0]
    while any(worker.poll() is None for worker in workers):
        seen.append(counter(module, last))
    for worker in workers:
        finish(worker)
    assert seen == sorted(seen)
    assert all_rows(module, last) == [("counter", 120)]
    with reading(module) as transaction:
        assert check_store(module, transaction) == []
    module.close()


def counter(module: Any, last: TableSchema) -> int:
    with reading(module) as transaction:
        (row,) = flat(module.table(last).scan(transaction))
        assert module.table(last).point(transaction, ("counter",)) == row
    return int(row[1])


def test_a_schema_change_of_another_process_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "shared.qdb"
    module = opened("lmdb", str(path))
    make(module, LAST)
    (old,) = schemas(module)
    with writing(module) as transaction:
        module.table(old).insert(transaction, [("counter", 5)])
    assert all_rows(module, old) == [("counter", 5)]
    with reading(module) as before:
        version = module.catalog_version(before)
        finish(start("add_column", "lmdb", path))
        assert module.catalog_version(before) == version
        assert flat(module.table(old).scan(before)) == [("counter", 5)]
        with pytest.raises(Error) as caught:
            module.begin_write(1.0, before)
        assert caught.value.code is StatusCode.BUSY
    with reading(module) as after:
        assert module.catalog_version(after) == version + 1
        last, log = schemas(module)
        assert [column.name for column in last.columns] == ["name", "commit", "more"]
        assert log.index("by_commit") is not None
        assert flat(module.table(last).scan(after)) == [("counter", 5, 7)]
    module.close()


def test_leveldb_belongs_to_one_process(tmp_path: Path) -> None:
    module = opened("leveldb", str(tmp_path / "own"))
    make(module, LAST)
    process = start("count_up", "leveldb", tmp_path / "own", "1")
    process.communicate(timeout=60)
    assert process.returncode == 1
    module.close()

"""``synchronous``: what a commit asks of the operating system, counted in the calls that it makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CALLS = "fsync,fdatasync,msync,pwrite64,openat"
COMMITS = 5

# Looking for a file that is not there marks the beginning of a phase in the list of calls.
PROGRAM = f"""
import os
import quereus_store
for backend in ("lmdb", "leveldb"):
    for synchronous in ("default", "full", "normal", "off"):
        options = {{}} if synchronous == "default" else {{"synchronous": synchronous}}
        with quereus_store.connect(f"{{backend}}-{{synchronous}}", backend=backend, **options) as con:
            con.execute("create table t (id integer primary key)")
            for name, commits, rows in (("each", {COMMITS}, 1), ("whole", 1, 20)):
                try:
                    open(f"mark {{backend}} {{synchronous}} {{name}}")
                except OSError:
                    pass
                for number in range(commits):
                    with con.transaction():
                        for row in range(rows):
                            key = len(name) * 10_000 + number * 100 + row
                            con.execute("insert into t values (?)", (key,))
            try:
                open("mark end")
            except OSError:
                pass
"""

Flushes = dict[str, tuple[int, int]]
"""By phase: flushes of files, and writes to files that were opened to flush every write."""


@pytest.fixture(scope="module")
def flushes(tmp_path_factory: pytest.TempPathFactory) -> Flushes:
    """What one process did on all storages and at all levels; skips where calls cannot be watched."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    folder = tmp_path_factory.mktemp("traced")
    command = [strace, "-f", "--seccomp-bpf", "-o", "calls", "-e", f"trace={CALLS}"]
    if subprocess.run([*command, "true"], cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let strace watch")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, sys.executable, "-c", PROGRAM], cwd=folder, env=environment, check=True)
    return count((folder / "calls").read_text())


def count(calls: str) -> Flushes:
    """Flushes by phase."""
    counted: dict[str, list[int]] = {}
    flushing: set[str] = set()
    phase = counted.setdefault("before", [0, 0])
    for line in calls.splitlines():
        if mark := re.search(r'openat\(.*"mark (.*?)"', line):
            phase = counted.setdefault(mark.group(1), [0, 0])
        elif opened := re.search(r"openat\(.*\) = (\d+)", line):
            (flushing.add if "O_DSYNC" in line else flushing.discard)(opened.group(1))
        elif re.search(r"\b(?:fsync|fdatasync|msync)\(", line):
            phase[0] += 1
        elif (written := re.search(r"pwrite64\((\d+),", line)) and written.group(1) in flushing:
            phase[1] += 1
    return {name: (numbers[0], numbers[1]) for name, numbers in counted.items()}


@pytest.mark.parametrize(
    ("storage", "synchronous", "each"),
    [
        # LMDB flushes its pages, then writes the root through a file that flushes by itself.
        ("lmdb", "default", (1, 1)),
        ("lmdb", "full", (1, 1)),
        ("lmdb", "normal", (1, 0)),
        ("lmdb", "off", (0, 0)),
        ("leveldb", "default", (1, 0)),
        ("leveldb", "full", (1, 0)),
        ("leveldb", "normal", (0, 0)),
        ("leveldb", "off", (0, 0)),
    ],
)
def test_flushes_of_a_commit(storage: str, synchronous: str, each: tuple[int, int], flushes: Flushes) -> None:
    files, writes = each
    assert flushes[f"{storage} {synchronous} each"] == (COMMITS * files, COMMITS * writes)
    # A transaction of many rows is one commit.
    assert flushes[f"{storage} {synchronous} whole"] == each

"""Several processes with several threads each fight for the keys of one LMDB file; no constraint ever gives.

What is asserted: in every snapshot that any worker takes, no constraint is violated and the rows are as
many as the journal says; at the end every step that a worker was told is committed stands in the journal
and no other does; ``quereus check`` finds rows, indexes and constraints in order.  The seed decides what
workers try; who comes first is left to chance, which is the point.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store
from quereus_store.cli.checking import check_database
from tests.isolation.torture import CONTESTS, JOURNAL, fight_together, violations
from tests.isolation.workers import ROOT

PROCESSES, THREADS = 3, 2


@pytest.mark.parametrize("contest", CONTESTS)
def test_constraints_hold(contest: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    rounds, steps = (20, 200) if pytestconfig.getoption("--long") else (1, 12)
    for round_ in range(rounds):
        path = tmp_path / f"{round_}.qdb"
        seed = f"{contest} {round_}"
        with quereus_store.connect(path, synchronous="off") as connection:
            connection.executescript(CONTESTS[contest].schema + JOURNAL)
            told = _fight(path, contest, seed, steps)
            assert len(told) == PROCESSES * THREADS
            stored = connection.execute("select worker, step from journal").fetchall()
            assert set(stored) == {(worker, step) for worker, steps_ in told.items() for step in steps_}
            assert len(stored) > steps, "the workers only stood in each other's way"
            assert violations(connection, CONTESTS[contest]) == {}
        # Opened anew, so that nothing is answered from what this process remembers.
        with quereus_store.connect(path, synchronous="off") as connection:
            assert violations(connection, CONTESTS[contest]) == {}
            report = io.StringIO()
            assert check_database(connection, report), report.getvalue()


def _fight(path: Path, contest: str, seed: str, steps: int) -> dict[str, list[int]]:
    """Let all processes loose, one of them this one; the steps that each worker was told are committed."""
    command = [sys.executable, "-m", "tests.isolation.torture", str(path), contest, seed, str(steps)]
    processes = [
        subprocess.Popen([*command, str(number), str(THREADS)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for number in range(1, PROCESSES)
    ]
    told = fight_together(path, CONTESTS[contest], [f"0.{n}" for n in range(THREADS)], seed, steps)
    for process in processes:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        for line in output.splitlines():
            worker, *committed = line.split()
            told[worker] = list(map(int, committed))
    return told

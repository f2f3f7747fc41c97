"""Run the conformance vectors on every backend, one for each core at a time, and hold the counts.

The vectors and their runner live beside the project (``../shared``); where they are absent this
script says so and succeeds.  A failing check is one of three things:

* a listed difference (``tests/conformance/differences.toml``): the project does better on purpose;
* not built yet: counted, and held from below by ``tests/conformance/floor.toml``;
* a regression: the count fell under the floor, and the script fails.

A listed difference that holds after all is stale and fails too, so that the list stays true.

usage: check_vectors.py [--shared DIR] [--backend NAME ...] [--show N] [--raise-floor]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "tests" / "conformance"
BACKENDS = ("memory", "lmdb", "leveldb")

FLOOR_HEADER = """\
# The least number of conformance checks that hold on each backend, listed differences not counted.
# Written by `python tools/check_vectors.py --raise-floor`; it only ever goes up.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One vector that fails on purpose."""

    file: str
    line: int
    reason: str
    backends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """One check that does not hold, as the runner tells it."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the vectors say of one backend."""

    backend: str
    holds: int
    total: int
    listed: tuple[Failure, ...]
    unlisted: tuple[Failure, ...]
    stale: tuple[Difference, ...]


def read_differences(path: Path) -> list[Difference]:
    """Read the list of deliberate differences; each must name a file, lines and a reason."""
    differences: list[Difference] = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("difference", []):
        lines = entry["lines"]
        reason = entry["reason"].strip()
        if not lines or not reason:
            raise SystemExit(f"{path.name}: an entry for {entry['file']} lacks lines or a reason")
        backends = tuple(entry.get("backends", BACKENDS))
        differences += [Difference(entry["file"], line, reason, backends) for line in lines]
    return differences


def run_backend(shared: Path, backend: str) -> dict[str, dict[str, object]]:
    """Run every vector file on one backend; returns the runner's own report, by file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        runner = shared / "tools" / "run_vectors.py"
        command = [sys.executable, str(runner), str(shared / "conformance"), "--backend", backend]
        subprocess.run([*command, "--json", str(report)], check=True, stdout=subprocess.DEVNULL)
        result: dict[str, dict[str, object]] = json.loads(report.read_text(encoding="utf-8"))
        return result


def judge(backend: str, report: dict[str, dict[str, object]], differences: list[Difference]) -> Verdict:
    """Sort the failures of one backend into listed and unlisted ones."""
    expected = {(d.file, d.line): d for d in differences if backend in d.backends}
    listed: list[Failure] = []
    unlisted: list[Failure] = []
    for file, result in report.items():
        for line, why, _sql in result["bad"]:  # type: ignore[attr-defined]
            failure = Failure(file, line, why)
            (listed if (file, line) in expected else unlisted).append(failure)
    failed = {(f.file, f.line) for f in listed}
    return Verdict(
        backend,
        sum(int(r["ok"]) for r in report.values()),  # type: ignore[call-overload]
        sum(int(r["of"]) for r in report.values()),  # type: ignore[call-overload]
        tuple(listed),
        tuple(unlisted),
        tuple(d for place, d in expected.items() if place not in failed),
    )


def tell(verdict: Verdict, floor: int, show: int) -> bool:
    """Print one backend's verdict; true when it is in order."""
    print(
        f"{verdict.backend}: {verdict.holds} of {verdict.total} checks hold (floor {floor}), "
        f"{len(verdict.listed)} differ on purpose, {len(verdict.unlisted)} not yet"
    )
    by_file: dict[str, list[Failure]] = defaultdict(list)
    for failure in verdict.unlisted:
        by_file[failure.file].append(failure)
    if show:
        for file, failures in sorted(by_file.items()):
            for failure in failures[:show]:
                print(f"   {file}:{failure.line}: {failure.why[:200]}")
    for difference in verdict.stale:
        print(f"   stale: {difference.file}:{difference.line} is listed as a difference but holds")
    if verdict.holds < floor:
        print(f"   {floor - verdict.holds} checks fewer than before")
    return verdict.holds >= floor and not verdict.stale


def main() -> int:
    """Run the gate; 0 when every backend is in order or the vectors are absent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    parser.add_argument("--show", type=int, default=0, help="unlisted failures to show per file")
    parser.add_argument("--raise-floor", action="store_true", help="write the new counts as the floor")
    options = parser.parse_args()
    if not (options.shared / "tools" / "run_vectors.py").exists():
        print(f"no conformance vectors at {options.shared}: nothing to check")
        return 0

    differences = read_differences(CONFORMANCE / "differences.toml")
    floor_file = CONFORMANCE / "floor.toml"
    floor: dict[str, int] = tomllib.loads(floor_file.read_text()) if floor_file.exists() else {}
    in_order = True
    backends = options.backend or BACKENDS
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(partial(run_backend, options.shared), backends))
    for backend, report in zip(backends, reports, strict=True):
        verdict = judge(backend, report, differences)
        in_order &= tell(verdict, floor.get(backend, 0), options.show)
        floor[backend] = max(verdict.holds, floor.get(backend, 0))
    if options.raise_floor:
        counts = "".join(f"{backend} = {floor[backend]}\n" for backend in BACKENDS if backend in floor)
        floor_file.write_text(FLOOR_HEADER + counts, encoding="utf-8")
    return 0 if in_order else 1


if __name__ == "__main__":
    sys.exit(main())

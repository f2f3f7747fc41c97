"""The maps of proofs in ``docs/proof`` name tests, sections of scripts and benchmark rows that exist.

``docs/proof/README.md`` describes the form: tables of a promise and what fails when it is broken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from quereus_store.cli.bench.cases import CASES

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in (ROOT / "docs" / "proof").glob("*.md") if path.name != "README.md")
OPEN_POINTS = "Not proven or below its goal"

_CODE = re.compile(r"`([^`]+)`")
_GOAL = re.compile(r"(.+), (\d+(?:\.\d+)?)(?: \w+)?")
_FLOOR = "floor of "


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: where it stands, what is promised, and what the right column names."""

    page: str
    line: int
    heading: str
    promise: str
    proofs: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.page}, line {self.line}"


def rows_of(page: str, text: str) -> Iterator[Row]:
    """The rows of all tables of a page, without the heads of the tables."""
    heading = ""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        following = lines[number] if number < len(lines) else ""
        is_head = following.startswith("|-") or line.startswith("|-")
        if line.startswith("|") and not is_head:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            assert len(cells) == 2, f"{page}, line {number}: {len(cells)} columns instead of two"
            promise, proofs = cells
            yield Row(page, number, heading, promise, tuple(_CODE.findall(proofs)))


@cache
def _names_of(path: str) -> frozenset[str]:
    """What a test file defines: functions, classes, their methods as ``Class::method``, state machines."""
    names: set[str] = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ClassDef):
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            names.update([node.name, *(f"{node.name}::{method}" for method in methods)])
    return frozenset(names)


@cache
def _comments_of(path: str) -> tuple[str, ...]:
    """The comments of a script, each a paragraph of ``#`` lines made one line."""
    text = (ROOT / path).read_text(encoding="utf-8")
    paragraphs = re.findall(r"(?:^#.*\n?)+", text, re.MULTILINE)
    return tuple(" ".join(line.lstrip("# ") for line in paragraph.splitlines()) for paragraph in paragraphs)


def _wrong_test(proof: str) -> str | None:
    path, _, name = proof.partition("::")
    if not (ROOT / path).is_file():
        return "no such file"
    if not name.split("::")[-1].startswith(("test_", "Test")) and "::" not in name:
        return "not the name of a test"
    return None if name in _names_of(path) else "no such test"


def _wrong_script(proof: str) -> str | None:
    path, _, section = proof.partition(": ")
    if not (ROOT / path).is_file():
        return "no such script"
    if not section:
        return "no section named"
    return None if any(section in comment for comment in _comments_of(path)) else "no such section"


def _wrong_benchmark(proof: str) -> str | None:
    name = proof.removeprefix("bench: ")
    cases = {case.name: case for case in CASES}
    if name.removeprefix(_FLOOR) in cases:
        return None
    match = _GOAL.fullmatch(name)
    if match is None or match.group(1).removeprefix(_FLOOR) not in cases:
        return "no such row"
    case = cases[match.group(1).removeprefix(_FLOOR)]
    is_floor = match.group(1).startswith(_FLOOR)
    goals = {case.raw_times} if is_floor else {*case.goals.values(), case.at_most, case.microseconds}
    return None if float(match.group(2)) in goals else "not its goal"


def _wrong_step(proof: str) -> str | None:
    step = proof.removeprefix("ci: ")
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    return None if f'step "{step}" ' in text else "no such step"


_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], str | None]], ...] = (
    (re.compile(r"tests/\S+\.py::\S+"), _wrong_test),
    (re.compile(r"tests/\S+\.slt.*"), _wrong_script),
    (re.compile(r"bench: .+"), _wrong_benchmark),
    (re.compile(r"ci: .+"), _wrong_step),
)


def what_is_wrong(proof: str) -> str | None:
    """Why something in a right column is no proof; None where it is one."""
    for pattern, check in _KINDS:
        if pattern.fullmatch(proof):
            return check(proof)
    return "neither a test, a section of a script, a row of the benchmark nor a step of .ci/run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_named_proof_exists(page: Path) -> None:
    rows = list(rows_of(page.name, page.read_text(encoding="utf-8")))
    wrong = [
        f"{row.place}: `{proof}`: {reason}"
        for row in rows
        for proof in row.proofs
        if (reason := what_is_wrong(proof)) is not None and row.heading != OPEN_POINTS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_promise_has_a_proof(page: Path) -> None:
    rows = list(rows_of(page.name, page.read_text(encoding="utf-8")))
    bare = [
        f"{row.place}: {row.promise}"
        for row in rows
        if row.heading != OPEN_POINTS and not (row.promise and row.proofs)
    ]
    assert not bare, "\n".join(bare)


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        ("tests/test_proof_map.py::test_what_does_not_exist_is_found", None),
        ("tests/test_proof_map.py::test_of_nothing", "no such test"),
        ("tests/test_proof_map.py::rows_of", "not the name of a test"),
        ("tests/test_nothing.py::test_of_nothing", "no such file"),
        ("tests/logic/aggregates.slt: NULLs form one group", None),
        ("tests/logic/aggregates.slt: NULLs form two groups", "no such section"),
        ("tests/logic/aggregates.slt", "no section named"),
        ("tests/logic/nothing.slt: all", "no such script"),
        ("bench: point reads", None),
        ("bench: point reads, 0.6", None),
        ("bench: point reads, 0.6 memory", None),
        ("bench: point reads, 0.5", "not its goal"),
        ("bench: load, plain, 0.6", None),
        ("bench: floor of load, 2", None),
        ("bench: floor of load, 1", "not its goal"),
        ("bench: single-row inserts, 15", None),
        ("bench: guesses, 0.6", "no such row"),
        ("ci: layers", None),
        ("ci: luck", "no such step"),
        ("somebody said so", "neither a test"),
    ],
)
def test_what_does_not_exist_is_found(proof: str, reason: str | None) -> None:
    found = what_is_wrong(proof)
    assert found is None if reason is None else (found or "").startswith(reason)

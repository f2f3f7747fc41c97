"""The project around the code: set-up from a fresh clone, supported Pythons, what tests may not do."""

from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from quereus_store.plan import optimizer

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = [*sorted((ROOT / "quereus_store").rglob("*.py")), *TESTS, *sorted((ROOT / "tools").rglob("*.py"))]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("words", "installed", "run"),
    [
        (["demo"], "-e '.[demo]'", ".venv/bin/quereus demo"),
        (["demo", "DEMO=--backend leveldb"], "-e '.[demo]'", ".venv/bin/quereus demo --backend leveldb"),
        (["bench"], "-e .", ".venv/bin/quereus bench"),
        (["test"], "-e '.[demo,dev,arrow]'", ".venv/bin/python -m pytest"),
        (["lint"], "-e '.[demo,dev,arrow]'", ".venv/bin/lint-imports"),
    ],
)
def test_a_target_sets_itself_up(words: list[str], installed: str, run: str, tmp_path: Path) -> None:
    """In a folder without anything: first the environment, then what is needed, then the work itself."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    # The suite may itself run under make, whose variables are not to be passed on.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "TESTS"))
    }
    command = ["make", "-n", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    wanted = ["-m venv .venv", f"pip --disable-pip-version-check --quiet install {installed}", run]
    places = [next(number for number, line in enumerate(lines) if text in line) for text in wanted]
    assert places == sorted(places)


def test_every_gate_is_in_the_one_script() -> None:
    steps = re.findall(
        r'^step "[^"]+" (.*)$', (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert steps == [
        "make test",
        ".venv/bin/ruff check .",
        ".venv/bin/ruff format --check .",
        ".venv/bin/mypy",
        ".venv/bin/lint-imports",
        ".venv/bin/python tools/check_vectors.py",
    ]
    assert PROJECT["tool"]["mypy"]["strict"]


def test_a_step_that_fails_fails_the_whole(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not in order: layers" in done.stderr


def test_all_layers_are_in_the_contract() -> None:
    (contract,) = [one for one in PROJECT["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    layers = {name.strip("()").removeprefix("quereus_store.") for name in contract["layers"]}
    packages = {path.parent.name for path in (ROOT / "quereus_store").glob("*/__init__.py")}
    assert packages == layers


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_a_supported_python_reads_every_file(version: tuple[int, int]) -> None:
    named = "Programming Language :: Python :: {}.{}".format(*version)
    assert named in PROJECT["project"]["classifiers"]
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    for path in SOURCES:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=version)


# --- what tests may not do ----------------------------------------------------------------------------------


def waits(tree: ast.Module) -> Iterator[int]:
    """Lines that sleep; ``asyncio.sleep(0)`` gives a turn and does not wait."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "sleep" and not (node.args and getattr(node.args[0], "value", None) == 0):
                yield node.lineno


def test_no_test_sleeps() -> None:
    assert list(waits(ast.parse("import time\ntime.sleep(1)\nsleep(n)\nasyncio.sleep(0)"))) == [2, 3]
    sleeping = [
        f"{path}:{line}" for path in TESTS for line in waits(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert sleeping == []


def test_no_test_reaches_the_network() -> None:
    """``conftest.py`` holds that for all of them."""
    with socket.socket() as outside, pytest.raises(PermissionError, match="tests do not use the network"):
        outside.connect(("192.0.2.1", 80))


# --- what is listed -----------------------------------------------------------------------------------------


def test_each_rule_of_the_optimizer_has_its_file() -> None:
    """And the optimizer's page lists them in the order in which they run."""
    early, others = optimizer._default_rules()
    rules = [*early, *others]
    listed = re.findall(r"^(\w+) {2,}\S", (optimizer.__doc__ or "").split("====\n", 1)[1], re.MULTILINE)
    assert [name for name in listed if name != "rule"] == [rule.__name__ for rule in rules]
    homes = [rule.__module__.removeprefix("quereus_store.plan.rules.") for rule in rules]
    assert len(set(homes)) == len(rules)
    files = {path.stem for path in (ROOT / "quereus_store" / "plan" / "rules").glob("*.py")}
    assert files - set(homes) == {"__init__", "decorrelation"}  # the latter is what three of them share

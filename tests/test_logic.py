"""Runs the plain-text scripts of ``tests/logic`` on every backend (see the README there)."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import quereus_store
from tests import logic_script
from tests.logic_script import BACKENDS, Connection

FOLDER = Path(__file__).parent / "logic"
UPDATE = os.environ.get("QUEREUS_UPDATE") == "1"


def connector(backend: str, folder: Path) -> Callable[[], Connection]:
    """How a script opens its database: one for all its connections."""
    if backend == "memory":
        return lambda: quereus_store.connect(":memory:")
    path = str(folder / "db.qdb")
    return lambda: quereus_store.connect(path, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.slt")), ids=lambda path: path.stem)
def test_script(path: Path, backend: str, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    script = logic_script.parse(text)
    if backend not in script.backends:
        pytest.skip(f"not for {backend}")
    actual = logic_script.run(script, backend, connector(backend, tmp_path))
    if UPDATE:
        blocks = tuple(
            got if backend == wanted.backends[0] else wanted
            for wanted, got in zip(script.blocks, actual.blocks, strict=True)
        )
        path.write_text(replace(script, blocks=blocks).text(), encoding="utf-8")
        return
    differences = "\n".join(
        line
        for wanted, got in zip(script.blocks, actual.blocks, strict=True)
        for line in difflib.unified_diff(
            logic_script.normalized(wanted.expected or ()),
            logic_script.normalized(got.expected or ()),
            f"{path.name}, line {wanted.line}, expected",
            f"{backend}, got",
            lineterm="",
        )
    )
    assert not differences, differences

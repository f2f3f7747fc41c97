"""Random histories of changes and transactions: SQLite and every backend end up with the same rows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.differential.choices import Choices
from tests.differential.histories import run_history

LONG = os.environ.get("QUEREUS_LONG") == "1"


@pytest.mark.parametrize("seed", range(40 if LONG else 6))
def test_in_memory(seed: int) -> None:
    for number in range(50 if LONG else 12):
        run_history(Choices(1000 * seed + number), None)


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
@pytest.mark.parametrize("seed", range(100 if LONG else 8))
def test_durable(seed: int, backend: str, tmp_path: Path) -> None:
    """With a check of the store's files and a second look after opening them again."""
    run_history(Choices(50_000 + seed), tmp_path, (backend,))

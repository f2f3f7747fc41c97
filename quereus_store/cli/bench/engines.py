"""The engines that are compared, each with how it opens its database in an empty folder.

``sqlite3`` and we speak the same interface (PEP 249), so a case is written once.  Every engine
runs in autocommit unless a case begins a transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quereus_store


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: its name, how to open it, and the one it is compared with (None: a reference)."""

    name: str
    title: str
    connect: Callable[[Path], Any]
    rival: str | None
    durable: bool


def _sqlite_memory(folder: Path) -> Any:
    return sqlite3.connect(":memory:", isolation_level=None)


def _sqlite_file(folder: Path) -> Any:
    connection = sqlite3.connect(folder / "bench.sqlite", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


ENGINES: tuple[Engine, ...] = (
    Engine("memory", "memory", lambda folder: quereus_store.connect(":memory:"), "sqlite-memory", False),
    Engine(
        "lmdb",
        "LMDB",
        lambda folder: quereus_store.connect(str(folder / "bench.qdb"), backend="lmdb"),
        "sqlite-file",
        True,
    ),
    Engine(
        "leveldb",
        "LevelDB",
        lambda folder: quereus_store.connect(str(folder / "bench.leveldb"), backend="leveldb"),
        "sqlite-file",
        True,
    ),
    Engine("sqlite-memory", "sqlite3 memory", _sqlite_memory, None, False),
    Engine("sqlite-file", "sqlite3 file", _sqlite_file, None, True),
)


class Database:
    """An engine's database while the benchmark runs: its connection can be opened anew."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.connection = engine.connect(folder)

    def reopen(self) -> None:
        """Close and open the database: nothing of it is cached in this process any more."""
        self.connection.close()
        self.connection = self.engine.connect(self._folder)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

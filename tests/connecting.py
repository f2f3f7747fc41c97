"""Databases of each storage in a test's folder."""

from __future__ import annotations

from pathlib import Path

import quereus_store
from quereus_store import Connection

STORAGES = ("memory", "lmdb", "leveldb")


def connected(storage: str, folder: Path) -> Connection:
    """A connection to a new database, or one more to that in the folder; commits are not flushed."""
    if storage == "memory":
        return quereus_store.connect(":memory:")
    return quereus_store.connect(folder / "db", backend=storage, synchronous="off")

"""Opening the database that a command names."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quereus_store
from quereus_store.cli.diagnostics import CommandError

if TYPE_CHECKING:
    from quereus_store import Connection

MEMORY = ":memory:"
BACKENDS = ("lmdb", "leveldb")


def add_backend_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--backend``: which key-value store the file is, or shall be."""
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        help="storage of the file (default: leveldb for an existing folder, else lmdb)",
    )


def add_file_argument(parser: argparse.ArgumentParser) -> None:
    """Add the database file and its backend."""
    parser.add_argument("file", metavar="FILE", help="database file (a folder with LevelDB)")
    add_backend_option(parser)


def open_database(
    path: str, backend: str | None = None, *, must_exist: bool = False, cache_size: int | None = None
) -> Connection:
    """Open a database file, or memory for ``:memory:``.

    :param backend: ``lmdb`` or ``leveldb``; when absent an existing folder is taken for LevelDB
        and everything else for LMDB.
    :param cache_size: bytes for decoded rows; when absent the library's default.
    :raises CommandError: with ``must_exist`` when there is no such file.
    :raises quereus_store.Error: what the file is or is not.
    """
    if path == MEMORY:
        return quereus_store.connect(MEMORY)
    if must_exist and not Path(path).exists():
        raise CommandError(f"{path}: no such database file")
    settings: dict[str, Any] = {"backend": backend or ("leveldb" if Path(path).is_dir() else "lmdb")}
    if cache_size is not None:
        settings["cache_size"] = cache_size
    return quereus_store.connect(path, **settings)

"""Opening a database: from a path to a store module.

A new place becomes a database: its key space gets the stamp, in one transaction, so a crash
in between leaves a place that is still new.  An existing one is checked before anything else
is read, and nothing in it is changed by being refused:

=====================================  =========  =====================================================
what is found                          code       raised by
=====================================  =========  =====================================================
a folder where a file is expected      CANTOPEN   the backend
a file where a folder is expected      CANTOPEN   the backend
a file that is no LMDB file            NOTADB     the backend
a file that may not be written         READONLY   the backend (``readonly=True`` opens it)
an LMDB file or LevelDB folder with    NOTADB     the missing stamp
other data
a newer format or key encoding         CANTOPEN   the stamp
a damaged stamp or head                CORRUPT    the stamp
a damaged catalog entry                CORRUPT    nobody: reported by ``load_catalog``, the rest lives
a damaged row                          CORRUPT    the read that meets it, and ``check``
=====================================  =========  =====================================================

Chapter: store-and-modules, sections 7 and 15.
"""

from __future__ import annotations

import os
from typing import Any

from quereus_store.backends import Backend, check_sizes, open_backend
from quereus_store.catalog.meta import check_stamp, is_empty, stamp
from quereus_store.store.cache import DEFAULT_CACHE_SIZE
from quereus_store.store.module import StoreModule

Path = str | os.PathLike[str]


def open_store(
    path: Path | None,
    backend: str = "lmdb",
    *,
    cache_size: int = DEFAULT_CACHE_SIZE,
    name: str = "store",
    **options: Any,
) -> StoreModule:
    """Open or create a database; the result is to be registered with an engine.

    ``path`` is None for backend ``memory``.  ``options`` go to the backend (``synchronous``, ``readonly``,
    ``create``, ...).  Raises what the table in this module's header says; MISUSE for unknown options.
    """
    check_sizes({"cache_size": cache_size})
    return open_module(open_backend(backend, path, **options), path, cache_size=cache_size, name=name)


def open_module(
    backend: Backend,
    path: Path | None = None,
    *,
    cache_size: int = DEFAULT_CACHE_SIZE,
    name: str = "store",
    attached: str | None = None,
) -> StoreModule:
    """Make a store module of an open backend, any that keeps the contract; closes it when it is refused."""
    try:
        prepare(backend, os.fspath(path) if path is not None else f"the {backend.name} database")
    except BaseException:
        backend.close()
        raise
    return StoreModule(backend, cache_size=cache_size, name=name, attached=attached)


def prepare(backend: Backend, where: str) -> None:
    """Stamp an empty key space, check any other; ``where`` names the database in messages."""
    with backend.read() as snapshot:
        if not is_empty(snapshot):
            check_stamp(snapshot, where)
            return
    with backend.write() as transaction:
        # Another process may have been faster.
        if is_empty(transaction):
            stamp(transaction)
            transaction.commit()
        else:
            check_stamp(transaction, where)

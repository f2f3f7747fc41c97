"""The kit for modules notices a module that breaks one of its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quereus_store.modules.conformance import CHECKS, run_check
from quereus_store.modules.contract import EngineServices
from quereus_store.modules.memory import MemoryModule
from quereus_store.modules.memory.table import MemoryTable
from quereus_store.modules.memory.transactions import Writer

SCAN, COUNT = MemoryTable.scan, MemoryTable.count

# What is broken, with what, and the check that is there to notice.
BROKEN: list[tuple[type, str, Callable[..., Any], str]] = [
    (
        MemoryTable,
        "scan",
        lambda self, transaction, reverse=False: SCAN(self, transaction, not reverse),
        "scans",
    ),
    (MemoryTable, "point", lambda self, transaction, key: None, "points"),
    (MemoryTable, "count", lambda self, transaction: COUNT(self, transaction) + 1, "points"),
    (MemoryTable, "range", lambda *_: iter(()), "key_ranges"),
    (MemoryTable, "delete", lambda *_: None, "deletes"),
    (MemoryTable, "update", lambda *_: None, "updates"),
    (MemoryTable, "conflicts", lambda *_, **__: [], "conflicts"),
    (MemoryTable, "_check_row", lambda *_: None, "unique_constraints"),
    (Writer, "rollback_to", lambda *_: None, "savepoints"),
    (Writer, "rollback", lambda self: self.commit(), "rollback"),
    (MemoryModule, "_acquire", lambda *_: True, "one_writer"),
    (Writer, "_check_open", lambda self: None, "finished_transactions"),
]


@pytest.mark.parametrize(("owner", "method", "replacement", "noticing"), BROKEN)
def test_what_is_broken_is_noticed(
    owner: type, method: str, replacement: Callable[..., Any], noticing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(services: EngineServices) -> MemoryModule:
        module = MemoryModule()
        module.attach(services)
        return module

    run_check(noticing, make)
    monkeypatch.setattr(owner, method, replacement)
    with pytest.raises(Exception):  # noqa: B017 - whatever the broken module does
        run_check(noticing, make)
    assert noticing in CHECKS

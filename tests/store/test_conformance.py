"""The store module against the kit that every module has to pass, and random operations with reopening."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import precondition, rule

from quereus_store.modules.conformance import CHECKS, HOSTING_CHECKS, run_check
from quereus_store.modules.conformance.machine import ModuleMachine
from quereus_store.modules.contract import EngineServices
from quereus_store.store import StoreModule
from quereus_store.store.check import check_table
from quereus_store.store.open import open_store


@pytest.mark.parametrize("check", [*CHECKS, *HOSTING_CHECKS])
def test_the_module_keeps_the_contract(check: str, backend_name: str, tmp_path: Path) -> None:
    numbers = itertools.count()

    def make(services: EngineServices) -> StoreModule:
        module = open_store(_place(tmp_path / str(next(numbers)), backend_name), backend_name)
        module.attach(services)
        return module

    run_check(check, make)


def _place(path: Path, backend: str) -> Path | None:
    return None if backend == "memory" else path


class StoreMachine(ModuleMachine):
    """The kit's machine on a file, which is closed and opened again now and then, and checked at the end."""

    backend: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        place = Path(self.folder.name) / "db"
        backend = type(self).backend

        def make(services: EngineServices) -> StoreModule:
            self.services = services
            module = open_store(_place(place, backend), backend, cache_size=20_000, **_fast(backend))
            module.attach(services)
            return module

        self.make_again = make
        # The kit looks for the factory on the class.
        type(self).make_module = staticmethod(make)

    @precondition(lambda self: self.writer is None and not self.snapshots and self.backend != "memory")
    @rule()
    def reopen(self) -> None:
        """Everything committed is still there."""
        self.kit.module.close()
        self.kit.module = self.make_again(self.services)
        self.table = self.kit.module.table(self.schema)

    def teardown(self) -> None:
        """Rows, indexes and counts agree at the end."""
        if hasattr(self, "kit"):
            module: Any = self.kit.module
            transaction = module.begin_read()
            assert check_table(module, transaction, self.schema) == []
            transaction.rollback()
        super().teardown()
        self.folder.cleanup()


def _fast(backend: str) -> dict[str, str]:
    return {} if backend == "memory" else {"synchronous": "off"}


def _case(backend_name: str) -> Any:
    machine = type(f"Machine_{backend_name}", (StoreMachine,), {"backend": backend_name})
    machine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
    return machine.TestCase


TestOnMemory = _case("memory")
TestOnLmdb = _case("lmdb")
TestOnLeveldb = _case("leveldb")

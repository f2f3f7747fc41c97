"""Every test here runs on each backend, unless it says otherwise."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quereus_store.store import StoreModule
from quereus_store.store.open import open_store
from tests.store.support import Engine

OpenModule = Callable[..., StoreModule]


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def backend_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_module(backend_name: str, tmp_path: Path) -> Iterator[OpenModule]:
    """Open the test's database; opening it again closes it first (memory does not come back)."""
    opened: list[StoreModule] = []

    def open_again(**options: Any) -> StoreModule:
        for module in opened:
            module.close()
        path = None if backend_name == "memory" else tmp_path / "test.qdb"
        settings = {} if backend_name == "memory" else {"synchronous": "off"}
        module = open_store(path, backend_name, **{**settings, **options})
        module.attach(Engine())
        opened.append(module)
        return module

    yield open_again
    for module in opened:
        module.close()


@pytest.fixture
def module(open_module: OpenModule) -> StoreModule:
    return open_module()

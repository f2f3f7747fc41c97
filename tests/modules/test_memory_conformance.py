"""The memory module passes the kit that every module has to pass."""

import pytest

from quereus_store.modules.conformance import CHECKS, HOSTING_CHECKS, run_check
from quereus_store.modules.memory import MemoryModule


def make_memory(services):
    module = MemoryModule()
    module.attach(services)
    return module


@pytest.mark.parametrize("name", [*CHECKS, *HOSTING_CHECKS])
def test_check(name):
    run_check(name, make_memory)

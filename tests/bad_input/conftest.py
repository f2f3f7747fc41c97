"""Everything here holds on both backends that keep files."""

import pytest


@pytest.fixture(params=["lmdb", "leveldb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)

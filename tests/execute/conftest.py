"""Tests that take ``db`` run on memory tables and on a store alike."""

from collections.abc import Iterator

import pytest

from tests.execute.database import MODULES, Database


@pytest.fixture(params=MODULES)
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    database = Database(request.param)
    yield database
    database.session.close()
    database.engine.close()

"""Options of the whole suite."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        default=bool(os.environ.get("QUEREUS_LONG")),
        help="repeat what is left to chance much more often (also: QUEREUS_LONG=1)",
    )

"""Options of the whole suite, and the network that no test may use."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        default=bool(os.environ.get("QUEREUS_LONG")),
        help="repeat what is left to chance much more often (also: QUEREUS_LONG=1)",
    )


@pytest.fixture(scope="session", autouse=True)
def without_network() -> Iterator[None]:
    """Connections of this process to other machines are refused."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            raise PermissionError(f"tests do not use the network: {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield

"""A database for tests that read as SQL: a session over memory tables or over a store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from quereus_store.errors import Error
from quereus_store.execute.engine import Engine
from quereus_store.execute.session import Session
from quereus_store.modules.memory import MemoryModule
from quereus_store.store.open import open_store

MODULES = ("memory", "store")


class Database:
    """One database and one session on it."""

    def __init__(self, module: str = "memory") -> None:
        modules: list[Any] = [MemoryModule()]
        if module == "store":
            modules.append(open_store(None, "memory"))
        self.engine = Engine(modules, module)
        self.session = Session(self.engine)

    def run(self, script: str) -> None:
        """Run statements."""
        self.session.run_script(script)

    def change(self, sql: str, *parameters: Any) -> int:
        """Run one statement; the number of rows it changed."""
        result = self.session.execute(sql, parameters)
        result.all_rows()
        return int(result.row_count)

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return list(self.session.execute(sql, parameters).all_rows())

    def many(self, sql: str, rows: Sequence[Any]) -> int:
        """Run one statement for many tuples of parameters."""
        return self.session.execute_batch(sql, rows).row_count

    def error(self, sql: str, *parameters: Any) -> Error:
        """The error that a statement fails with."""
        with pytest.raises(Error) as caught:
            self.session.execute(sql, parameters).all_rows()
        return caught.value

    def fails(self, sql: str, *parameters: Any) -> str:
        """The message that a statement fails with."""
        return self.error(sql, *parameters).message

    def in_transaction(self) -> bool:
        """Whether BEGIN has not been answered yet."""
        return self.session.transaction is not None

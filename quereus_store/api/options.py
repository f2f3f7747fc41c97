"""``database.options``: the options that new connections start with.

``pragma`` changes an option for one connection; what is set here holds for those opened afterwards in
this process.  Values are checked and converted as ``pragma`` does it.

Chapter: functions, section 13.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.execute.options import default_options
from quereus_store.execute.session import Session
from quereus_store.sql import nodes


class Options(MutableMapping[str, Any]):
    """Options by name; deleting one gives it its first value again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises MISUSE for an unknown option or a value that it cannot take."""
        asked = _Asked(self._engine)
        try:
            asked.run_statement(nodes.Pragma(name, nodes.Literal.of(value)))
        except Error as error:
            reason = error.__cause__ or f"there is no option '{name}'"
            raise sql_error(StatusCode.MISUSE, str(reason)) from error
        self._engine.session_options.update(asked.found)

    def __delitem__(self, name: str) -> None:
        _ = self[name]
        self._engine.session_options.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"Options({self._all()!r})"

    def _all(self) -> dict[str, Any]:
        return {**default_options(self._engine), **self._engine.session_options}


class _Asked(Session):
    """A session that only notes which option a pragma sets, and to what."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.found: dict[str, Any] = {}

    def set_option(self, name: str, value: Any) -> None:
        """Note it."""
        self.found[name] = value

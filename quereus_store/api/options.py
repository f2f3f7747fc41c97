"""``database.options``: the options that new connections start with.

``pragma`` changes an option for one connection; what is set here holds for those opened afterwards in
this process.  Names, aliases included, and values are taken as ``pragma`` does it,
lists and dictionaries of Python too.

Chapter: functions, section 13.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.execute.options import default_options
from quereus_store.execute.session import Session
from quereus_store.execute.statements.pragma import option_value, stored_name


class Options(MutableMapping[str, Any]):
    """Options by name; deleting one gives it its first value again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> Any:
        return self._all()[stored_name(name) or name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises ERROR for an unknown option, MISUSE for a value that it cannot take."""
        stored = stored_name(name)
        if stored is None:
            raise sql_error(StatusCode.ERROR, f"Unknown option: {name}")
        try:
            parsed = option_value(Session(self._engine), stored, value)
        except ValueError as reason:
            raise sql_error(StatusCode.MISUSE, str(reason)) from reason
        self._engine.session_options[stored] = parsed

    def __delitem__(self, name: str) -> None:
        _ = self[name]
        self._engine.session_options.pop(stored_name(name) or name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"Options({self._all()!r})"

    def _all(self) -> dict[str, Any]:
        return {**default_options(self._engine), **self._engine.session_options}

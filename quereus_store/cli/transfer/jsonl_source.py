"""JSON lines: one object a line.

The columns are the keys of all objects in order of appearance; a key that an object lacks is NULL.
A line that is no JSON object is refused by number, and reading goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.reading import BATCH_ROWS, Batch, Rejected, open_text, undecodable


class JsonLinesSource:
    """A file of JSON objects, one a line; empty lines are skipped.

    Opening reads the file once to learn the columns.

    :raises CommandError: when no line holds an object.
    """

    declared = None
    key: tuple[str, ...] = ()
    place = "line"

    def __init__(self, path: Path, *, title: str = "", encoding: str | None = None) -> None:
        self._path = path
        self._encoding = encoding
        self.size = path.stat().st_size
        names: dict[str, None] = {}
        for _line, _text, value, _at in self._objects():
            if isinstance(value, dict) and not value.keys() <= names.keys():
                names.update(dict.fromkeys(value))
        if not names:
            raise CommandError(f"{title or path}: no line holds a JSON object")
        self.names = list(names)

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The rows in batches, each with the number of bytes read so far."""
        batch = Batch()
        names = self.names
        for line, text, value, at in self._objects():
            if isinstance(value, dict):
                batch.rows.append([value.get(name) for name in names])
                batch.lines.append(line)
            else:
                batch.rejected.append(Rejected(line, str(value), text))
            if len(batch.rows) >= BATCH_ROWS:
                yield at(), batch
                batch = Batch()
        yield self.size, batch

    def _objects(self) -> Iterator[tuple[int, str, Any, Any]]:
        """Line number, text, the object (or why there is none) and a function telling the byte."""
        raw, text = open_text(self._path, self._encoding)
        with text:
            for number, line in enumerate(text, 1):
                content = line.strip()
                if content:
                    yield number, content, self._parse(content), raw.tell

    def _parse(self, content: str) -> dict[str, Any] | str:
        if not content.isascii() and (why := undecodable(content, self._encoding)):
            return why
        try:
            value = json.loads(content)
        except ValueError as error:
            return f"not valid JSON: {error}"
        except RecursionError:
            return "not valid JSON: nested too deeply"
        return value if isinstance(value, dict) else "not a JSON object"

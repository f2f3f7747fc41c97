"""A JSON file that is one array of objects.

The array is read element by element, so the file may be larger than memory.  The columns are the
keys of all objects in order of appearance; a key that an object lacks is NULL.  An element that is no
object is refused by line.  Text that is not JSON ends the import: what follows it cannot be
told apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.formats import check_names
from quereus_store.cli.transfer.reading import BATCH_ROWS, Batch, Rejected, open_text, undecodable

_CHUNK = 1 << 18
_BLANKS = " \t\r\n"
#: A parser that runs out of text complains so near to its end: ``-Infinity`` is its longest word.
_NEAR_THE_END = 16


def is_array(path: Path, encoding: str | None) -> bool:
    """True when the first character of the file that is no blank opens an array."""
    _raw, text = open_text(path, encoding)
    with text:
        while chunk := text.read(_CHUNK):
            if content := chunk.strip(_BLANKS):
                return content[0] == "["
    return False


class JsonArraySource:
    """A file with one JSON array of objects.

    Opening reads the file once to learn the columns.

    :raises CommandError: when it is no such array, or holds no object.
    """

    declared = None
    key: tuple[str, ...] = ()
    place = "line"

    def __init__(self, path: Path, *, title: str = "", encoding: str | None = None) -> None:
        self._path = path
        self._title = title or str(path)
        self._encoding = encoding
        self.size = path.stat().st_size
        names: dict[str, None] = {}
        for _line, value, _raw in self._elements():
            if isinstance(value, dict) and not value.keys() <= names.keys():
                names.update(dict.fromkeys(value))
        if not names:
            raise CommandError(f"{self._title}: the array holds no object")
        self.names = list(names)
        check_names(self._title, self.names, "the objects")

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The rows in batches, each with the number of bytes read so far."""
        batch = Batch()
        names = self.names
        for line, value, raw in self._elements():
            if not isinstance(value, dict):
                batch.rejected.append(Rejected(line, "not a JSON object", value))
            elif (why := self._undecodable(value)) is not None:
                batch.rejected.append(Rejected(line, why, value))
            else:
                batch.rows.append([value.get(name) for name in names])
                batch.lines.append(line)
            if len(batch.rows) >= BATCH_ROWS:
                yield raw.tell(), batch
                batch = Batch()
        yield self.size, batch

    def _elements(self) -> Iterator[tuple[int, Any, Any]]:
        """Line, value and the open file for every element of the array."""
        raw, text = open_text(self._path, self._encoding)
        with text:
            reader = _Reader(text, self._title)
            reader.expect("[", "a JSON array")
            if reader.accepts("]"):
                reader.expect_end()
                return
            while True:
                yield *reader.value(), raw
                if reader.accepts("]"):
                    break
                reader.expect(",", "a comma or the end of the array")
            reader.expect_end()

    def _undecodable(self, value: dict[str, Any]) -> str | None:
        for name, item in value.items():
            text = item if isinstance(item, str) else "" if isinstance(item, (int, float)) else str(item)
            for part in (name, text):
                if not part.isascii() and (why := undecodable(part, self._encoding)):
                    return f"column {name!r}: {why}"
        return None


class _Reader:
    """Reads values from a text of which a part at a time is in memory."""

    def __init__(self, text: TextIO, title: str) -> None:
        self._text = text
        self._title = title
        self._decode = json.JSONDecoder().raw_decode
        self._buffer = ""
        self._at = 0
        self._line = 1
        self._counted = 0
        self._ended = False

    def accepts(self, character: str) -> bool:
        """Pass over blanks and, if it comes next, over the character."""
        if self._next() != character:
            return False
        self._at += 1
        return True

    def expect(self, character: str, what: str) -> None:
        if not self.accepts(character):
            raise self._error(f"expected {what}")

    def expect_end(self) -> None:
        if self._next():
            raise self._error("the array has ended, but the file goes on")

    def value(self) -> tuple[int, Any]:
        """The next value with the line it starts at."""
        self._next()
        line = self._current_line()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._buffer) - _NEAR_THE_END or error.msg.startswith("Unterminated")
                if self._ended or not cut:
                    self._at = error.pos
                    raise self._error(f"not valid JSON: {error.msg}") from None
            except RecursionError:
                raise self._error("not valid JSON: nested too deeply") from None
            else:
                # A number that touches the end of what is in memory may go on.
                if end < len(self._buffer) or self._ended:
                    self._at = end
                    return line, value
            self._fill()

    def _next(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            while self._at < len(self._buffer):
                if (character := self._buffer[self._at]) not in _BLANKS:
                    return character
                self._at += 1
            if self._ended:
                return ""
            self._fill()

    def _fill(self) -> None:
        """Forget what has been read and take more: as much again, so that long values cost no squares."""
        self._current_line()
        rest = self._buffer[self._at :]
        more = self._text.read(max(_CHUNK, len(rest)))
        self._ended = not more
        self._buffer = rest + more
        self._at = self._counted = 0

    def _current_line(self) -> int:
        self._line += self._buffer.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _error(self, why: str) -> CommandError:
        return CommandError(f"{self._title}: line {self._current_line()}: {why}")

"""What the readers share: batches of rows, refused rows, and opening a text file.

A file is read more than once: for its columns, for their types, for its rows.  What can be read
once only, as standard input or a pipe, is therefore copied to a temporary file first.

Undecodable bytes do not stop a file.  It is decoded with ``surrogateescape``, so the bad bytes
survive as lone surrogates, the row that holds them is refused with the byte and its place named,
and the rejected-rows file gets the very same bytes back.
"""

from __future__ import annotations

import codecs
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.formats import STANDARD

BATCH_ROWS = 2000

_ESCAPED = re.compile("[\udc80-\udcff]")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that is not in the table: its line in the file, why, and its text or fields."""

    line: int
    reason: str
    content: Any


@dataclass(slots=True)
class Batch:
    """Rows as equally long lists, the line each starts at, and what could not be read between them."""

    rows: list[list[Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


class Column(Protocol):
    """What a column of a new table is like."""

    @property
    def type_name(self) -> str:
        """The declared type."""

    @property
    def nullable(self) -> bool:
        """Whether it may be NULL."""


class Source(Protocol):
    """A file of rows.  ``names`` are its columns; ``batches()`` may be called more than once."""

    @property
    def declared(self) -> Sequence[Column] | None:
        """The columns as the file itself declares them; None where only its values tell."""

    @property
    def key(self) -> tuple[str, ...]:
        """The key that the file itself names, or nothing."""

    @property
    def place(self) -> str:
        """What the numbers of rows count: ``line`` or ``row``."""

    @property
    def names(self) -> list[str]:
        """Column names, in order."""

    @property
    def size(self) -> int:
        """Size of the file in bytes, or in whatever ``batches()`` counts."""

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The rows in batches, each with how much of the size has been read."""


@contextmanager
def readable_again(path: Path) -> Iterator[tuple[Path, str]]:
    """A file that can be read more than once, and what messages call it; ``-`` is standard input."""
    is_standard = path == STANDARD
    if not is_standard and not (path.is_fifo() or path.is_char_device()):
        yield path, str(path)
        return
    with tempfile.TemporaryDirectory(prefix="quereus-") as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as target:
            if is_standard:
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with path.open("rb") as pipe:
                    shutil.copyfileobj(pipe, target)
        yield copy, "standard input" if is_standard else str(path)


def open_text(path: Path, encoding: str | None) -> tuple[BinaryIO, TextIO]:
    """Open a file as bytes and, over them, as text; bad bytes become lone surrogates.

    :param encoding: name of the encoding; when absent, that of a byte order mark, else UTF-8.
    :raises CommandError: for an unknown encoding.
    """
    raw = path.open("rb")
    if encoding is None:
        head = raw.peek(4)[:4]
        encoding = next((name for mark, name in _BOMS if head.startswith(mark)), "utf-8")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raw.close()
        raise CommandError(f"unknown encoding {encoding!r}") from None
    return raw, io.TextIOWrapper(raw, encoding=encoding, errors="surrogateescape", newline="")


def undecodable(text: str, encoding: str | None) -> str | None:
    """Why a text is not in the file's encoding: names the first bad byte; None when it is fine."""
    bad = _ESCAPED.search(text)
    if bad is None:
        return None
    byte = ord(bad.group()) - 0xDC00
    return f"byte 0x{byte:02x} at character {bad.start() + 1} is not valid {encoding or 'utf-8'}"

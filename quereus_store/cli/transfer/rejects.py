"""The rejected-rows file: every row that is not in the table, with its line and the reason.

It lies beside the data, ``flights.csv`` → ``flights.rejected.csv``, and is made at the first
refused row only.  A CSV file gets the columns ``line, reason`` followed by the fields as they were;
a JSON lines file gets objects ``{"line": …, "reason": …, "row": …}``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from quereus_store.cli.transfer.reading import Rejected


class RejectsFile:
    """Writes refused rows beside the data file; a context manager."""

    def __init__(self, path: Path, names: list[str], *, json_lines: bool) -> None:
        self.path = path
        self.count = 0
        self.first: list[Rejected] = []
        self._names = names
        self._json_lines = json_lines
        self._file: TextIO | None = None

    def add(self, rejected: Iterable[Rejected]) -> None:
        """Write some refused rows."""
        for row in rejected:
            if self._file is None:
                self._open()
            assert self._file is not None
            self.count += 1
            if len(self.first) < 3:
                self.first.append(row)
            if self._json_lines:
                entry = {"line": row.line, "reason": row.reason, "row": row.content}
                # ASCII-escaped: a lone surrogate of a bad byte stays readable JSON.
                self._file.write(json.dumps(entry, default=str) + "\n")
            else:
                csv.writer(self._file, lineterminator="\n").writerow([row.line, row.reason, *row.content])

    def _open(self) -> None:
        self._file = self.path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
        if not self._json_lines:
            csv.writer(self._file, lineterminator="\n").writerow(["line", "reason", *self._names])

    def __enter__(self) -> RejectsFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

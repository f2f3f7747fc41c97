"""Splitting a text into statements without parsing it.

The shell must know when a statement is whole, and a script runner must know where each statement
starts, so that an error's line and column can be shown in the script.  Both need no grammar: a
``;`` ends a statement unless it stands in a string, a quoted name, a comment or a ``{ … }`` block
(the body of a declared schema).  One regular expression steps over those; everything else is one
character at a time as far as this module is concerned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
      (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] )
    | (?P<comment> (?:--|//)[^\n]* )
    | (?P<opening> /\* )
    | (?P<open> ['"`] )
    | (?P<mark> [;{}] )
    | (?P<space> \s+ )
    | (?P<other> [^'"`\[;{}\s/-]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script: its text (without the ``;``), and where it starts.

    ``line`` and ``column`` count from 1.  ``complete`` is false for the last piece of a text that
    no ``;`` closes, or that ends inside a string or comment.
    """

    text: str
    line: int
    column: int
    complete: bool


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a script in order; pieces without any code are left out."""
    start: int | None = None
    depth = 0
    at = 0
    whole = True
    while at < len(text):
        piece = _PIECE.match(text, at)
        assert piece is not None, "the pattern ends in an alternative that matches any character"
        kind, end = piece.lastgroup, piece.end()
        if kind == "opening":
            end = _comment_end(text, at)
            whole = end <= len(text)
            kind = "comment"
        elif kind == "open":
            end, whole = len(text), False
        elif kind == "mark":
            depth = max(0, depth + {"{": 1, "}": -1, ";": 0}[piece.group()])
            if piece.group() == ";" and depth == 0:
                if start is not None:
                    yield _statement(text, start, at, complete=True)
                start, at = None, end
                continue
        if start is None and kind not in ("space", "comment"):
            start = at
        at = end
    if start is not None or not whole:
        yield _statement(text, len(text) if start is None else start, len(text), complete=False)


def is_complete(text: str) -> bool:
    """True when the text needs no further line: its last statement is closed by a ``;``."""
    return all(statement.complete for statement in split_statements(text))


def _comment_end(text: str, start: int) -> int:
    """End of the block comment that opens at ``start`` (they nest); past the text when unclosed."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text) + 1


def _statement(text: str, start: int, end: int, *, complete: bool) -> Statement:
    before = text[:start]
    line = before.count("\n") + 1
    column = start - (before.rfind("\n") + 1) + 1
    return Statement(text[start:end].rstrip(), line, column, complete)

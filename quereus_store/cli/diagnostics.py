"""How an error reaches the user: its message, the line it points at, and a caret.

Never a traceback: whatever the database, the operating system or the command itself refuses is an
expected answer::

    error: Column not found: nam
      2 | select nam from crew
        |        ^
      hint: did you mean name?

The exit status tells scripts the same: 0 done, 1 refused, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

from typing import TextIO

from quereus_store.errors import Error

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_INTERRUPTED = 130


class CommandError(Exception):
    """A command cannot go on; the text is the whole message."""


def describe(error: BaseException) -> str:
    """The message of any expected error, without class name or position."""
    if isinstance(error, Error):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _reason(error: BaseException) -> str | None:
    """What a bad value of a pragma was refused for: the message itself names only the pragma."""
    cause = error.__cause__
    if not isinstance(error, Error) or cause is None or not str(cause) or str(cause) in error.message:
        return None
    return describe(cause)


def report(
    error: BaseException,
    stream: TextIO,
    *,
    text: str = "",
    name: str = "",
    line: int = 1,
    column: int = 1,
) -> None:
    """Print an error; with the statement's ``text``, also the line it points at and a caret, and its notes.

    ``line`` and ``column`` say where the statement starts in the file ``name``, so that the
    numbers shown are those of the file.
    """
    _show(error, stream, text, name, line, column)
    for note in getattr(error, "__notes__", ()):
        print(f"  {note}", file=stream)


def _show(error: BaseException, stream: TextIO, text: str, name: str, line: int, column: int) -> None:
    print(f"error: {describe(error)}", file=stream)
    if (reason := _reason(error)) is not None:
        print(f"  because: {reason}", file=stream)
    position = error.position if isinstance(error, Error) else None
    if position is None or not text:
        if name:
            print(f"  in {name}, line {line}", file=stream)
        return
    lines = text.splitlines() or [""]
    index = min(position.line, len(lines)) - 1
    source = lines[index]
    shown = line + index
    caret = min(position.column, len(source) + 1) - 1
    margin = str(shown)
    if name:
        where = position.column + (column - 1 if index == 0 else 0)
        print(f"  in {name}, line {shown}, column {where}", file=stream)
    print(f"  {margin} | {source.replace(chr(9), ' ')}", file=stream)
    print(f"  {' ' * len(margin)} | {' ' * caret}^", file=stream)

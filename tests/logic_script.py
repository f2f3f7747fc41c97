"""The plain-text test scripts of ``tests/logic``: reading, running and rewriting them.

The format is described in ``tests/logic/README.md``.  A script is a list of blocks; running one
gives each block's actual output as lines, so that checking is a comparison of texts and updating is
writing the actual lines back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from quereus_store.cli.statements import split_statements
from quereus_store.errors import Error

BACKENDS = ("memory", "lmdb", "leveldb")
SEPARATOR = "---"
FIRST_CONNECTION = "a"

_BACKEND = re.compile(r"backend:\s*(.+)")
_CONNECTION = re.compile(r"connection (\w+):")


class Cursor(Protocol):
    """The part of a cursor that scripts need."""

    description: Sequence[Sequence[Any]] | None

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """The part of a connection that scripts need."""

    def execute(self, sql: str) -> Cursor: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a block that does something: a statement, a plan, or a reopening."""

    kind: str
    text: str
    connection: str


@dataclass(frozen=True, slots=True)
class Block:
    """Statements and the expected output of the last; ``expected`` is None at a file's end."""

    line: int
    source: tuple[str, ...]
    steps: tuple[Step, ...]
    backends: tuple[str, ...]
    expected: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Script:
    """A whole file: the backends it is for, and its blocks."""

    backends: tuple[str, ...]
    blocks: tuple[Block, ...]

    def text(self) -> str:
        """The script as a file's content."""
        return "\n".join("\n".join(self._block_lines(block)) for block in self.blocks).rstrip("\n") + "\n"

    @staticmethod
    def _block_lines(block: Block) -> list[str]:
        if block.expected is None:
            return list(block.source)
        return [*block.source, SEPARATOR, *block.expected, ""]


def parse(text: str) -> Script:
    """Read a script.

    :raises ValueError: when a directive is wrong; names the line.
    """
    lines = text.splitlines()
    whole = _file_backends(lines)
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        start = at
        while at < len(lines) and lines[at] != SEPARATOR:
            at += 1
        source = tuple(lines[start:at])
        expected: tuple[str, ...] | None = None
        if at < len(lines):
            begin = at = at + 1
            while at < len(lines) and lines[at].strip():
                at += 1
            expected = tuple(lines[begin:at])
            at += 1
        steps, backends = _parse_steps(source, start + 1)
        blocks.append(Block(start + 1, source, steps, backends or whole, expected))
    return Script(whole, tuple(blocks))


def run(script: Script, backend: str, connect: Callable[[], Connection]) -> Script:
    """Run a script on one backend; returns it with the actual output as the expected one.

    :param connect: opens the database under test, the same one each time.
    :raises AssertionError: when a statement that must succeed fails; names the block's line.
    """
    connections: dict[str, Connection] = {}
    blocks: list[Block] = []
    try:
        for block in script.blocks:
            if backend in block.backends:
                output = _run_block(block, connections, connect)
                if block.expected is not None:
                    block = replace(block, expected=tuple(output))
            blocks.append(block)
    finally:
        for connection in connections.values():
            connection.close()
    return replace(script, blocks=tuple(blocks))


def normalized(lines: Sequence[str]) -> list[str]:
    """Output lines for comparison: blanks around column separators do not count."""
    return [re.sub(r" *\| *", " | ", line.rstrip()) for line in lines]


def literal(value: Any) -> str:
    """A value as the SQL literal it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("\n", "\\n") + "'"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, (dict, list)):
        return f"json '{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}'"
    return repr(value)


def _file_backends(lines: Sequence[str]) -> tuple[str, ...]:
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    match = _BACKEND.fullmatch(first.strip())
    return _backends(match.group(1), 1) if match else BACKENDS


def _backends(names: str, line: int) -> tuple[str, ...]:
    chosen = tuple(names.split())
    unknown = set(chosen) - set(BACKENDS)
    if unknown or not chosen:
        raise ValueError(f"line {line}: unknown backend in {names!r}")
    return chosen


def _parse_steps(source: Sequence[str], first: int) -> tuple[tuple[Step, ...], tuple[str, ...] | None]:
    steps: list[Step] = []
    backends: tuple[str, ...] | None = None
    connection = FIRST_CONNECTION
    pending: list[str] = []

    def flush() -> None:
        for statement in split_statements("\n".join(pending)):
            text = statement.text
            is_plan = text.startswith("plan:")
            steps.append(
                Step("plan", text.removeprefix("plan:").strip(), connection)
                if is_plan
                else Step("sql", text, connection)
            )
        pending.clear()

    for number, line in enumerate(source, first):
        if line.startswith("#"):
            continue
        if match := _BACKEND.fullmatch(line.strip()):
            backends = _backends(match.group(1), number)
        elif match := _CONNECTION.fullmatch(line.strip()):
            flush()
            connection = match.group(1)
        elif line.strip() == "reopen":
            flush()
            steps.append(Step("reopen", "", connection))
        else:
            pending.append(line)
    flush()
    return tuple(steps), backends


def _run_block(
    block: Block, connections: dict[str, Connection], connect: Callable[[], Connection]
) -> list[str]:
    output: list[str] = []
    last = len(block.steps) - 1
    for position, step in enumerate(block.steps):
        if step.kind == "reopen":
            for connection in connections.values():
                connection.close()
            connections.clear()
            output = ["ok"]
            continue
        if step.connection not in connections:
            connections[step.connection] = connect()
        output, failed = _run_step(step, connections[step.connection])
        shown = block.expected is not None and position == last
        assert shown or not failed, f"block at line {block.line}: {step.text}\n{output[0]}"
    return output


def _run_step(step: Step, connection: Connection) -> tuple[list[str], bool]:
    sql = f"explain query plan {step.text}" if step.kind == "plan" else step.text
    try:
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall() if names else []
    except Error as error:
        return [f"error {error.code.name}: {error}".replace("\n", "\\n")], True
    if step.kind == "plan":
        return [str(row[0]) for row in rows], False
    return (_table(names, rows) if names else ["ok"]), False


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [list(names), *([literal(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]

"""Damaged statements: whatever the text, the answer is rows or an error of ours.

The statements are those of ``tests/logic``, run in their order, so that the tables they
speak of exist.  Before each one, damaged copies of it run in a transaction that is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import quereus_store
from quereus_store.errors import StatusCode
from tests.differential.choices import Choices
from tests.differential.comparing import Difference

FOLDER = Path(__file__).parents[1] / "logic"

_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+(?:\.\d+)?|[<>=!|]+|.", re.DOTALL)
_LITERALS = (
    *("0", "1", "-1", "null", "'a'", "''", "2.5", "true", "x'00'", "9223372036854775808", "1e400"),
    *(":p", "?", "'2024-02-30'", "'P1D'", "'{\"a\":[1]}'", "(1, 2)", "(select 1)", "(select 1, 2)", "*"),
    *(
        "count(*)",
        "max(1)",
        "row_number() over ()",
        "1 collate nocase",
        "cast('a' as integer)",
        "date('now')",
    ),
    *("(values (1), (null))", "random()", "json('[1]')", "1 / 0", "not null", "a.b.c", '""', "x'zz'", "1e"),
)
PARAMETERS = {"p": 1}


def scripts() -> list[tuple[str, list[str]]]:
    """The statements of each logic script that runs on one connection."""
    found = []
    for path in sorted(FOLDER.glob("*.slt")):
        statements = []
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            text = "\n".join(line for line in block.split("\n---")[0].split("\n") if not line.startswith("#"))
            if not re.match(r"(backend|connection \w+|reopen)\b", text):
                text = text.removeprefix("plan:\n")
                statements += [part.strip() for part in re.split(r";\s*(?:\n|$)", text) if part.strip()]
        found.append((path.stem, statements))
    return found


def damaged(statement: str, others: Sequence[str], choices: Choices) -> str:
    """A statement with some tokens taken away, repeated, exchanged or replaced."""
    tokens = _TOKEN.findall(statement)
    for _ in range(1 + choices.below(3)):
        words = [place for place, token in enumerate(tokens) if not token.isspace()]
        if not words:
            break
        place = choices.one_of(words)
        form = choices.below(7)
        if form == 0:
            del tokens[place]
        elif form == 1:
            tokens.insert(place, tokens[place] + " ")
        elif form == 2:
            other = choices.one_of(words)
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif form <= 4:
            tokens[place] = choices.one_of(_LITERALS)
        else:
            foreign = [token for token in _TOKEN.findall(choices.one_of(others)) if not token.isspace()]
            start = choices.below(len(foreign) or 1)
            tokens[place] = " ".join(foreign[start : start + (1 if form == 5 else 1 + choices.below(6))])
    return "".join(tokens)


def attempts(seed: int, only: str | None = None, mutants: int = 3) -> Iterator[tuple[str, str]]:
    """Run the scripts with damaged statements; yields script names with what went wrong."""
    every = scripts()
    pool = [statement for _, statements in every for statement in statements]
    for name, statements in every:
        if only is not None and name != only:
            continue
        choices = Choices(seed)
        connection = quereus_store.connect(":memory:")
        for statement in statements:
            for _ in range(mutants):
                text = damaged(statement, pool, choices)
                try:
                    check_text(connection, text)
                except Difference as problem:
                    yield name, str(problem)
                if connection.in_transaction:
                    connection.rollback()
            try:
                connection.execute(statement).fetchall()
            except quereus_store.Error:
                pass
            except Exception as error:
                yield name, f"{type(error).__name__}: {error}\n{statement}"
        connection.close()


def check_text(connection: quereus_store.Connection, text: str) -> quereus_store.Error | None:
    """Run a text; raises a Difference for anything but rows and proper errors."""
    if not connection.in_transaction:
        connection.begin()
    try:
        connection.execute(text, PARAMETERS if ":" in text else (1, 2, 3)).fetchmany(500)
    except quereus_store.Error as error:
        if error.code == StatusCode.INTERNAL and not error.message.startswith("Internal error: Schema"):
            raise Difference(f"{type(error).__name__}: {error}\n{text}") from error
        return error
    except Exception as error:
        raise Difference(f"{type(error).__name__}: {error}\n{text}") from error
    return None

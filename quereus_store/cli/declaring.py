"""Declared schema files: what ``quereus diff`` and ``quereus apply`` have in common.

Such a file holds ``declare schema name { … }`` statements and nothing else, so reading it changes
nothing.  An error is shown at its place in the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quereus_store.cli.commands.run import read_script
from quereus_store.cli.diagnostics import CommandError, report
from quereus_store.cli.names import quote
from quereus_store.cli.statements import Statement, split_statements
from quereus_store.errors import Error
from quereus_store.sql import nodes, parse_statement

if TYPE_CHECKING:
    from quereus_store import Connection


class Refused(Exception):
    """The user has been told already why the command does not go on."""


@dataclass(frozen=True, slots=True)
class DeclaredSchema:
    """A schema of a file: its name, quoted, and the statement that declares it."""

    name: str
    statement: Statement


def declare(connection: Connection, path: str) -> list[DeclaredSchema]:
    """Run the declarations of a file; the schemas in their order.

    :raises CommandError: for any other statement, and for a file that declares nothing.
    :raises Refused: for a statement that the database refuses.
    """
    found = []
    for statement in split_statements(read_script(Path(path))):
        with at(statement, path):
            tree = parse_statement(statement.text)
            if not isinstance(tree, nodes.DeclareSchema | nodes.DeclareLens):
                raise CommandError(
                    f"{path}: line {statement.line}: a schema file holds DECLARE statements only"
                )
            connection.execute(statement.text)
        if isinstance(tree, nodes.DeclareSchema):
            found.append(DeclaredSchema(quote(tree.name), statement))
    if not found:
        raise CommandError(f"{path}: no schema is declared here (declare schema main {{ … }})")
    return found


def differences(connection: Connection, schema: DeclaredSchema, path: str) -> list[str]:
    """The statements that make a schema as declared.

    :raises Refused: for what is wrong with the declaration.
    """
    with at(schema.statement, path):
        return [step for (step,) in connection.execute(f"diff schema {schema.name}").fetchall()]


@contextmanager
def at(statement: Statement, path: str) -> Iterator[None]:
    """Show an error of the database at its place in a statement of a file."""
    try:
        yield
    except Error as error:
        report(
            error, sys.stderr, text=statement.text, name=path, line=statement.line, column=statement.column
        )
        raise Refused from error

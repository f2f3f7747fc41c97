"""Declared schema files: what ``quereus diff`` and ``quereus apply`` have in common.

Such a file holds one or more ``declare schema name { … }`` statements and nothing else, so running
it changes nothing by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quereus_store.cli.commands.run import read_script
from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.names import quote
from quereus_store.cli.statements import split_statements
from quereus_store.errors import Error, SourcePosition
from quereus_store.sql import nodes, parse_statement

if TYPE_CHECKING:
    from quereus_store import Connection

Declaration = nodes.DeclareSchema | nodes.DeclareLens


def read_declarations(path: str) -> list[nodes.DeclareSchema | nodes.DeclareLens]:
    """The declarations of a file.

    :raises CommandError: for any other statement, and for a file without a declared schema.
    """

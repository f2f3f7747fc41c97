"""Completion in the shell: columns of the tables in the statement, tables, keywords, dot commands."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from quereus_store.cli.shell.completion import SqlCompleter
from quereus_store.cli.shell.dot_commands import DOT_COMMANDS

COLUMNS = {"crew": ["id", "nick", "note"], "ship": ["name", "tons"]}


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ("sel", "", ["select"]),
        ("select n", " from crew", ["nick", "note"]),
        ("select * from cr", "", ["crew", "create"]),
        ("select crew.", "", []),
        ("select crew.n", "", ["nick", "note"]),
        ("select * from ship where to", "", ["tons"]),
        (".ta", "", [".tables"]),
        (".schema sh", "", ["ship"]),
        ("select 1 ", "", []),
    ],
)
def test_what_is_offered_first(before: str, after: str, first: list[str]) -> None:
    completer = SqlCompleter(DOT_COMMANDS)
    completer.set_names(COLUMNS)
    document = Document(before + after, len(before))
    offered = [c.text for c in completer.get_completions(document, CompleteEvent())]
    assert offered[: len(first)] == first
    assert first or not offered

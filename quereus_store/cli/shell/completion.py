"""Completion: keywords, tables, the columns of the tables that the statement names, dot commands.

Names are read once and again after any statement that may have changed them.  Columns of the
tables that already stand in the statement come first, then tables, then keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from quereus_store.sql import keywords

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE_EXPECTED = re.compile(r"\b(?:from|join|into|update|table|view|on|using)\s+\w*$", re.IGNORECASE)

KEYWORDS = tuple(sorted(keywords.ALL))


class SqlCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, dot_commands: Iterable[str]) -> None:
        self._dot_commands = sorted(dot_commands)
        self._columns: Mapping[str, list[str]] = {}

    def set_names(self, columns_by_relation: Mapping[str, list[str]]) -> None:
        """Take the tables and views that exist now, with their columns."""
        self._columns = columns_by_relation

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Offer what the word before the cursor may become."""
        before = document.text_before_cursor
        if before.startswith("."):
            words: Iterable[str] = self._dot_commands if " " not in before else self._columns
            word = before if " " not in before else before.rsplit(" ", 1)[1]
            return self._matching(word, words)
        word = document.get_word_before_cursor(pattern=_WORD)
        return self._matching(word, self._candidates(document.text, before)) if word else []

    def _candidates(self, text: str, before: str) -> list[str]:
        qualifier = re.search(r"(\w+)\.\w*$", before)
        if qualifier:
            return self._columns.get(qualifier.group(1).lower(), self._columns_in(text))
        if _TABLE_EXPECTED.search(before):
            return [*self._columns, *KEYWORDS]
        return [*self._columns_in(text), *self._columns, *KEYWORDS]

    def _columns_in(self, text: str) -> list[str]:
        """Columns of the relations that the text names, in order, each once."""
        named = (self._columns.get(word.lower(), []) for word in _WORD.findall(text))
        return list(dict.fromkeys(column for columns in named for column in columns))

    @staticmethod
    def _matching(word: str, candidates: Iterable[str]) -> list[Completion]:
        prefix = word.lower()
        found = dict.fromkeys(name for name in candidates if name.lower().startswith(prefix))
        return [Completion(name, start_position=-len(word)) for name in found]

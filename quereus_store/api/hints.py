"""Hints: what an error's message, which names the rule, leaves open for those who come from elsewhere.

A hint is a note of the exception (PEP 678): Python's traceback shows it below the message, ``quereus`` below
the caret, and programs find it in ``__notes__``; message, code and position stay as they are::

    quereus_store.errors.ProgrammingError: Column not found: nam (at line 1, column 8)
    hint: did you mean name?

What is asked for in the words of ``sqlite3``, PostgreSQL or DuckDB and is spelled differently here is told
in tables (:mod:`~quereus_store.api.foreign`); names that are not there are compared with those that are.
All of it runs when a statement has failed, and looks at the message first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches

from quereus_store.api import foreign
from quereus_store.errors import Error, StatusCode
from quereus_store.functions.registry import Function, FunctionRegistry
from quereus_store.schema.objects import Catalog, Schema, TableSchema, ViewSchema, fold

Hint = Callable[[Error, str, Catalog, FunctionRegistry], str | None]

_WORD = re.compile(r"\w+")


def add_hint(error: Error, sql: str, catalog: Callable[[], Catalog], functions: FunctionRegistry) -> None:
    """Give the error of a statement a note, if anything helpful is known about it."""
    for pattern, hint in _HINTS:
        if pattern.match(error.message):
            # Whatever goes wrong here, what went wrong there is what the program has to be told.
            with suppress(Exception):
                said = hint(error, sql, catalog(), functions)
                if said is not None:
                    error.add_note(f"hint: {said}")
            return


def add_file_hint(error: Error, path: str) -> None:
    """Give the error of opening a file a note, if the file is another database's."""
    if error.code is not StatusCode.NOTADB:
        return
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(16)
        name = next((name for magic, name in foreign.FILES.items() if magic in head), None)
        if name is not None:
            error.add_note(
                f"hint: it is a {name} file; quereus import loads tables from CSV, JSON and Parquet files"
            )


def _at(error: Error, sql: str) -> str:
    """The statement from the offending token on."""
    if error.position is None:
        return ""
    lines = sql.splitlines()[error.position.line - 1 :]
    return "\n".join([lines[0][error.position.column - 1 :], *lines[1:]]) if lines else ""


# --- syntax -------------------------------------------------------------------------------------------------


def _of_syntax(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    rest = _at(error, sql)
    before = sql[: len(sql) - len(rest)] if rest else sql
    for at, after, hint in foreign.SYNTAX:
        if at.match(rest) and after.search(before):
            return hint
    close = _close(_last_word(error.message, r"[gG]ot '(\w+)'"), foreign.WORDS, 0.74)
    return _meant(close) if close else None


# --- names --------------------------------------------------------------------------------------------------


def _quoted(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


def _close(name: str, known: Iterable[str], cutoff: float = 0.78) -> list[str]:
    by_folded = {fold(candidate): candidate for candidate in known}
    return [by_folded[found] for found in get_close_matches(fold(name), by_folded, n=2, cutoff=cutoff)]


def _meant(names: Iterable[str]) -> str:
    return f"did you mean {_quoted(names)}?"


def _last_word(message: str, pattern: str) -> str:
    found = re.search(pattern, message)
    return found[1] if found else ""


def _relations(schema: Schema) -> Iterator[TableSchema | ViewSchema]:
    yield from schema.tables.values()
    yield from schema.views.values()


def _of_table(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    name = _last_word(error.message, r"(?:Table (?:not found: )?'?)([\w.]+)")
    if "Did you mean" in error.message:
        return None
    if any(part in foreign.CATALOGS or part.startswith("pragma_") for part in fold(name).split(".")):
        return foreign.CATALOG_HINT
    if functions.knows(name):
        return f"{name} is a function of rows: write {name}(…)"
    names = [
        (f"{schema.name}." if schema.name != "main" else "") + known.name
        for schema in catalog.schemas.values()
        for known in _relations(schema)
    ]
    close = _close(name, names)
    return _meant(close) if close else None


def _columns(sql: str, catalog: Catalog) -> Iterator[str]:
    """The columns of the tables that the statement names."""
    words = {fold(word) for word in _WORD.findall(sql)}
    for schema in catalog.schemas.values():
        for name, table in schema.tables.items():
            if name in words:
                yield from (column.name for column in table.columns)


def _of_column(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    name = _last_word(error.message, r"(?:Column (?:not found: )?'?)([^']+)") or _last_word(
        error.message, r"(\w+) isn't a column"
    )
    rest = _at(error, sql)
    if rest.startswith('"') and not any(fold(name) == fold(column) for column in _columns(sql, catalog)):
        return f"double quotes are for names; a text has single ones: '{name}'"
    if fold(name) in foreign.ROW_IDS:
        return "rows have no hidden number; declare a key, and read what it got by RETURNING"
    close = [column for column in _close(name, _columns(sql, catalog)) if fold(column) != fold(name)]
    if close:
        return _meant(close)
    alias = re.search(rf"\bas\s+\"?{re.escape(name)}\"?(?!\w)", sql, re.IGNORECASE)
    if alias and re.search(r"\bwhere\b", sql[: len(sql) - len(rest)], re.IGNORECASE):
        return (
            f"WHERE comes before the select list; {name} is known in GROUP BY, HAVING, QUALIFY and ORDER BY"
        )
    return None


def _arguments(function: Function) -> str:
    if function.maximum is None:
        return f"{function.minimum} or more"
    if function.minimum == function.maximum:
        return str(function.minimum)
    return f"{function.minimum} to {function.maximum}"


def _of_function(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    name, _, _ = _last_word(error.message, r"Function not found: (\S+)").rpartition("/")
    known = foreign.FUNCTIONS.get(fold(name))
    if known is not None:
        return known
    if functions.knows(name):
        widths = [_arguments(function) for function in functions if fold(function.name) == fold(name)]
        return f"{name} takes {_quoted(widths)} arguments"
    close = _close(name, {function.name for function in functions})
    if close:
        return _meant(close)
    return "select name from function_info() lists all functions; create_function adds one in Python"


def _of_pragma(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    if error.__cause__ is not None and "option" not in str(error.__cause__).lower():
        return None
    return foreign.PRAGMAS.get(fold(_last_word(error.message, r"Unknown pragma: (\w+)")))


# --- values -------------------------------------------------------------------------------------------------


def _of_not_null(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    details = error.details
    table = catalog.table(str(details.get("schema")), str(details.get("table")))
    if table is None or len(details.get("columns", ())) != 1:
        return None
    (name,) = details["columns"]
    key = [table.columns[part.column] for part in table.primary_key.parts]
    if [column.name for column in key] == [name] and key[0].type.name == "INTEGER":
        return (
            f"no key numbers itself; give {name}, or declare it with "
            f"default (coalesce((select max({name}) from {table.name}), 0) + mutation_ordinal())"
        )
    return f"a column takes NULL if it is declared so: {name} … null"


def _of_new_column(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    return "declare the column null, or give it a DEFAULT for the rows that are there"


def _of_foreign_key(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    details = error.details
    table = catalog.table(str(details.get("schema")), str(details.get("table")))
    if details.get("kind") != "foreign key" or table is None:
        return None
    for key in table.foreign_keys:
        if fold(str(key.name)) == fold(str(details["constraint"])):
            columns, values = ", ".join(details["columns"]), ", ".join(map(repr, details.get("values", ())))
            return f"a foreign key: {key.parent_table} has no row for {columns} = {values}"
    return None


def _of_value(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    return foreign.CLASSES.get(_last_word(error.message, r"got (\w+)$"))


def _of_parameters(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    return "parameters are a tuple, a list or a dict; a tuple of one has a comma: (value,)"


def _of_default(error: Error, sql: str, catalog: Catalog, functions: FunctionRegistry) -> str | None:
    return (
        "or bind the value; or set pragma nondeterministic_schema = true where rows are declared and inserted"
    )


_HINTS: tuple[tuple[re.Pattern[str], Hint], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        ("NOT NULL constraint failed: ", _of_not_null),
        ("NOT NULL constraint failed for column", _of_new_column),
        ("CHECK constraint failed: ", _of_foreign_key),
        ("bindAll: invalid value", _of_value),
        ("Invalid parameters type", _of_parameters),
        (r"Table ('\S+' )?not found|Table '?\S+ not found", _of_table),
        (r"Column (not found: |'\S+' not found)|\S+ isn't a column", _of_column),
        ("Function not found: ", _of_function),
        ("Unknown pragma: ", _of_pragma),
        ("Non-deterministic expression not allowed in DEFAULT", _of_default),
        ("Expected |TEMP/|AUTOINCREMENT|Lexer error", _of_syntax),
    )
)

"""Bound parameters: their types, which choose the prepared statement, and documents made our own.

A list or a dictionary is a JSON document.  What is bound is a copy of it, checked to be
JSON throughout, so that neither a foreign object nor a later change by the caller gets
into a table.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from operator import itemgetter
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.json import copy_document

_DOCUMENTS = frozenset({list, dict})


def bind(parameters: Any) -> tuple[Any, Any]:
    """The types of parameters, by which statements are kept, and the parameters with documents copied.

    Raises MISUSE for what is no sequence or mapping, and for documents that are not JSON throughout.
    """
    kind = type(parameters)
    if kind is tuple or kind is list:
        signature: tuple[Any, ...] = tuple(map(type, parameters))
        if list in signature or dict in signature:
            return signature, own_documents(parameters)
        return signature, parameters
    if isinstance(parameters, Mapping):
        kinds = {name: type(value) for name, value in parameters.items()}
        if _DOCUMENTS.isdisjoint(kinds.values()):
            return tuple(kinds.items()), parameters
        owned = {name: _owned(value, f"for key '{name}'") for name, value in parameters.items()}
        return tuple(kinds.items()), owned
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        return bind(tuple(parameters))
    raise sql_error(StatusCode.MISUSE, "Invalid parameters type for bindAll. Use array or object.")


def own_documents(parameters: Sequence[Any]) -> tuple[Any, ...]:
    """Positional parameters with documents copied; raises MISUSE for one that is not JSON throughout."""
    return tuple([_owned(value, f"at index {index}") for index, value in enumerate(parameters)])


def holds_documents(signature: Sequence[frozenset[type]]) -> bool:
    """Whether a batch of these column types has documents."""
    return any(not _DOCUMENTS.isdisjoint(kinds) for kinds in signature)


def _owned(value: Any, where: str) -> Any:
    if type(value) is not list and type(value) is not dict:
        return value
    try:
        return copy_document(value)
    except ValueError as reason:
        raise sql_error(
            StatusCode.MISUSE, f"bindAll: invalid value {where}: expected SqlValue, got {reason}"
        ) from None


def column_signature(batch: list[tuple[Any, ...]]) -> tuple[frozenset[type], ...] | None:
    """The types of a batch's columns; None if its rows are not equally wide."""
    width = len(batch[0])
    if set(map(len, batch)) != {width}:
        return None
    return tuple(frozenset(map(type, map(itemgetter(slot), batch))) for slot in range(width))


def first_of_kind(batch: list[tuple[Any, ...]], slot: int, kinds: Container[type]) -> Any:
    """The first value of one of these types in a column."""
    return next(row[slot] for row in batch if type(row[slot]) in kinds)

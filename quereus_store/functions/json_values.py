"""How JSON functions read documents and put values into them (functions, section 7).

Two rules serve the whole family.  *Reading*: text is parsed, everything else that JSON has is itself, NULL is
the JSON null; a blob or a text that is no JSON is :data:`INVALID`.  An argument whose static type is JSON is
already a document, so that the stored string ``7`` is never read as a number: :func:`reader` picks the rule.
*Embedding* (:func:`embed`): a value goes in as itself, text as a string; what JSON lacks becomes null.

Changes go along a path and copy only the containers on it; documents are never changed in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from quereus_store.types.json import (
    MISSING,
    JsonPath,
    JsonStep,
    follow_json_path,
    parse_json,
    parse_json_path,
)
from quereus_store.types.logical import JSON, LogicalType
from quereus_store.types.values import Value


class _Invalid:
    """What reading gives for something that is no JSON."""

    def __repr__(self) -> str:
        return "INVALID"


INVALID = _Invalid()

Reader = Callable[[Value], Any]


def read_document(value: Value) -> Any:
    """The document that a value is or spells; :data:`INVALID` when it is none."""
    kind = type(value)
    if kind is str:
        try:
            return parse_json(value)  # type: ignore[arg-type]
        except ValueError:
            return INVALID
    if kind is bytes or (kind is float and not math.isfinite(value)):  # type: ignore[arg-type]
        return INVALID
    return value


def keep_document(value: Value) -> Any:
    """A value of static type JSON: already a document."""
    return value


def reader(types: Sequence[LogicalType]) -> Reader:
    """How to read the first of these arguments."""
    return keep_document if types and types[0] is JSON else read_document


def embed(value: Value) -> Any:
    """The value as part of a document: blobs, infinities and NaN become null."""
    kind = type(value)
    if kind is bytes or (kind is float and not math.isfinite(value)):  # type: ignore[arg-type]
        return None
    return value


steps_of: Callable[[str], JsonPath | None] = lru_cache(maxsize=1024)(parse_json_path)


def value_at(document: Any, path: str) -> Any:
    """The value at a path, or ``MISSING``; an invalid path leads nowhere."""
    steps = steps_of(path)
    return MISSING if steps is None else follow_json_path(document, steps)


Change = Callable[[Any, JsonStep], Any]


def changed_at(document: Any, steps: JsonPath, change: Change) -> Any:
    """A copy of the document in which ``change(parent, last step)`` replaced the container at the path's end.

    ``change`` gets a fresh copy of that container and changes it as it likes.  The document itself comes back
    where the path leads to no container.
    """
    parent = follow_json_path(document, steps[:-1])
    if type(parent) not in (dict, list):
        return document
    return _copied_along(document, steps, change)


def _copied_along(container: Any, steps: JsonPath, change: Change) -> Any:
    copy = container.copy()
    if len(steps) == 1:
        change(copy, steps[0])
    else:
        copy[steps[0]] = _copied_along(container[steps[0]], steps[1:], change)
    return copy


def put(container: Any, step: JsonStep, value: Any, *, create: bool, overwrite: bool, pad: bool) -> None:
    """Put a value into a container, as far as the flags allow.

    ``pad`` fills an array up with nulls when the index lies beyond its end.
    """
    if type(container) is dict and type(step) is str:
        if overwrite if step in container else create:
            container[step] = value
    elif type(container) is list and type(step) is int:
        if step < len(container):
            if overwrite:
                container[step] = value
        elif create and (step == len(container) or pad):
            container.extend([None] * (step - len(container)))
            container.append(value)


def drop(container: Any, step: JsonStep) -> None:
    """Take a member or an element out of a container, if it is there."""
    if type(container) is dict and type(step) is str:
        container.pop(step, None)
    elif type(container) is list and type(step) is int and step < len(container):
        del container[step]

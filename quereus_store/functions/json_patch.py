"""RFC 6902 patches: a list of add, remove, replace, move, copy and test operations on a document.

A patch is done whole or not at all: :func:`apply_patch` answers ``MISSING`` as soon as an operation is
malformed, misses its target or is a test that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.functions.json_values import changed_at
from quereus_store.types.json import MISSING, JsonPath, JsonStep, follow_json_path, json_equal
from quereus_store.types.values import int_from_text

_END = -1


class _Failed(Exception):
    """An operation that cannot be done."""


def _pointer(document: Any, text: Any) -> JsonPath:
    """The steps of a JSON pointer within a document; ``-`` is the place after an array's last element."""
    if type(text) is not str or (text and not text.startswith("/")):
        raise _Failed
    steps: list[JsonStep] = []
    current = document
    for part in text.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        step: JsonStep = name
        if type(current) is list:
            step = _index(name)
        steps.append(step)
        current = MISSING if step == _END else follow_json_path(current, (step,))
    return tuple(steps)


def _index(name: str) -> int:
    if name == "-":
        return _END
    if not (name.isascii() and name.isdigit()) or (len(name) > 1 and name[0] == "0"):
        raise _Failed
    return int_from_text(name)


def _existing(document: Any, steps: JsonPath) -> Any:
    found = MISSING if _END in steps else follow_json_path(document, steps)
    if found is MISSING:
        raise _Failed
    return found


def _added(document: Any, steps: JsonPath, value: Any) -> Any:
    if not steps:
        return value
    parent = _existing(document, steps[:-1])
    last = steps[-1]
    if type(parent) is list:
        place = len(parent) if last == _END else last
        if type(place) is not int or place > len(parent):
            raise _Failed
        return changed_at(document, (*steps[:-1], place), lambda items, at: items.insert(at, value))
    if type(parent) is not dict:
        raise _Failed
    return changed_at(document, steps, lambda members, name: members.__setitem__(name, value))


def _removed(document: Any, steps: JsonPath) -> Any:
    _existing(document, steps)
    if not steps:
        return None
    return changed_at(document, steps, lambda container, step: container.__delitem__(step))


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _Failed
    return operation["value"]


def _add(document: Any, operation: dict[str, Any]) -> Any:
    return _added(document, _pointer(document, operation.get("path")), _value(operation))


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    return _removed(document, _pointer(document, operation.get("path")))


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    steps, value = _pointer(document, operation.get("path")), _value(operation)
    _existing(document, steps)
    if not steps:
        return value
    return changed_at(document, steps, lambda container, step: container.__setitem__(step, value))


def _move(document: Any, operation: dict[str, Any]) -> Any:
    origin = _pointer(document, operation.get("from"))
    value = _existing(document, origin)
    remaining = _removed(document, origin)
    return _added(remaining, _pointer(remaining, operation.get("path")), value)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    value = _existing(document, _pointer(document, operation.get("from")))
    return _added(document, _pointer(document, operation.get("path")), value)


def _test(document: Any, operation: dict[str, Any]) -> Any:
    found = _existing(document, _pointer(document, operation.get("path")))
    if not json_equal(found, _value(operation)):
        raise _Failed
    return document


_OPERATIONS: Mapping[Any, Callable[[Any, dict[str, Any]], Any]] = MappingProxyType(
    {"add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test}
)


def apply_patch(document: Any, operations: Any) -> Any:
    """The patched document; ``MISSING`` if any operation is malformed or cannot be done."""
    if type(operations) is not list:
        return MISSING
    try:
        for operation in operations:
            name = operation.get("op") if type(operation) is dict else None
            if type(name) is not str or name not in _OPERATIONS:
                return MISSING
            document = _OPERATIONS[name](document, operation)
    except _Failed:
        return MISSING
    return document

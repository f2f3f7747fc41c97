"""The shape language of ``json_schema``: types compiled to predicates (functions, section 7.1).

::

    union        = intersection { "|" intersection } ;
    intersection = suffixed { "&" suffixed } ;
    suffixed     = primary { "[" "]" } ;
    primary      = name | literal | "(" union ")" | "[" elements "]" | "{" members "}" ;
    element      = [ "..." ] union [ "?" ] ;
    member       = key [ "?" ] ":" union | "[" name ":" "string" "]" ":" union ;

A definition becomes one Python predicate over documents, and compiled definitions are kept.  A definition
that cannot be read matches nothing.  ``integer`` is a number without a fraction (sql-ddl, section 7.4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from quereus_store.types.values import int_from_text

Predicate = Callable[[Any], bool]

_TOKEN = re.compile(
    r"""(?:\s+|//[^\n]*)*
    (?: (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<mark>\.\.\.|[|&()\[\]{}:,;?])
      | (?P<end>\Z) )""",
    re.VERBOSE,
)

Token = tuple[str, str]


class _Malformed(Exception):
    """The definition is not in the language."""


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _Malformed
        kind = match.lastgroup or "end"
        tokens.append((kind, match[kind]))
        if kind == "end":
            return tokens
        position = match.end()


def _anything(document: Any) -> bool:
    return True


def _nothing(document: Any) -> bool:
    return False


def _whole(document: Any) -> bool:
    return type(document) is int or (type(document) is float and document.is_integer())


_NAMED: Mapping[str, Predicate] = MappingProxyType(
    {
        "string": lambda document: type(document) is str,
        "number": lambda document: type(document) in (int, float),
        "integer": _whole,
        "boolean": lambda document: type(document) is bool,
        "null": lambda document: document is None,
        "any": _anything,
        "unknown": _anything,
        "object": lambda document: type(document) in (dict, list),
        "true": lambda document: document is True,
        "false": lambda document: document is False,
        "bigint": _nothing,
        "symbol": _nothing,
        "undefined": _nothing,
    }
)


def _equals(value: Any) -> Predicate:
    return lambda document: type(document) is not bool and document == value


def _text_of(literal: str) -> str:
    """The text of a quoted literal, escapes as in JSON."""
    body = literal[1:-1]
    if literal[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{body}"'))
    except ValueError:
        raise _Malformed from None


def _number_of(literal: str) -> float | int:
    return int_from_text(literal) if literal.lstrip("-").isdigit() else float(literal)


def _array_of(item: Predicate) -> Predicate:
    return lambda document: type(document) is list and all(map(item, document))


def _tuple_of(required: list[Predicate], optional: list[Predicate], rest: Predicate | None) -> Predicate:
    fixed = [*required, *optional]

    def matches(document: Any) -> bool:
        if type(document) is not list or len(document) < len(required):
            return False
        if rest is None and len(document) > len(fixed):
            return False
        if not all(item(value) for item, value in zip(fixed, document, strict=False)):
            return False
        return rest is None or rest(document[len(fixed) :])

    return matches


def _object_of(
    required: dict[str, Predicate], optional: dict[str, Predicate], every: Predicate | None
) -> Predicate:
    def matches(document: Any) -> bool:
        if type(document) is not dict:
            return False
        return (
            all(name in document and shape(document[name]) for name, shape in required.items())
            and all(shape(document[name]) for name, shape in optional.items() if name in document)
            and (every is None or all(map(every, document.values())))
        )

    if not required and not optional and every is None:
        return lambda document: document is not None
    return matches


class _Parser:
    """Recursive descent over the tokens of one definition."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def definition(self) -> Predicate:
        shape = self._union()
        if self._peek()[0] != "end":
            raise _Malformed
        return shape

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._position += 1
        return token

    def _accept(self, mark: str) -> bool:
        if self._peek() == ("mark", mark):
            self._position += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise _Malformed

    def _union(self) -> Predicate:
        self._accept("|")
        shapes = [self._intersection()]
        while self._accept("|"):
            shapes.append(self._intersection())
        return shapes[0] if len(shapes) == 1 else lambda document: any(shape(document) for shape in shapes)

    def _intersection(self) -> Predicate:
        shapes = [self._suffixed()]
        while self._accept("&"):
            shapes.append(self._suffixed())
        return shapes[0] if len(shapes) == 1 else lambda document: all(shape(document) for shape in shapes)

    def _suffixed(self) -> Predicate:
        shape = self._primary()
        while self._peek() == ("mark", "[") and self._peek(1) == ("mark", "]"):
            self._position += 2
            shape = _array_of(shape)
        return shape

    def _primary(self) -> Predicate:
        kind, text = self._next()
        if kind == "name" and text in _NAMED:
            return _NAMED[text]
        if kind == "number":
            return _equals(_number_of(text))
        if kind == "text":
            return _equals(_text_of(text))
        if text == "(" and kind == "mark":
            shape = self._union()
            self._expect(")")
            return shape
        if text == "[" and kind == "mark":
            return self._tuple()
        if text == "{" and kind == "mark":
            return self._object()
        raise _Malformed

    def _tuple(self) -> Predicate:
        required: list[Predicate] = []
        optional: list[Predicate] = []
        rest: Predicate | None = None
        while not self._accept("]"):
            if rest is not None:
                raise _Malformed
            spread = self._accept("...")
            shape = self._union()
            if spread:
                rest = shape
            elif self._accept("?"):
                optional.append(shape)
            elif optional:
                raise _Malformed
            else:
                required.append(shape)
            if self._peek() != ("mark", "]"):
                self._expect(",")
        return _tuple_of(required, optional, rest)

    def _object(self) -> Predicate:
        required: dict[str, Predicate] = {}
        optional: dict[str, Predicate] = {}
        every: Predicate | None = None
        while not self._accept("}"):
            if self._accept("["):
                every = self._index_signature()
            else:
                name = self._key()
                members = optional if self._accept("?") else required
                self._expect(":")
                members[name] = self._union()
            while self._accept(",") or self._accept(";"):
                pass
        return _object_of(required, optional, every)

    def _key(self) -> str:
        kind, text = self._next()
        if kind == "name":
            return text
        if kind == "text":
            return _text_of(text)
        raise _Malformed

    def _index_signature(self) -> Predicate:
        if self._next()[0] != "name":
            raise _Malformed
        self._expect(":")
        if self._next() != ("name", "string"):
            raise _Malformed
        self._expect("]")
        self._expect(":")
        return self._union()


@lru_cache(maxsize=256)
def _compiled(definition: str) -> Predicate:
    try:
        return _Parser(definition).definition()
    except (_Malformed, RecursionError):
        return _nothing


def matches_schema(document: Any, definition: str) -> bool:
    """Whether a document has the shape that the definition describes; a malformed one matches nothing."""
    return _compiled(definition)(document)

r"""Patterns: LIKE, GLOB and REGEXP as functions of the text alone.

A pattern is compiled once, into a callable from C where there is one: ``abc%`` becomes
``str.startswith``, ``%abc%`` a substring test, and only what needs one a regular expression.  So a filter
over a column costs one call per row, and :func:`like_template` spares even that by giving the test as
inline source.

Wildcards cross line breaks and ``_`` or ``?`` is one code point; LIKE and GLOB look at case and ignore
collations (types-and-values, section 10).  NULL and the rendering of operands as text are the caller's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, groupby

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.templates import Template, global_name

Matcher = Callable[[str], object]

_ANY_RUN = object()
_ANY_ONE = object()


def _like_tokens(pattern: str, escape: str | None) -> list[object]:
    """A pattern as literal characters and the two wildcards; an escaped character is a literal."""
    if escape is not None and len(escape) != 1:
        raise sql_error(StatusCode.ERROR, "ESCAPE expression must be a single character")
    tokens: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            # An escape at the very end stands for itself.
            tokens.append(next(characters, character))
        elif character == "%":
            tokens.append(_ANY_RUN)
        elif character == "_":
            tokens.append(_ANY_ONE)
        else:
            tokens.append(character)
    return tokens


def _simple_parts(tokens: list[object]) -> tuple[bool, str, bool] | None:
    """``(leading %, literal, trailing %)`` for a pattern whose wildcards stand only at the ends."""
    leading = bool(tokens) and tokens[0] is _ANY_RUN
    trailing = bool(tokens) and tokens[-1] is _ANY_RUN
    inner = [token for token in tokens[leading : len(tokens) - trailing] if isinstance(token, str)]
    if len(inner) != len(tokens) - leading - trailing:
        return None
    return leading, "".join(inner), trailing


def _accept(text: str) -> bool:
    return True


def _compile(tokens: list[object], flags: int) -> Matcher:
    pieces = [re.escape(token) if isinstance(token, str) else token for token in tokens]
    return re.compile(_expression(pieces), flags | re.DOTALL).fullmatch


def _expression(pieces: Iterable[object]) -> str:
    """The regular expression of a pattern: expressions of one character each, and the two wildcards.

    What stands between two runs is of a fixed length, so its first place is as good as any later one.  Hence
    the atomic groups: without them, many runs over a long text would be tried in all their combinations.
    """
    first, *others = [
        "".join("." if piece is _ANY_ONE else str(piece) for piece in part)
        for is_run, part in groupby(chain(("",), pieces, ("",)), lambda piece: piece is _ANY_RUN)
        if not is_run
    ]
    if not others:
        return first
    *inner, last = others
    return f"{first}{''.join(f'(?>.*?{part})' for part in inner)}.*{last}"


def _equals(literal: str) -> Matcher:
    def match(text: str) -> bool:
        return text == literal

    return match


@lru_cache(maxsize=512)
def like_matcher(pattern: str, escape: str | None = None, case_insensitive: bool = False) -> Matcher:
    """The test of ``text LIKE pattern [ESCAPE escape]`` (ILIKE if asked); a true or false object.

    Raises ERROR for an ESCAPE that is not one character.
    """
    tokens = _like_tokens(pattern, escape)
    if case_insensitive:
        return _compile(tokens, re.IGNORECASE)
    parts = _simple_parts(tokens)
    if parts is None:
        return _compile(tokens, 0)
    leading, literal, trailing = parts
    if leading and trailing:
        return operator.methodcaller("__contains__", literal) if literal else _accept
    if trailing:
        return operator.methodcaller("startswith", literal)
    if leading:
        return operator.methodcaller("endswith", literal) if literal else _accept
    return _equals(literal)


def like_template(pattern: str, escape: str | None = None, case_insensitive: bool = False) -> Template:
    """The test of a constant LIKE pattern as inline source over a text ``{0}``; true or false."""
    parts = None if case_insensitive else _simple_parts(_like_tokens(pattern, escape))
    if parts is None:
        name = global_name("_ilike_" if case_insensitive else "_like_", f"{escape or ''}\n{pattern}")
        matcher = like_matcher(pattern, escape, case_insensitive)
        return Template(f"({name}({{0}}) is not None)", {name: matcher})
    leading, literal, trailing = parts
    quoted = repr(literal).replace("{", "{{").replace("}", "}}")
    if leading and trailing:
        return Template(f"({quoted} in {{0}})")
    if trailing:
        return Template(f"{{0}}.startswith({quoted})")
    if leading:
        return Template(f"{{0}}.endswith({quoted})")
    return Template(f"({{0}} == {quoted})")


def like_prefix(pattern: str, escape: str | None = None) -> str:
    """The literal that every match of a LIKE pattern begins with: the seek range of an index."""
    prefix: list[str] = []
    for token in _like_tokens(pattern, escape):
        if not isinstance(token, str):
            break
        prefix.append(token)
    return "".join(prefix)


def _glob_class(pattern: str, start: int) -> tuple[str, int] | None:
    """The expression of the class that opens at ``start`` and where it ends; ``None`` if unclosed."""
    position = start + 1
    negated = pattern.startswith("^", position)
    position += negated
    # A ] that stands first is a member.
    end = pattern.find("]", position + 1)
    if end < 0:
        return None
    members = pattern[position:end]
    escaped = re.sub(r"([\\\]\[^&~|])", r"\\\1", members)
    return f"[{'^' if negated else ''}{escaped}]", end + 1


@lru_cache(maxsize=512)
def glob_matcher(pattern: str) -> Matcher:
    """The test of ``text GLOB pattern``: ``*``, ``?``, ``[a-c]``, ``[^a]``; an unclosed ``[`` is literal."""
    pieces: list[object] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            pieces.append(_ANY_RUN)
        elif character == "?":
            pieces.append(_ANY_ONE)
        elif character == "[" and (found := _glob_class(pattern, position - 1)):
            pieces.append(found[0])
            position = found[1]
        else:
            pieces.append(re.escape(character))
    try:
        return re.compile(_expression(pieces), re.DOTALL).fullmatch
    except re.error:
        # A range that runs backwards, [c-a], holds no character: nothing matches.
        return re.compile(r"(?!)").fullmatch


@lru_cache(maxsize=512)
def regexp_matcher(pattern: str) -> Matcher:
    """The test of ``text REGEXP pattern``: the expression is found anywhere; raises ERROR for a bad one."""
    try:
        return re.compile(pattern).search
    except re.error as cause:
        raise sql_error(StatusCode.ERROR, f"Invalid regular expression '{pattern}': {cause}") from cause

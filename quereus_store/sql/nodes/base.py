"""The root of the syntax tree's classes.

Every node is a frozen, slotted dataclass, so a tree is a value: it can be
compared, hashed, kept as a dictionary key and shared between threads.  Where a
node stood in the text (``position``) and which slice of a script a statement
covers (``span``) are kept for messages, and take no part in comparison: two
spellings of one tree are equal.
"""

from __future__ import annotations

from dataclasses import field

from quereus_store.errors import SourcePosition
from quereus_store.records import record


@record(frozen=True, slots=True)
class SourceSpan:
    """A statement's slice of its script: ``script[span.start:span.end]``, without the semicolon."""

    start: int
    end: int


@record(frozen=True, slots=True)
class Node:
    """Anything in a syntax tree."""

    position: SourcePosition | None = field(default=None, compare=False, kw_only=True, repr=False)


@record(frozen=True, slots=True)
class Expression(Node):
    """Anything that has a value."""


@record(frozen=True, slots=True)
class Statement(Node):
    """Anything that can be executed on its own."""

    span: SourceSpan | None = field(default=None, compare=False, kw_only=True, repr=False)


@record(frozen=True, slots=True)
class Relation(Node):
    """Anything that may stand in a FROM clause."""


@record(frozen=True, slots=True)
class ObjectName(Node):
    """The name of a schema object, as written: ``t`` or ``s.t``."""

    name: str
    schema: str | None = None

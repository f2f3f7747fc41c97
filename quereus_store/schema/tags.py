"""Tags: the registry of reserved keys, and the verbs that change a set of tags.

Keys that begin with ``quereus.`` mean something to the engine, so a misspelt or misplaced one is
refused.  Each reserved key, or family of keys with a free last part, has the *sites* where it may
stand and a rule for its value.  All other keys are the user's own.

Chapter: alter-and-ddl-lifecycle, section 13.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.schema.clauses import tags_of
from quereus_store.schema.objects import NO_TAGS, Tags
from quereus_store.sql import nodes

PREFIX = "quereus."


class TagSite(Enum):
    """Where tags can stand; the value is what messages call it."""

    TABLE = "a basis table"
    COLUMN = "a physical column"
    CONSTRAINT = "a physical constraint"
    INDEX = "a physical index"
    VIEW = "a view declaration"
    LOGICAL_TABLE = "a logical table"
    LOGICAL_CONSTRAINT = "a logical constraint"
    LOGICAL_COLUMN = "a logical column"
    STATEMENT = "a DML statement"


ValueRule = Callable[[Any], str | None]
"""What is wrong with a value, or None."""


@dataclass(frozen=True, slots=True)
class ReservedTag:
    """A reserved key, or family of keys if ``key`` ends in a dot."""

    key: str
    sites: tuple[TagSite, ...]
    rule: ValueRule


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a text value"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be a boolean value"


def _one_of(*allowed: str) -> ValueRule:
    def rule(value: Any) -> str | None:
        if value in allowed:
            return None
        return f"has invalid value {value}; expected one of: {', '.join(allowed)}"

    return rule


_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")


def _identifiers(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return "must be a non-empty comma-separated list of identifiers"
    for segment in map(str.strip, value.split(",")):
        if not _SEGMENT.match(segment):
            return f"must be a comma-separated list of identifiers (offending segment: '{segment}')"
    return None


def _eviction(value: Any) -> str | None:
    if isinstance(value, str) and value.lower() in ("never", "immediate"):
        return None
    try:
        if not isinstance(value, bool) and value is not None and float(value) >= 0:
            return None
    except ValueError:
        pass
    return "must be 'never', 'immediate', or a non-negative number of milliseconds"


_T, _C, _K, _I, _V = TagSite.TABLE, TagSite.COLUMN, TagSite.CONSTRAINT, TagSite.INDEX, TagSite.VIEW
_LT, _LK, _LC = TagSite.LOGICAL_TABLE, TagSite.LOGICAL_CONSTRAINT, TagSite.LOGICAL_COLUMN

RESERVED_TAGS: tuple[ReservedTag, ...] = (
    ReservedTag("quereus.id", (_T, _C, _V, _I, _K), _text),
    ReservedTag("quereus.previous_name", (_T, _C, _V, _I, _K), _text),
    ReservedTag("quereus.expose_implicit_index", (_K,), _boolean),
    ReservedTag("quereus.engine_managed", (_T,), _boolean),
    ReservedTag("quereus.sync.replicate", (_V, _T), _boolean),
    ReservedTag("quereus.sync.evict", (_V, _T), _eviction),
    ReservedTag("quereus.lens.ack.", (_LT, _LK), _text),
    ReservedTag("quereus.lens.access.", (_LT,), _text),
    ReservedTag("quereus.lens.writable", (_LC,), _boolean),
    ReservedTag("quereus.lens.policy.error-on", (_LT,), _text),
    ReservedTag("quereus.lens.policy.require-ack", (_LT,), _text),
    *(
        ReservedTag(f"quereus.lens.decomp.{part}.", (_T,), _text)
        for part in ("logical", "anchor", "member", "col", "pivot")
    ),
    ReservedTag("quereus.lens.decomp.role.", (_T,), _one_of("primary-storage", "auxiliary-access")),
    ReservedTag("quereus.lens.decomp.presence.", (_T,), _one_of("mandatory", "optional")),
    ReservedTag("quereus.lens.decomp.keykind.", (_T,), _one_of("surrogate", "logical-tuple")),
    ReservedTag("quereus.lens.decomp.key.", (_T,), _identifiers),
)


def find_reserved(key: str) -> ReservedTag | None:
    """The registry's entry for a key; a family's key needs a last part of its own."""
    for reserved in RESERVED_TAGS:
        family = reserved.key.endswith(".")
        if (key.startswith(reserved.key) and key != reserved.key) if family else key == reserved.key:
            return reserved
    return None


def check_tag(key: str, value: Any, site: TagSite, position: SourcePosition | None = None) -> None:
    """A reserved key must be known, in a place where it may be, with a value it may have (ERROR)."""
    if not key.startswith(PREFIX):
        return
    reserved = find_reserved(key)
    subject = f"tag '{key}' on {site.value}"
    if reserved is None:
        message = f"Unknown reserved {subject}: no such key in the reserved 'quereus.*' namespace"
        raise sql_error(StatusCode.ERROR, message, position)
    if site not in reserved.sites:
        labels = ", ".join(allowed.value for allowed in reserved.sites)
        message = f"Reserved tag '{key}' is not allowed on {site.value}; it is valid only on: {labels}"
        raise sql_error(StatusCode.ERROR, message, position)
    complaint = reserved.rule(value)
    if complaint is not None:
        raise sql_error(StatusCode.ERROR, f"Reserved {subject} {complaint}", position)


def check_tags(tags: Iterable[nodes.Tag], site: TagSite, position: SourcePosition | None = None) -> None:
    """Check the tags of one clause; the first error counts."""
    for tag in tags:
        check_tag(tag.key, tag.value.value, site, tag.position or position)


def check_table_tags(node: nodes.CreateTable, *, logical: bool = False) -> None:
    """Check all tags of a CREATE TABLE: the table's, each column's with its constraints, the rest."""
    table, column, constraint = (_LT, _LC, _LK) if logical else (_T, _C, _K)
    check_tags(node.tags, table, node.position)
    for definition in node.columns:
        check_tags(definition.tags, column, definition.position)
        for inline in definition.constraints:
            check_tags(inline.tags, constraint, definition.position)
    for outline in node.constraints:
        check_tags(outline.tags, constraint, outline.position or node.position)


def changed_tags(tags: Tags, change: nodes.TagChange) -> Tags:
    """The tags after SET, ADD or DROP TAGS; raises NOTFOUND for keys to drop that are not there."""
    match change.operation:
        case nodes.TagOperation.SET:
            return tags_of(change.tags)
        case nodes.TagOperation.ADD:
            return _frozen({**tags, **tags_of(change.tags)})
        case nodes.TagOperation.DROP:
            return _without(tags, change.keys, change.position)


def _without(tags: Tags, keys: Sequence[str], position: SourcePosition | None) -> Tags:
    missing = [key for key in keys if key not in tags]
    if missing:
        message = f"Tag key(s) not found: {', '.join(missing)}"
        raise sql_error(StatusCode.NOTFOUND, message, position)
    return _frozen({key: value for key, value in tags.items() if key not in keys})


def _frozen(tags: Mapping[str, Any]) -> Tags:
    return MappingProxyType(dict(tags)) if tags else NO_TAGS

"""The result of comparing: statements by phase, in the order of the seed's Migration Order.

What needs an altered table in its new shape has to wait for that, hence the late phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Migration:
    """Statements in order; what of it is to be noticed.

    ``moved`` are the maintained tables that would move to another module, ``attached`` the tables
    that get a body in place, whose shape is then the body's.
    """

    statements: tuple[str, ...]
    moved: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    remade: frozenset[str] = frozenset()
    """Folded names of the relations that are dropped and created."""


@dataclass(slots=True)
class Phases:
    """The statements by phase, in the order of their execution."""

    rename_tables: list[str] = field(default_factory=list)
    drop_assertions: list[str] = field(default_factory=list)
    loosen_tables: list[str] = field(default_factory=list)
    drop_maintained: list[str] = field(default_factory=list)
    drop_tables: list[str] = field(default_factory=list)
    drop_views: list[str] = field(default_factory=list)
    drop_indexes: list[str] = field(default_factory=list)
    create_tables: list[str] = field(default_factory=list)
    create_views: list[str] = field(default_factory=list)
    create_indexes: list[str] = field(default_factory=list)
    alter_tables: list[str] = field(default_factory=list)
    late_references: list[str] = field(default_factory=list)
    late_drops: list[str] = field(default_factory=list)
    late_tags: list[str] = field(default_factory=list)
    late_views: list[str] = field(default_factory=list)
    late_indexes: list[str] = field(default_factory=list)
    attach: list[str] = field(default_factory=list)
    refresh: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    create_assertions: list[str] = field(default_factory=list)

    def all(self) -> Iterator[str]:
        """Every statement."""
        for name in self.__slots__:
            yield from getattr(self, name)

"""What queries in both dialects are put together from, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.differential.expressions import Expr


@dataclass(frozen=True)
class Query:
    """A query; ``ordered`` lists the output columns whose sequence of values is determined."""

    quereus: str
    sqlite: str
    types: tuple[str, ...]
    parameters: dict[str, object] = field(default_factory=dict)
    ordered: tuple[int, ...] = ()


@dataclass(frozen=True)
class Source:
    """Something in FROM: its text and what its columns are called."""

    quereus: str
    sqlite: str
    columns: tuple[Expr, ...]


@dataclass(frozen=True)
class Relation:
    """A common table in scope."""

    name: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Parts:
    """A SELECT taken apart, for tests that put it together differently."""

    items: tuple[Expr, ...]
    source: Source | None
    where: Expr | None

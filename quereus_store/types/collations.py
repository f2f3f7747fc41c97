"""Collations: how text is compared, and which collation a comparison uses.

A collation is a comparator; most also have a *normalizer*, a function whose outputs are equal exactly
when the comparator says 0.  With a normalizer text can be hashed, grouped and used in persistent keys;
when moreover the normalized text sorts (by code point) like the comparator, the collation is *order
preserving* and generated code never calls the comparator: NOCASE is just ``x.lower()``.

Which collation applies is settled while a statement is planned, by a lattice (types-and-values, section
10). Each operand contributes a name with a rank, explicit COLLATE over declared column over database
default; the highest rank wins whichever side it stands on, and two different names at the same rank are
an error, except at the lowest, where they fall back to BINARY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.types.logical import ANY, LogicalType, PhysicalType

Comparator = Callable[[str, str], int]
Normalizer = Callable[[str], str]


@dataclass(frozen=True, slots=True, eq=False)
class Collation:
    """How two texts compare (types-and-values, sections 10 and 18).

    ``template`` is a Python expression with ``{0}`` for the text that gives the normalized text;
    generated code inlines it.  ``order_preserving`` tells that normalized texts sort like the comparator.
    """

    name: str
    comparator: Comparator = field(repr=False)
    normalizer: Normalizer | None = field(default=None, repr=False)
    order_preserving: bool = False
    template: str | None = field(default=None, repr=False)

    @property
    def is_binary(self) -> bool:
        """Whether text is its own key."""
        return self.template == "{0}"

    def require_normalizer(self) -> Normalizer:
        """The normalizer, for hashing text; raises ERROR where the collation has none."""
        if self.normalizer is None:
            raise sql_error(
                StatusCode.ERROR,
                f"collation {self.name} has no key normalizer; grouping and hash-join keys require one"
                " — pass { normalizer } to registerCollation",
            )
        return self.normalizer

    def folding_documents(self) -> Callable[[Any], Any] | None:
        """What the collation does to the JSON of an index: a document that is one text is normalized.

        None where it does nothing (store-and-modules, trap 6).
        """
        normalizer = self.normalizer
        if normalizer is None or self.is_binary:
            return None

        def fold_document(document: Any) -> Any:
            return normalizer(document) if type(document) is str else document

        return fold_document

    def require_persistent_normalizer(self) -> Normalizer:
        """The normalizer, for a key that is stored; raises ERROR where the collation has none."""
        if self.normalizer is None:
            raise sql_error(
                StatusCode.ERROR,
                f"collation {self.name} cannot key a persisted structure: no key normalizer registered"
                " — pass { normalizer } to registerCollation",
            )
        return self.normalizer


def _compare_binary(left: str, right: str) -> int:
    return (left > right) - (left < right)


def _compare_nocase(left: str, right: str) -> int:
    return _compare_binary(left.lower(), right.lower())


def _compare_rtrim(left: str, right: str) -> int:
    return _compare_binary(left.rstrip(" "), right.rstrip(" "))


def _strip_trailing_blanks(text: str) -> str:
    return text.rstrip(" ")


BINARY = Collation("BINARY", _compare_binary, str, order_preserving=True, template="{0}")
NOCASE = Collation("NOCASE", _compare_nocase, str.lower, order_preserving=True, template="{0}.lower()")
RTRIM = Collation(
    "RTRIM", _compare_rtrim, _strip_trailing_blanks, order_preserving=True, template='{0}.rstrip(" ")'
)


class CollationRegistry:
    """The collations of one database, by name in any case."""

    def __init__(self) -> None:
        self._by_name: dict[str, Collation] = {item.name: item for item in (BINARY, NOCASE, RTRIM)}

    def register(
        self,
        name: str,
        comparator: Comparator,
        normalizer: Normalizer | None = None,
        *,
        order_preserving: bool = False,
    ) -> Collation:
        """Add or replace a collation; raises MISUSE for BINARY, a blank name or things not callable."""
        if not isinstance(name, str) or not name.strip():
            raise sql_error(StatusCode.MISUSE, "registerCollation: name must be a non-empty string")
        key = name.strip().upper()
        if key == "BINARY":
            raise sql_error(StatusCode.MISUSE, "registerCollation: BINARY cannot be overridden")
        if not callable(comparator):
            raise sql_error(StatusCode.MISUSE, "registerCollation: func must be a function")
        if normalizer is not None and not callable(normalizer):
            raise sql_error(
                StatusCode.MISUSE, "registerCollation: normalizer must be a function when supplied"
            )
        collation = Collation(key, comparator, normalizer, order_preserving and normalizer is not None)
        self._by_name[key] = collation
        return collation

    def unregister(self, name: str) -> bool:
        """Forget a registered collation; the built-in three stay.  Tells whether there was one."""
        key = name.upper()
        if key in ("BINARY", "NOCASE", "RTRIM"):
            return False
        return self._by_name.pop(key, None) is not None

    def find(self, name: str) -> Collation | None:
        """The collation of that name, or ``None``."""
        return self._by_name.get(name.upper())

    def get(self, name: str, position: SourcePosition | None = None) -> Collation:
        """The collation that an expression names; raises ERROR for an unknown one."""
        found = self._by_name.get(name.upper())
        if found is None:
            raise sql_error(StatusCode.ERROR, f"no such collation sequence: {name.upper()}", position)
        return found

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._by_name)

    def check_column(
        self, name: str, logical_type: LogicalType, column: str, position: SourcePosition | None = None
    ) -> str:
        """The name (upper case) that a column's COLLATE clause declares; raises ERROR when it may not.

        JSON and the temporal types take no collation but BINARY, other types any that is registered.
        """
        key = name.upper()
        if key == "BINARY":
            return key
        refuses = logical_type.is_temporal or logical_type.physical is PhysicalType.OBJECT
        if not refuses and key in self._by_name:
            return key
        if refuses:
            hint = "type supports no collation other than BINARY"
        elif logical_type.is_textual:
            hint = "expected one of: BINARY, NOCASE, RTRIM, or a registered collation"
        else:
            hint = "not a registered collation"
        raise sql_error(
            StatusCode.ERROR,
            f"Unknown collation '{name}' for type '{logical_type.name}' on column '{column}' ({hint})",
            position,
        )


def honours_collation(logical_type: LogicalType) -> bool:
    """Whether a column's collation has any effect on values of this type (TEXT and ANY)."""
    return logical_type.is_textual or logical_type is ANY


class CollationRank(IntEnum):
    """How strongly an operand asks for its collation."""

    DEFAULT = 1
    DECLARED = 2
    EXPLICIT = 3


@dataclass(frozen=True, slots=True)
class CollationContribution:
    """What one operand asks for; an operand that asks for nothing contributes ``None``."""

    name: str
    rank: CollationRank


Contribution = CollationContribution | None


def _conflict(left: CollationContribution, right: CollationContribution) -> bool:
    return left.rank == right.rank and left.name != right.name


def merge_contributions(
    left: Contribution, right: Contribution, position: SourcePosition | None = None
) -> Contribution:
    """Join two operands: the higher rank wins; raises ERROR for different names at rank 2 or 3.

    Used for the members and probe of IN, for ``nullif``/``greatest``/``least``, and for UNION, INTERSECT and
    EXCEPT.
    """
    if left is None or right is None:
        return left or right
    if not _conflict(left, right):
        return left if left.rank >= right.rank else right
    pair = f"{left.name} vs {right.name}"
    if left.rank is CollationRank.EXPLICIT:
        raise sql_error(StatusCode.ERROR, f"conflicting COLLATE clauses in comparison: {pair}", position)
    if left.rank is CollationRank.DECLARED:
        raise sql_error(
            StatusCode.ERROR,
            f"ambiguous collation for comparison: column collations {pair} differ; apply an explicit COLLATE",
            position,
        )
    return None


def carry_contributions(contributions: Iterable[Contribution]) -> Contribution:
    """What ``||``, CASE and UNION ALL pass on from their operands; a conflict passes on nothing."""
    present = {item for item in contributions if item is not None}
    if not present:
        return None
    highest = max(item.rank for item in present)
    strongest = [item for item in present if item.rank == highest]
    return strongest[0] if len(strongest) == 1 else None


def resolve_comparison_collation(
    left: Contribution, right: Contribution, position: SourcePosition | None = None
) -> str:
    """The name of the collation that compares two operands; BINARY when nothing is asked for.

    Raises ERROR where both ask for different collations with equal force.
    """
    merged = merge_contributions(left, right, position)
    return merged.name if merged else "BINARY"


def resolve_list_collation(
    probe: Contribution, members: Iterable[Contribution], position: SourcePosition | None = None
) -> str:
    """The one collation of an IN list: its members merge first, then the probe joins them."""
    merged: Contribution = None
    for member in members:
        merged = merge_contributions(merged, member, position)
    return resolve_comparison_collation(probe, merged, position)

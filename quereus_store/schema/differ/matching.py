"""Which declared object is which existing one, when the names differ.

Two reserved tags give the hint: ``quereus.id``, equal on both sides, and
``quereus.previous_name``, a comma list on the declared side.  The id counts first.

Chapter: seed rename-detection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.objects import Tags, fold

ID = "quereus.id"
PREVIOUS_NAME = "quereus.previous_name"
HINTS = frozenset((ID, PREVIOUS_NAME))


class RenamePolicy(StrEnum):
    """What becomes of a name that is gone while another one is new."""

    ALLOW = "allow"
    REQUIRE_HINT = "require-hint"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Named:
    """An object of either side as far as matching needs it."""

    name: str
    tags: Tags


def match_renames(
    kind: str, declared: Iterable[Named], actual: Iterable[Named], policy: RenamePolicy
) -> dict[str, str]:
    """Existing names by the folded declared names that they get; ERROR for a hint with two meanings."""
    if policy is RenamePolicy.DENY:
        return {}
    wanted = {fold(each.name): each for each in declared}
    present = {fold(each.name): each for each in actual}
    by_id = {str(each.tags[ID]): each for each in present.values() if ID in each.tags}
    found: dict[str, str] = {}
    for key, each in wanted.items():
        hinted = _hinted(each, present, by_id)
        if hinted is None or fold(hinted.name) == key:
            continue
        if key in present:
            raise sql_error(
                StatusCode.ERROR,
                f"{kind} '{each.name}' exists, and its rename hint means {kind} '{hinted.name}', which exists"
                " too: remove the hint, or drop one of the two",
            )
        if fold(hinted.name) in wanted or hinted.name in found.values():
            continue
        found[key] = hinted.name
    return found


def _hinted(each: Named, present: Mapping[str, Named], by_id: Mapping[str, Named]) -> Named | None:
    """The existing object that the hints of a declared one mean."""
    if ID in each.tags and str(each.tags[ID]) in by_id:
        return by_id[str(each.tags[ID])]
    names = str(each.tags.get(PREVIOUS_NAME) or "").split(",")
    return next((present[fold(name.strip())] for name in names if fold(name.strip()) in present), None)


def require_hints(kind: str, created: Iterable[str], dropped: Iterable[str], policy: RenamePolicy) -> None:
    """Under REQUIRE_HINT nothing may be dropped where something of its kind is created (ERROR)."""
    if policy is not RenamePolicy.REQUIRE_HINT:
        return
    new, gone = list(created), list(dropped)
    if new and gone:
        raise sql_error(
            StatusCode.ERROR,
            f"rename_policy = 'require-hint': {kind} {_listed(gone)} would be dropped and {_listed(new)}"
            f' created; tag the declared {kind} with "{PREVIOUS_NAME}" or "{ID}" if it is a rename',
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def same_tags(one: Tags, other: Tags) -> bool:
    """Whether two sets of tags say the same, rename hints apart."""
    return _without_hints(one) == _without_hints(other)


def _without_hints(tags: Tags) -> dict[str, object]:
    return {key: (type(value), value) for key, value in tags.items() if key not in HINTS}

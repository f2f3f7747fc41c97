"""What has been found for the last versions of a catalog, kept while other threads look it up.

Nobody changes such a mapping: whoever finds something makes a new one with it, so a reader never meets
one that is being filled or trimmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

KEPT = 8
"""How many versions are kept: those of snapshots that may still be read."""


def with_version(known: Mapping[int, T], version: int, found: T) -> dict[int, T]:
    """What is known, with what was found for one more version, without all but the newest others."""
    others = sorted(known.keys() - {version})[1 - KEPT :]
    return {**{other: known[other] for other in others}, version: found}

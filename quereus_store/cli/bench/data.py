"""The rows of the benchmark: pseudo-random, equal for every engine and every run.

Prices are multiples of a quarter, so that sums are exact and all engines must agree on them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

REGIONS = ("north", "south", "east", "west")
GROUPS = 100


@dataclass(frozen=True, slots=True)
class Data:
    """Rows of the tables, and keys to look for.

    ``items`` are ``(id, grp, code, price)``, ``groups`` are ``(id, name, region)``, ``probes``
    ``(id, code)`` and ``documents`` ``(id, JSON text)``; ``changed_items`` are the items at other prices.
    """

    items: list[tuple[int, int, str, float]]
    changed_items: list[tuple[int, int, str, float]]
    groups: list[tuple[int, str, str]]
    probes: list[tuple[int, str]]
    documents: list[tuple[int, str]]
    ids: list[int]
    codes: list[str]


def make_data(rows: int) -> Data:
    """Make ``rows`` items, 100 groups, a fifth as many documents, 10,000 keys and 1,000 codes to look for."""
    random = Random(20130101)
    items = [
        (number, random.randrange(GROUPS), f"code-{random.randrange(rows):07d}", random.randrange(4000) / 4)
        for number in range(rows)
    ]
    groups = [(number, f"group {number}", REGIONS[number % len(REGIONS)]) for number in range(GROUPS)]
    ids = [random.randrange(rows) for _ in range(10_000)]
    codes = [items[random.randrange(rows)][2] for _ in range(1000)]
    documents = [
        (
            number,
            json.dumps(
                {"size": number % 97, "tags": ["new", "small"], "place": {"shelf": number % 13, "row": 4}}
            ),
        )
        for number in range(rows // 5)
    ]
    changed = [(number, group, code, price + 0.25) for number, group, code, price in items]
    return Data(items, changed, groups, list(enumerate(codes)), documents, ids, codes)

"""Everything that is timed, in the order in which it is reported."""

from __future__ import annotations

from quereus_store.cli.bench.case import Case
from quereus_store.cli.bench.foundation_cases import FOUNDATION_CASES
from quereus_store.cli.bench.query_cases import COLD_CASES, QUERY_CASES
from quereus_store.cli.bench.view_cases import VIEW_CASES
from quereus_store.cli.bench.write_cases import WRITE_CASES

CASES: tuple[Case, ...] = FOUNDATION_CASES + QUERY_CASES + COLD_CASES + WRITE_CASES + VIEW_CASES

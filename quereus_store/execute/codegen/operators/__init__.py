"""The code of each plan node: importing this package fills the compiler's table."""

from quereus_store.execute.codegen.operators import (  # noqa: F401
    aggregates,
    common_tables,
    joins,
    merge_joins,
    ordering,
    rows,
    scans,
    sets,
    windows,
)

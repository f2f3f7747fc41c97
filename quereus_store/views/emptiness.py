"""Bodies that read nothing, whatever their sources hold: their conditions can never be met.

Chapter: views-and-maintained-tables, sections 5 and 10.
"""

from __future__ import annotations

from quereus_store.execute.emptiness import contributing_scans
from quereus_store.execute.engine import Engine
from quereus_store.schema.objects import Catalog
from quereus_store.views.body import Body


def reads_nothing(engine: Engine, catalog: Catalog, body: Body) -> bool:
    """Whether no table can add anything to a body's rows."""
    scans = contributing_scans(engine, catalog, body.plan, body.context)
    return not body.sources or not any(True for _ in scans)

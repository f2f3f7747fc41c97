"""Maintained tables: stored tables that always equal a query (views-and-maintained-tables).

A statement that changes a source brings every dependent up to date before it ends, so
a maintained table is never seen to differ from its body, and commits and rolls back with
its sources.

===============  ===================================================================
``facts``        which columns determine which: the proof of a body's key
``body``         binding a body, what it reads
``coarsening``   keys that do not tell all rows of the source apart
``shape``        columns and physical key of the stored table
``gates``        what cannot be materialized
``creating``     CREATE MATERIALIZED VIEW, CREATE TABLE … MAINTAINED AS
``attaching``    ALTER TABLE … SET MAINTAINED, DROP MAINTAINED
``refreshing``   REFRESH MATERIALIZED VIEW
``reshaping``    carrying a table over to another shape
``staleness``    what schema changes do to dependents
``graph``        who reads whom, in dependency order
``rows``         rows as members of sets, differences
``programs``     plans that run over given rows
``plans``        the strategies and the choice among them
``writing``      writing derived rows and judging their constraints
``maintainer``   the end of a statement
``restoring``    reopening
``lending``      queries that may be answered from maintained tables
``checking``     comparing tables with their bodies
``reporting``    what EXPLAIN and ``maintenance_info()`` tell
``deltas/``      programs that work from what changed
===============  ===================================================================
"""

from quereus_store.execute.engine import Engine
from quereus_store.views.checking import differing_tables
from quereus_store.views.maintainer import Maintainer
from quereus_store.views.reporting import maintenance_info


def install(engine: Engine) -> Maintainer:
    """Let an engine keep maintained tables."""
    maintainer = Maintainer(engine)
    engine.maintenance = maintainer
    engine.registry.register(maintenance_info(maintainer))
    return maintainer


__all__ = ["Maintainer", "differing_tables", "install"]

"""Are the maintained tables what their bodies say?  The check that nothing but a comparison can make.

Chapter: store-and-modules, section 7; seed: schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error
from quereus_store.views.rows import identity_of

if TYPE_CHECKING:
    from quereus_store.execute.transactions import ReadView
    from quereus_store.views.maintainer import Maintainer


def differing_tables(maintainer: Maintainer, session: Any, view: ReadView) -> Iterator[tuple[str, str]]:
    """The live maintained tables that differ from their bodies: name, and what is wrong in words."""
    graph = maintainer.graphs.graph(view.catalog)
    for table, error in graph.broken:
        yield table.qualified_name, f"its body cannot be planned: {error}"
    for member in graph.members:
        name = member.table.qualified_name
        rebuild = maintainer.strategies.of(member).rebuild
        identity = identity_of(member.table.columns)
        try:
            stored, wanted = [set(map(identity, rows)) for rows in rebuild.compared(session, view)]
        except Error as error:
            yield name, f"cannot be compared with its body: {error}"
            continue
        missing, surplus = len(wanted - stored), len(stored - wanted)
        if missing or surplus:
            yield (
                name,
                f"it differs from its body: {missing} rows of the body are not stored, {surplus} stored rows"
                " are not the body's (REFRESH MATERIALIZED VIEW repairs it)",
            )

"""What change notification speaks of: events, change scopes, streams, and changes that come from outside.

``connection.database`` gives them out: ``watch``, ``change_scope``, ``on_data_change``, ``events`` and so on;
docs/change-notification.md teaches it.  These are the types to annotate with, and to make scopes by hand of.
``connection.ingest_external_row_changes`` takes an :class:`ExternalChange` for each row.
"""

from quereus_store.api.events import Events
from quereus_store.execute.assertions import AssertionFailure
from quereus_store.execute.ingestion import ExternalChange
from quereus_store.execute.notification import (
    CatalogChange,
    ChangeScope,
    Commit,
    DataChange,
    Full,
    Groups,
    Match,
    Notification,
    RowMerge,
    Rows,
    RowsByGroup,
    SchemaEvent,
    Stream,
    Subscription,
    UnboundValue,
    Watch,
)
from quereus_store.execute.notification.scopes import Source

__all__ = [
    "AssertionFailure",
    "CatalogChange",
    "ChangeScope",
    "Commit",
    "DataChange",
    "Events",
    "ExternalChange",
    "Full",
    "Groups",
    "Match",
    "Notification",
    "RowMerge",
    "Rows",
    "RowsByGroup",
    "SchemaEvent",
    "Source",
    "Stream",
    "Subscription",
    "UnboundValue",
    "Watch",
]

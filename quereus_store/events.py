"""What change notification speaks of: events, change scopes, streams.

``connection.database`` gives them out: ``watch``, ``change_scope``, ``on_data_change``, ``events`` and so on;
docs/change-notification.md teaches it.  These are the types to annotate with, and to make scopes by hand of.
"""

from quereus_store.api.events import Events
from quereus_store.execute.notification import (
    CatalogChange,
    ChangeScope,
    Commit,
    DataChange,
    Full,
    Groups,
    Match,
    Notification,
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
    "CatalogChange",
    "ChangeScope",
    "Commit",
    "DataChange",
    "Events",
    "Full",
    "Groups",
    "Match",
    "Notification",
    "Rows",
    "RowsByGroup",
    "SchemaEvent",
    "Source",
    "Stream",
    "Subscription",
    "UnboundValue",
    "Watch",
]

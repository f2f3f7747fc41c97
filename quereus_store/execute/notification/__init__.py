"""Change notification: who wants to know what a commit did, and how they are told.

A transaction keeps a log of the rows that it changes (:mod:`quereus_store.execute.dml.changes`) and a list
of what its schema changes announce, while somebody listens.  A commit hands both to the
:class:`~quereus_store.execute.notification.notifier.Notifier` at the moment when it becomes visible, so
batches stand in commit order; they are delivered after that, outside of all locks.  What is rolled back,
also to a savepoint, is cut off the log and never gets there.

==============  ======================================================================================
``events``      what is told: changes of rows, of schema objects, of the catalog; a commit as a whole
``scopes``      change scopes: which rows of which tables a result depends on
``analysis``    the change scope of a statement
``images``      a log as data events, with keys, in the shape that the tables have at the end
``matching``    which rows of a watched scope a log touches
``notifier``    subscriptions, the order of delivery
``streams``     iterators over what is told, for threads and for ``asyncio``
==============  ======================================================================================

Chapters: store-and-modules, section 11; views-and-maintained-tables, sections 14 and 15;
seed: schema, "Schema Change Events".
"""

from quereus_store.execute.notification.events import (
    CatalogChange,
    Commit,
    DataChange,
    Match,
    Notification,
    Reshape,
    RowMerge,
    SchemaEvent,
)
from quereus_store.execute.notification.notifier import Notifier, Subscription
from quereus_store.execute.notification.scopes import (
    ChangeScope,
    Full,
    Groups,
    Rows,
    RowsByGroup,
    UnboundValue,
    Watch,
)
from quereus_store.execute.notification.streams import Stream

__all__ = [
    "CatalogChange",
    "ChangeScope",
    "Commit",
    "DataChange",
    "Full",
    "Groups",
    "Match",
    "Notification",
    "Notifier",
    "Reshape",
    "RowMerge",
    "Rows",
    "RowsByGroup",
    "SchemaEvent",
    "Stream",
    "Subscription",
    "UnboundValue",
    "Watch",
]

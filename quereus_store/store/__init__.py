"""The store: tables, indexes and the catalog of a database on one key-value backend.

=================  =========================================================================
module             holds
=================  =========================================================================
``open``           opening and creating a database: what is refused, and in which words
``module``         the store module: transactions, tables, schema changes, catalog
``transaction``    a reader's snapshot, the writer with its counts and the head
``table``          the handle of a table: scans, points, ranges
``rows``           rows as keys and values, and naming what is corrupt
``indexes``        the entries of secondary indexes
``writes``         insert, delete and update of batches, uniqueness
``building``       building indexes, carrying tables over to a new schema
``scans``          scans of a writer that stay as they began
``cache``          decoded batches of unchanged tables
``check``          verifying everything that can be verified without SQL
=================  =========================================================================

A row's way in: ``table.insert`` encodes keys and values of a batch (``rows``) and the entries of
each index (``indexes``), the backend stores them with one call each and reports the first key that
exists (``writes``).  Its way out: a key range (or the keys that an index range holds) of the
backend's snapshot, decoded batch by batch (``rows``), or no decoding at all for a table that
has not changed since it was last read (``cache``).
"""

from quereus_store.store.module import StoreModule

__all__ = ["StoreModule"]

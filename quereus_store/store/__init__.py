"""The store: tables, indexes and the catalog of a database on one key-value backend."""

"""Schemas: what tables, indexes, views and assertions are, and how their definitions change.

=================  =========================================================================
``objects``        the immutable catalog objects
``builder``        CREATE statements to objects, with every check that needs no planner
``clauses``        the clauses of a definition, for CREATE and ALTER alike
``constraints``    names, hidden indexes, adding and dropping indexes and constraints
``expressions``    rules for DEFAULT, CHECK, generated columns and index predicates
``manager``        catalogs: look-ups, the search path, adding and dropping objects
``ddl``            objects back to canonical statements
``tags``           the reserved tags and their values
``scopes``         what the names inside a query mean, and following a renamed one
``dependencies``   what refers to a table, a view or a column
``rename``         how a rename reaches everything that refers to the renamed object
=================  =========================================================================

Nothing here knows how rows are stored or queries are run.
"""

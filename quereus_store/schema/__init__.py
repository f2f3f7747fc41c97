"""Schemas: what tables, indexes, views and assertions are, and how their definitions change.

=================  =========================================================================
``objects``        the immutable catalog objects
``builder``        CREATE statements to objects, with every check that needs no planner
``constraints``    names, hidden indexes, adding and dropping indexes and constraints
``expressions``    rules for DEFAULT, CHECK, generated columns and index predicates
``manager``        catalogs: look-ups, the search path, adding and dropping objects
``ddl``            objects back to canonical statements
``tags``           the reserved tags and their values
``dependencies``   what a body refers to
``rename``         how a rename reaches everything that refers to the renamed object
=================  =========================================================================

Nothing here knows how rows are stored or queries are run.
"""

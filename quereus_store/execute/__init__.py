"""Execution: plans become generated Python, statements become transactions.

==================  ================================================================
module              holds
==================  ================================================================
``engine``          what connections share: modules, registries, the catalog
``session``         one connection's side: options, statement cache, running
``transactions``    snapshots and writers of all modules, savepoints, commit
``prepared``        what is kept of a statement for its next execution
``results``         rows on their way to a cursor
``runtime``         what one running program can ask for
``codegen``         plans to Python source
``dml``             INSERT, UPDATE, DELETE and constraints
``statements``      everything else: definitions, transactions, pragmas, explain
==================  ================================================================
"""

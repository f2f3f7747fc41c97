"""The executor of INSERT, UPDATE and DELETE (dml-transactions-constraints).

==================  ==============================================================
``mutation``        compiling and running a statement
``rules``           what holds for a statement; the fast way and the careful way
``insert`` …        the fast programs; ``emission`` is what they have in common
``conflicts``       the careful way: row by row, with what each violation asks for
``upsert``          ON CONFLICT clauses
``checks``          CHECKs that wait for the commit
``foreign_keys/``   both sides of foreign keys
``violations``      the errors
``changes``         the log of changes
==================  ==============================================================
"""

from quereus_store.execute.dml.mutation import CompiledMutation, compile_mutation

__all__ = ["CompiledMutation", "compile_mutation"]

"""The binder: syntax tree in, logical plan out.

It resolves names to column numbers, settles types, coercions and collations, and
reports every error that a statement's text can have.  Nothing later looks a name up.

=====================  =======================================================================
module                 holds
=====================  =======================================================================
``context``            what the binder is told: catalog, registries, parameter types
``scopes``             what a name means where it stands
``expressions``        operators, predicates, CASE, CAST; the table of node binders
``comparisons``        coercion and collation of everything that compares; row values
``calls``              function lookup, special forms, aggregate calls
``subqueries``         scalar, EXISTS, IN, ANY, ALL
``relations``          tables, views and common tables by name
``from_clause``        sources and joins
``select_list``        stars, output names, projection
``grouping``           keys, aggregates, what may be read after grouping
``windows``            window functions and frames
``ordering``           ORDER BY, LIMIT
``select``             a SELECT's clauses in their logical order
``set_operations``     UNION and its kin, membership flags
``common_tables``      WITH, recursion
``queries``            whole queries: the entry point :func:`bind_query`
``rows``               expressions over one row: CHECK, DEFAULT, GENERATED, index parts
``dml``                INSERT, UPDATE, DELETE: the entry point :func:`bind_mutation`;
                       its parts in ``dml_insert``, ``dml_update``, ``dml_parts``
``view_writes``        the same through views: bodies in ``view_bodies``, what may be written at
                       all in ``view_lineage``
``view_joins``         views of joins: captured rows in ``join_rows``, then one statement a table
                       (``join_writes``, ``join_inserts``, ``join_decomposed``)
``set_writes``         views of set operations: routing to legs, existence flags
``logical_writes``     logical tables: their constraints as checks (``logical_constraints``),
                       foreign keys between them (``logical_references``)
``determinism``        what may not stand in stored expressions
=====================  =======================================================================

The rules are those of the chapters queries, types-and-values and
dml-transactions-constraints.
"""

from quereus_store.plan.binder import calls, subqueries, windows  # noqa: F401 - they fill the table of binders
from quereus_store.plan.binder.context import BindContext, Environment, References
from quereus_store.plan.binder.dml import bind_mutation
from quereus_store.plan.binder.queries import bind_query
from quereus_store.plan.binder.rows import (
    bind_check,
    bind_default,
    bind_generated,
    bind_row_expression,
    generated_order,
    new_row,
)

__all__ = [
    "BindContext",
    "Environment",
    "References",
    "bind_check",
    "bind_default",
    "bind_generated",
    "bind_mutation",
    "bind_query",
    "bind_row_expression",
    "generated_order",
    "new_row",
]

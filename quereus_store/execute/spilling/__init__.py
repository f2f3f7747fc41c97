"""Statements over more rows than memory: what the option ``memory_limit`` turns on.

==================  ===================================================================
``files``           temporary files of rows, gone when their reader is
``sizes``           how much memory rows take; sizes as a user writes them
``replay``          rows that are read more than once
``sorting``         sorted runs, merged
``distinct``        rows met before, partitioned by hash
``grouping``        groups folded into states, rows of further groups partitioned by hash
``joining``         both sides of a join partitioned by hash
``sets``            both sides of INTERSECT, EXCEPT and DIFF partitioned by hash
``windows``         rows sorted, then partitioned by hash of PARTITION BY
``window_streams``  window functions over one large partition, read several times
==================  ===================================================================

Without the option none of this runs and generated code does not mention it.  With it, the operators that
have to hold rows (sort, DISTINCT, set operations, GROUP BY, hash join, windows) each get an equal share of
the limit; up to that they work as always, beyond it they write rows to a temporary file.  Results are the
same, order included: rows that leave their order are numbered and merged by their numbers.
"""

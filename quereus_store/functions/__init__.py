"""Functions: what a call in SQL means, and the built-in catalogue.

A function is an immutable value (``registry``): its Python callable, how many arguments it takes, what
type it gives, how it treats NULL.  Planner and code generator know nothing else of it.  One module holds
a family:

=====================  ===================================================================================
``registry``           the kinds of function, their registry, the guards that name a failing function
``builtins``           ``builtin_functions()``: all families in one frozen registry
``user``               functions of the program, read from callables, classes and generators
``text`` ``math`` ``conditional`` ``conversion`` ``dates`` ``timespans`` ``json_functions`` ``blobs``
                       scalar functions
``aggregates``         count, sum, min, group_concat ...: over columns, and as algebras
``windows``            frames, functions that need OVER, any aggregate over sliding frames
``table_functions``    generate_series, json_each ...
``introspection``      the catalog as rows; ``diagnostics`` declares those about plans and runs
=====================  ===================================================================================

The rules are those of the chapter functions.  This package imports nothing here, so that the types of a
function can be named without loading the catalogue.
"""

"""Foreign keys (dml-transactions-constraints, section 11).

They are not planned with the statement: the executor follows the catalog.

==============  ====================================================================
``references``  a declared key resolved against the catalog; who refers to a table
``lookup``      rows of a table by the values of some columns, many keys in one call
``children``    the check of rows that refer: their parents must exist by the commit
``parents``     what a change of referenced rows is refused by, and what it brings
==============  ====================================================================
"""

"""Delta programs: bringing a maintained table up to date from what changed, not from everything.

================  ======================================================================
``substitution``  a plan with the changed rows in the place of a table
``linear``        filters, projections, inner joins: the changes of the result themselves
``anchors``       output columns whose changed values tell which rows to look at
``restriction``   a plan that computes the rows of given values only
``keyed``         recompute the touched groups, partitions or keys
``merging``       add to and take from stored aggregates
================  ======================================================================
"""

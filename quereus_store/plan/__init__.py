"""Planning: bound expressions and plan nodes, the binder, the optimizer's rules, explain.

::

    tree ── binder ──► logical plan ── optimizer (rules) ──► physical plan
"""

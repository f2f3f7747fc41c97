"""The code generator: a physical plan becomes one Python function.

``compiler`` drives it, ``operators`` hold the code of each plan node,
``expressions`` that of expressions, ``pipeline`` the loops under construction,
``source`` the text being written; ``kernels`` and its siblings are what
generated code calls.
"""

"""The SQL front end: text to syntax tree and back.

::

    text ── lexer ── parser ──► nodes ── renderer ──► text

``nodes`` holds the tree (frozen dataclasses), ``parser`` builds it, ``renderer``
writes it as SQL again, ``traversal`` walks and rebuilds it, ``keywords`` lists the
words of the language.  Nothing here knows of catalogs or storage.
"""

from quereus_store.sql.parser import iter_statements, parse_expression, parse_script, parse_statement
from quereus_store.sql.renderer import (
    canonical_text,
    column_name_text,
    quote_identifier,
    quote_text,
    render,
    render_expression,
)
from quereus_store.sql.traversal import children, parameters, transform, walk

__all__ = [
    "canonical_text",
    "children",
    "column_name_text",
    "iter_statements",
    "parameters",
    "parse_expression",
    "parse_script",
    "parse_statement",
    "quote_identifier",
    "quote_text",
    "render",
    "render_expression",
    "transform",
    "walk",
]

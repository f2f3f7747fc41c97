"""The words of the language (queries, section 1).

Three classes of words: *reserved* words must be quoted to be names; *contextual*
words may name things wherever a name is expected, but not as an alias without
AS; all others, the *soft* words, are plain identifiers that mean something only
in their own position (``filter`` after a call, ``materialized`` after AS).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED: frozenset[str] = _words(
    """
    abort add all alter always analyze and apply as asc assertion autoincrement begin between by case cast
    collate commit conflict constraint create cross current declare deferrable deferred delete desc diff
    distinct drop else end except exists explain fail false following foreign from full generated group having
    if ignore immediate in index initially inner insert intersect into is join lateral left limit natural no
    not null offset or order outer over partition pragma preceding primary range recursive release rename
    replace returning right rollback row rows savepoint select stored table then to transaction true unbounded
    union update using values view virtual when where with xor temp temporary
    """
)

CONTEXTUAL: frozenset[str] = _words("action cascade check default key like on references restrict set unique")

TWO_WORD_TYPES: frozenset[str] = frozenset(
    {
        "double precision",
        "character varying",
        "char varying",
        "bit varying",
        "national character",
        "national char",
    }
)

SOFT: frozenset[str] = _words(
    """
    any attach code collation column context cube data database defaults detach domain do escape exclude
    filter first for glob grouping groups ilike import inverse isnull last lens logical maintained match
    materialized maxrecursion nothing notnull nulls option options others plan precision qualify query refresh
    regexp rollup schema seed sets some tags ties type unknown varying version window
    """
)

#: Reserved words that may name a function where a call is unmistakable (``left('abc', 2)``).
FUNCTION_NAMES: frozenset[str] = frozenset({"replace", "left", "right", "if"})

#: Reserved words that may stand bare as the name of a schema or table.
SCHEMA_NAMES: frozenset[str] = frozenset({"temp", "temporary"})

#: Words that open an item of a declaration block, hence no bare aliases where an item could begin.
DECLARATION_ITEMS: frozenset[str] = _words(
    "table index unique materialized view seed assertion domain collation import"
)

#: Words that are no names where a bare word may be an alias.
NO_ALIASES: frozenset[str] = RESERVED | CONTEXTUAL

ALL: frozenset[str] = RESERVED | CONTEXTUAL | SOFT

"""Lenses: how the tables of a logical schema are mapped to the tables of a basis schema, and proved.

=====================  =======================================================================
module                 holds
=====================  =======================================================================
``overrides``          taking an override apart: its sources, its terms, the basis names it may use
``mapping``            the body of a logical table: override, decomposition or default mapper
``prover``             what APPLY refuses
``round_trips``        authored inverses over finite domains
``advisories``         what APPLY advises, and which of it has been acknowledged
``deploying``          a declaration and a lens together: the new catalog and its report
``reports``            the rows of the functions about lenses
=====================  =======================================================================

What writes need too is beside the binder's other view modules: where logical columns come from
(``logical_lineage``), who keeps a logical key (``logical_keys``), decompositions (``decompositions``).

Chapter: view-updates-and-lenses, sections 12 to 18.
"""

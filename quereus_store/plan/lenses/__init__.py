"""Lenses: how the tables of a logical schema are mapped to the tables of a basis schema, and proved.

=====================  =======================================================================
module                 holds
=====================  =======================================================================
``overrides``          taking an override apart: its sources, its terms, the basis names it may use
``mapping``            the body of a logical table: override, decomposition or default mapper
``lineage``            where each logical column of a body comes from
``keys``               who keeps a logical key: the basis, or the commit
``prover``             what APPLY refuses
``round_trips``        authored inverses over finite domains
``advisories``         what APPLY advises, and which of it has been acknowledged
``deploying``          a declaration and a lens together: the new catalog and its report
``reports``            the rows of the functions about lenses
=====================  =======================================================================

Chapter: view-updates-and-lenses, sections 12 to 18.
"""

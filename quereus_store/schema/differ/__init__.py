"""The differ: from a declared schema and a catalog to the statements that make one like the other.

===============  ==========================================================================
``matching``     which existing object a declared one is, when names differ
``columns``      ADD, ALTER, DROP COLUMN of an existing table
``constraints``  constraints and the primary key of an existing table
``tables``       all of an existing table, its derivation included
``bodies``       views and maintained tables: dropped and created
``indexes``      indexes, which are dropped and created too
``planning``     all differences
``phases``       the order of the statements
``text``         fragments of statements
===============  ==========================================================================

Renames are decided first, and the catalog as they will leave it is worked out with the very
functions that ALTER TABLE uses; everything else is compared with that catalog.  So what follows
from a rename by itself is never a difference.

Statements come in the order of the seed's Migration Order: renames of tables, drops, creates,
alterations.  What cannot be made before a table is altered (it names a new column, or keeps rows
whose source changes) is created after the alterations, and assertions are dropped first and created
last.  A maintained table whose sources change their form is made anew even if its own definition
stays.

The module of an existing ordinary table is no difference: its rows stay where they are.

Chapters: seed schema (Declarative Schema), seed rename-detection.
"""

from quereus_store.schema.differ.matching import RenamePolicy
from quereus_store.schema.differ.phases import Migration
from quereus_store.schema.differ.planning import migration

__all__ = ["Migration", "RenamePolicy", "migration"]

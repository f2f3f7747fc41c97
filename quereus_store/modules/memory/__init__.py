"""Memory tables: sorted chunks of rows, snapshots for free, one writer at a time.

=================  ==============================================================
``chunks``         the sorted, copy-on-write list of rows that is table and index
``keys``           what rows are sorted by, and where a bound would stand
``turning``        keys of descending text
``transactions``   snapshots, the writer, undo
``table``          reads and writes of one table
``module``         :class:`MemoryModule`: what the engine talks to
=================  ==============================================================
"""

from quereus_store.modules.memory.module import MemoryModule

__all__ = ["MemoryModule"]

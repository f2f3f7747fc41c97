"""What is bound to this process: connections, cursors and databases are neither copied nor pickled.

A copy would share the original's storage without counting among its users, and the first of the two to be
closed would take it away from the other.
"""

from __future__ import annotations

from typing import NoReturn


class BoundToProcess:
    """Refuses ``copy`` and ``pickle``."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot copy or pickle a {type(self).__name__}")

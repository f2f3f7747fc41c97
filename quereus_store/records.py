"""Records: immutable values whose fields only the type checker forbids to assign.

Preparing a statement makes some hundred small values (places, tree nodes, plan nodes).  A frozen dataclass
pays for each field of each of them, since it has to go around its own guard to fill them in: making one
takes more than twice as long as without a guard.  So the classes that are made so often are declared with
:func:`record` in the place of ``dataclass``::

    @record(frozen=True, slots=True)
    class Literal(Expression): ...

To the type checker that *is* ``dataclass``.  At run time nothing stands in the way of an assignment but that
nobody may write one; equality and hash are those of a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots, eq=True):
        """A dataclass as the type checker sees it, without the guard; ``frozen`` says that it is one."""
        assert frozen
        return dataclass(slots=slots, eq=eq, unsafe_hash=eq)


__all__ = ["record"]

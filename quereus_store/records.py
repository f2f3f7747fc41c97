"""Records: immutable values whose fields only the type checker forbids to assign.

Preparing a statement makes some hundred small values (places, tree nodes, plan nodes).  A frozen dataclass
pays for each field of each of them, since it has to go around its own guard to fill them in: making one
takes more than twice as long as without a guard.  So the classes that are made so often are declared with
:func:`record` in the place of ``dataclass``::

    @record(frozen=True, slots=True)
    class Literal(Expression): ...

To the type checker that *is* ``dataclass``.  At run time nothing stands in the way of an assignment but that
nobody may write one; equality, hash and text are those of a frozen dataclass.  They are the same three
functions for every class, over its fields' values: generating and compiling them for some two hundred
classes takes longer than all else that importing these classes does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass, fields
    from operator import attrgetter

    def record(*, frozen, slots, eq=True):
        """A dataclass as the type checker sees it, without the guard; ``frozen`` says that it is one."""
        assert frozen

        def declare(cls):
            made = dataclass(slots=slots, eq=False, repr=False)(cls)
            if "__repr__" not in vars(cls):
                made.__repr__ = _text_function([field.name for field in fields(made) if field.repr])
            if eq:
                values = attrgetter("__class__", *(field.name for field in fields(made) if field.compare))
                made.__eq__ = _equality(values)
                made.__hash__ = lambda self: hash(values(self))
            return made

        return declare

    def _equality(values):
        def equal(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return equal

    def _text_function(names):
        def text(self):
            shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
            return f"{self.__class__.__qualname__}({shown})"

        return text


__all__ = ["record"]

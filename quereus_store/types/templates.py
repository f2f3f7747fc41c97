"""Source templates: how the types layer tells generated code to do its work inline.

A :class:`Template` is a Python expression with ``{0}`` (and ``{1}``) for operands, and the objects that
its free names stand for.  Generated code substitutes the operands, merges the names into its globals, and
so pays no call where an expression does.  An operand may occur several times in a template: pass a name
or a subscript, not a computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Template:
    """A Python expression over operands, with the objects that its free names stand for."""

    source: str
    names: Mapping[str, object] = field(default_factory=dict)

    def render(self, *operands: str) -> str:
        """The expression with its operands filled in."""
        return self.source.format(*operands)

    def compile(self, operands: int = 1) -> Callable[..., Any]:
        """The template as a function, for callers outside generated code."""
        arguments = [f"operand_{index}" for index in range(operands)]
        source = f"lambda {', '.join(arguments)}: {self.render(*arguments)}"
        compiled: Callable[..., Any] = eval(source, dict(self.names))
        return compiled


def global_name(prefix: str, name: str) -> str:
    """A Python identifier for a thing named by a user: letters and digits kept, others spelled as code."""
    spelled = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
    return f"{prefix}{spelled}"

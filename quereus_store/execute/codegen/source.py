"""Writing Python source: indentation, fresh names, and the constants it refers to.

Generated code names every object it needs (tables, functions, big constants)
by a global of its own; :class:`Module` hands out the names and keeps the
objects, so that the source can be compiled, run and shown to the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.templates import Template

_INLINE_TYPES = (int, str, bytes, bool, type(None))
_LONGEST_INLINE = 60


class SourceModule(AbstractContextManager[None]):
    """One generated Python module: its lines and its global names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.definitions: list[str] = []
        self.globals: dict[str, Any] = {}
        self._indent = 0
        self._counts: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._values: set[str] = set()

    def name(self, stem: str) -> str:
        """A name that nothing else uses: the stem and a number."""
        number = self._counts.get(stem, 0)
        self._counts[stem] = number + 1
        return f"{stem}{number}"

    def line(self, text: str) -> None:
        """Add one line at the current indentation."""
        self.lines.append("    " * self._indent + text)

    def block(self, header: str) -> AbstractContextManager[None]:
        """A compound statement: its header, and its body indented."""
        self.line(header)
        self._indent += 1
        return self

    def __enter__(self) -> None:
        """The body of a compound statement (:meth:`block`) begins."""

    def __exit__(self, *_: object) -> None:
        self._indent -= 1

    @property
    def depth(self) -> int:
        """How many compound statements are open."""
        return self._indent

    @contextmanager
    def outermost(self) -> Iterator[None]:
        """Write a definition at the program's outermost level, before everything in the making."""
        lines, indent = self.lines, self._indent
        self.lines, self._indent = [], 1
        yield
        self.definitions += self.lines
        self.lines, self._indent = lines, indent

    def fill_preamble(self, lines: list[str]) -> None:
        """Finish a program: its header, these first lines, the outermost definitions, its body."""
        header, *body = self.lines
        first = ["    " + line for line in lines]
        self.lines = [header, *first, *self.definitions, *body]
        self.definitions = []

    def bind(self, stem: str, value: Any) -> str:
        """A global name for an object; the same object gets the same name."""
        known = self._names.get(id(value))
        if known is not None:
            return known
        name = self.name(stem)
        self.globals[name] = value
        self._names[id(value)] = name
        return name

    def helper(self, function: Any) -> str:
        """The global name of a library function: its own."""
        name: str = function.__name__
        if self.globals.setdefault(name, function) is not function:
            return self.bind(name, function)
        return name

    def render(self, template: Template, *operands: str) -> str:
        """A template over operands, its names made available."""
        self.globals.update(template.names)
        return template.render(*operands)

    def constant(self, value: Any) -> str:
        """Source for a constant: written out when short, a global otherwise."""
        source = _written_out(value)
        if source is None:
            source = self.bind("constant", value)
        if value is not None:
            self._values.add(source)
        return source

    def is_value(self, source: str) -> bool:
        """Whether source is a constant other than None."""
        return source in self._values

    def text(self) -> str:
        """The source."""
        return "\n".join(self.lines) + "\n"

    def compile(self, entry: str) -> Any:
        """Compile the source and return the function of that name; raises TOOBIG beyond Python's limits."""
        namespace = dict(self.globals)
        try:
            code = _compiled(self.text())
        except (SyntaxError, MemoryError) as error:
            if isinstance(error, SyntaxError) and "too many" not in str(error):
                raise
            raise sql_error(StatusCode.TOOBIG, "Statement is nested too deeply.") from error
        exec(code, namespace)
        # Left in there, the function would refer to itself and outlive its statement.
        return namespace.pop(entry)


@lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    """The code of a program; kept, since statements are often prepared again with other tables or globals."""
    return compile(text, "<generated query>", "exec")


def _written_out(value: Any) -> str | None:
    """Source of a constant; None for one that is long or has no literal."""
    if type(value) is float:
        text = repr(value)
        return text if text not in ("inf", "-inf", "nan") else None
    if type(value) is int and value.bit_length() > _LONGEST_INLINE * 4:
        return None  # Python does not even spell the longest ones.
    if type(value) in _INLINE_TYPES:
        text = repr(value)
        if len(text) <= _LONGEST_INLINE:
            return f"({text})" if text.startswith("-") else text
    return None

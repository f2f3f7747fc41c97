"""The executor of INSERT, UPDATE and DELETE."""

from __future__ import annotations

from typing import Any

from quereus_store.errors import unsupported


class CompiledMutation:
    """A data-modifying statement, ready to run."""


def compile_mutation(plan: Any, engine: Any, context: Any) -> Any:
    """Compile a mutation plan."""
    raise unsupported(type(plan).__name__)

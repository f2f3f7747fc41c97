"""The conformance kit: proves that a backend keeps the contract.

A third party runs it on its own backend::

    report = run_conformance(lambda folder: MyBackend(folder / "data"))
    print(report)
    report.require()

The function given opens (or makes) the database that belongs to a folder; opening the same folder again must
find what was committed, unless ``persistent=False``.  Each check has a folder of its own.  The checks are
those of store-and-modules, section 2, restated for transactions (``conformance_checks.py``).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from quereus_store.backends.conformance_checks import CHECKS, REOPENING, Check, Opener

__all__ = ["CHECKS", "Outcome", "Report", "run_conformance"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check; ``failure`` is None if it passed."""

    check: str
    rule: str
    failure: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes, in the order of the checks."""

    outcomes: tuple[Outcome, ...]

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The checks that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.failure is not None)

    @property
    def passed(self) -> bool:
        """Whether the backend keeps the contract."""
        return not self.failures

    def require(self) -> None:
        """Raise AssertionError with the whole report unless everything passed."""
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        lines = []
        for outcome in self.outcomes:
            lines.append(
                f"{'ok    ' if outcome.failure is None else 'FAILED'}  {outcome.check}: {outcome.rule}"
            )
            if outcome.failure is not None:
                lines.append(f"        {outcome.failure}")
        return "\n".join(lines)


def run_conformance(open_backend: Opener, *, persistent: bool = True, folder: Path | None = None) -> Report:
    """Run every check on databases that ``open_backend`` opens below ``folder`` (else a temporary one).

    ``persistent=False`` leaves out the checks that close a database and open it again.
    """
    with tempfile.TemporaryDirectory(dir=folder) as place:
        outcomes = [
            _run(check, open_backend, Path(place) / check.__name__)
            for check in CHECKS
            if persistent or check not in REOPENING
        ]
    return Report(tuple(outcomes))


def _run(check: Check, open_backend: Opener, folder: Path) -> Outcome:
    folder.mkdir()
    failure: str | None = None
    try:
        backend = open_backend(folder)
        try:
            check(backend, open_backend, folder)
        finally:
            backend.close()
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    rule = " ".join((check.__doc__ or "").split())
    return Outcome(check.__name__.lstrip("_"), rule, failure)

"""Acknowledgements and policies: which advisories are reported how, and which stop APPLY (section 16).

An acknowledgement may record the digest of the situation it was given in; when that changes, the
advisory comes up again.  A table's policy makes advisories errors, in any case or until acknowledged.

Chapter: view-updates-and-lenses, section 16; seed schema, Acknowledging lens advisories.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from quereus_store.plan.lenses.prover import Advisory, Finding
from quereus_store.schema.objects import CheckConstraint, ForeignKey, TableSchema, fold

CODES = (
    "lens.pk-not-reconstructible",
    "lens.no-backing-index",
    "lens.over-restrictive-basis-key",
    "lens.getput-lossy",
    "lens.partial-override",
    "lens.no-answering-structure",
    "lens.nullability-mismatch",
)
ACK = "quereus.lens.ack."
ERROR_ON, REQUIRE_ACK = "quereus.lens.policy.error-on", "quereus.lens.policy.require-ack"
EMPTY_RATIONALE = "lens.empty-rationale"
_DIGEST = re.compile(r"\s*#fp=(\S+)\s*\Z")

ReportRow = tuple[str | None, ...]


class Status(StrEnum):
    """How an advisory stands."""

    ACTIVE = "active"
    RESURFACED = "re-surfaced"
    ACKNOWLEDGED = "acknowledged"
    UNCONDITIONAL = "acknowledged-unconditional"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One ``quereus.lens.ack.…`` tag; ``site`` are the names of the constraint that it stands on."""

    code: str
    target: str | None
    rationale: str
    recorded: str | None
    site: frozenset[str] | None = None

    def covers(self, advisory: Advisory) -> bool:
        """Whether it is about this advisory."""
        if self.code != advisory.code:
            return False
        names = {fold(name) for name in (*advisory.columns, advisory.constraint, advisory.named) if name}
        if self.site is not None and not self.site & names:
            return False
        return self.target is None or fold(self.target) in names


@dataclass(frozen=True, slots=True)
class Reported:
    """An advisory with how it stands."""

    advisory: Advisory
    status: Status
    rationale: str | None
    digest: str
    recorded: str | None

    @property
    def row(self) -> ReportRow:
        """The row of ``quereus_lens_advisories``."""
        found = self.advisory
        return (
            found.table,
            found.code,
            found.constraint,
            found.column,
            self.status.value,
            self.rationale,
            self.digest,
            self.recorded,
            found.message,
        )


def digest_of(advisory: Advisory) -> str:
    """The digest of the facts that an advisory rests on."""
    facts = repr((advisory.code, advisory.constraint, advisory.column, advisory.facts))
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def acknowledgements(table: TableSchema) -> tuple[Acknowledgement, ...]:
    """The acknowledgements of a logical table and of its constraints."""
    found = list(_in_tags(table.tags, None))
    for unique in table.unique_constraints:
        site = {unique.name, *[table.columns[column].name for column in unique.columns]}
        found += _in_tags(unique.tags, frozenset(map(fold, site)))
    others: tuple[CheckConstraint | ForeignKey, ...] = (*table.checks, *table.foreign_keys)
    for constraint in others:
        found += _in_tags(constraint.tags, frozenset({fold(constraint.name)}))
    return tuple(found)


def _in_tags(tags: Mapping[str, Any], site: frozenset[str] | None) -> Iterator[Acknowledgement]:
    for key, value in tags.items():
        if not key.startswith(ACK):
            continue
        code, _, target = key.removeprefix(ACK).partition(":")
        text = str(value)
        digest = _DIGEST.search(text)
        rationale = text[: digest.start()] if digest else text
        recorded = digest.group(1) if digest else None
        yield Acknowledgement(full_code(code), target or None, rationale.strip(), recorded, site)


def full_code(code: str) -> str:
    """A code with its prefix, which may be left out."""
    return code if code.startswith("lens.") else f"lens.{code}"


def reported(table: TableSchema, advisories: tuple[Advisory, ...]) -> tuple[Reported, ...]:
    """The advisories of a table as the report has them, with one more for an empty rationale."""
    given = acknowledgements(table)
    rows: list[Reported] = []
    for advisory in advisories:
        digest = digest_of(advisory)
        found = next((ack for ack in given if ack.covers(advisory)), None)
        if found is None:
            rows.append(Reported(advisory, Status.ACTIVE, None, digest, None))
            continue
        rows.append(_acknowledged(advisory, found, digest))
        if not found.rationale:
            message = f"the acknowledgement of {advisory.code} on '{table.name}' gives no rationale"
            note = replace(advisory, code=EMPTY_RATIONALE, message=message)
            rows.append(Reported(note, Status.ACTIVE, None, digest_of(note), None))
    return tuple(rows)


def _acknowledged(advisory: Advisory, found: Acknowledgement, digest: str) -> Reported:
    if found.recorded is None:
        return Reported(advisory, Status.UNCONDITIONAL, found.rationale, digest, None)
    if found.recorded == digest:
        return Reported(advisory, Status.ACKNOWLEDGED, found.rationale, digest, found.recorded)
    changed = (
        f"{advisory.message} [previously acknowledged; situation changed — recorded fingerprint"
        f" '{found.recorded}' no longer matches '{digest}'; review and acknowledge it again]"
    )
    again = replace(advisory, message=changed)
    return Reported(again, Status.RESURFACED, found.rationale, digest, found.recorded)


def escalated(table: TableSchema, report: tuple[Reported, ...]) -> Iterator[Finding]:
    """The errors that a table's policy makes of its advisories, and of codes that it does not know."""
    policies = {key: _listed(table.tags.get(key)) for key in (ERROR_ON, REQUIRE_ACK)}
    for key, codes in policies.items():
        for code in codes:
            if full_code(code) not in CODES:
                yield Finding(
                    "lens.unknown-policy-code",
                    f"escalation policy tag '{key}' on '{table.name}' references unknown advisory code"
                    f" '{code}' — the codes are {', '.join(CODES)}",
                )
    always = set(map(full_code, policies[ERROR_ON]))
    unless = set(map(full_code, policies[REQUIRE_ACK]))
    for item in report:
        code = item.advisory.code
        pending = item.status in (Status.ACTIVE, Status.RESURFACED)
        if code in always or (code in unless and pending):
            yield Finding(code, item.advisory.message)


def _listed(value: Any) -> list[str]:
    return [code.strip() for code in str(value).split(",") if code.strip()] if value is not None else []

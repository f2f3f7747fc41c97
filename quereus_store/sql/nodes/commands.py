"""Transactions, ATTACH, PRAGMA, ANALYZE and EXPLAIN."""

from __future__ import annotations

from enum import StrEnum

from quereus_store.records import record
from quereus_store.sql.nodes.base import Expression, Statement
from quereus_store.sql.nodes.ddl import ModuleArgument
from quereus_store.sql.nodes.expressions import Literal


class TransactionMode(StrEnum):
    """When a transaction becomes the writer: at its first write, or at BEGIN."""

    DEFERRED = "deferred"
    IMMEDIATE = "immediate"


class ExplainKind(StrEnum):
    """What EXPLAIN shows: the plan, the generated code, or the plan with measured figures."""

    QUERY_PLAN = "query plan"
    CODE = "code"
    ANALYZE = "analyze"


@record(frozen=True, slots=True)
class BeginTransaction(Statement):
    """``begin [deferred|immediate] [transaction]``."""

    mode: TransactionMode | None = None


@record(frozen=True, slots=True)
class CommitTransaction(Statement):
    """``commit [transaction]``."""


@record(frozen=True, slots=True)
class RollbackTransaction(Statement):
    """``rollback [transaction] [to [savepoint] name]``."""

    savepoint: str | None = None


@record(frozen=True, slots=True)
class Savepoint(Statement):
    """``savepoint name``."""

    name: str


@record(frozen=True, slots=True)
class ReleaseSavepoint(Statement):
    """``release [savepoint] name``."""

    name: str


@record(frozen=True, slots=True)
class Attach(Statement):
    """``attach [database] file as name [(option = value, …)]``."""

    file: Expression
    name: str
    options: tuple[ModuleArgument, ...] = ()


@record(frozen=True, slots=True)
class Detach(Statement):
    """``detach [database] name``."""

    name: str


@record(frozen=True, slots=True)
class Pragma(Statement):
    """``pragma name`` or ``pragma name = value``; a bare word is its text."""

    name: str
    value: Literal | None = None


@record(frozen=True, slots=True)
class Analyze(Statement):
    """``analyze``, ``analyze [s.]t``, ``analyze s.*`` (``schema`` without ``table``)."""

    table: str | None = None
    schema: str | None = None


@record(frozen=True, slots=True)
class Explain(Statement):
    """``explain [query plan|code|analyze] statement``."""

    statement: Statement
    kind: ExplainKind = ExplainKind.QUERY_PLAN

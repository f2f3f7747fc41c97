"""What the executor asks of whoever keeps maintained tables equal to their bodies.

Maintenance stands above the executor, so the engine knows it by this protocol only
and works without one: then statements about maintained tables are UNSUPPORTED and
none can exist.  The executor tells it of two things:

* **a statement has ended** (:meth:`Maintenance.after_statement`): rows that the
  statement changed stand in ``transaction.changes`` from ``transaction.maintained``
  on, a changed catalog in ``transaction.catalog``.  What maintenance writes belongs to
  the statement: an error undoes all of it.
* **a statement is about a maintained table** itself.

Chapter: views-and-maintained-tables, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quereus_store.modules.contract import CatalogProblem
from quereus_store.plan.stored import StoredQuery
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.results import Result
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

Handler = Callable[[Any, Any, Any], "Result"]


class RefreshedView(NamedTuple):
    """A maintained table that has been refreshed."""

    schema_name: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"


class Maintenance(Protocol):
    """Keeps maintained tables equal to their bodies."""

    @property
    def handlers(self) -> Mapping[type[nodes.Statement], Handler]:
        """Statements that are about maintained tables only."""
        ...

    def watches(self, catalog: Catalog, table: TableSchema) -> bool:
        """Whether some maintained table reads a table, so that its changes have to be known."""
        ...

    def after_statement(self, session: Session, transaction: Transaction, before: Catalog) -> None:
        """Bring every dependent up to date with what a statement changed; ``before`` is its first catalog."""
        ...

    def refresh_all(self, session: Session) -> list[RefreshedView]:
        """Refresh every maintained table, sources first, each by itself."""
        ...

    def passed_over(self, transaction: Transaction, tables: Iterable[TableSchema]) -> None:
        """Rows of these tables have changed, and dependents are not to follow."""
        ...

    def restore(self, catalog: Catalog, snapshot: Any) -> tuple[Catalog, tuple[CatalogProblem, ...]]:
        """Fill maintained tables of a loaded catalog whose rows no module kept; and what failed.

        ``snapshot`` is the persistent module's, which the catalog was loaded from.
        """
        ...

    def stored_queries(self, catalog: Catalog, tables: frozenset[tuple[str, str]]) -> Sequence[StoredQuery]:
        """The live maintained tables whose queries read nothing but these tables."""
        ...

    def explain(self, catalog: Catalog, table: TableSchema) -> list[str]:
        """What follows a change of a table, as lines of text."""
        ...

    def create_table(self, session: Session, statement: nodes.CreateTable) -> None:
        """CREATE TABLE … MAINTAINED AS."""
        ...

    def attach(
        self, session: Session, transaction: Transaction, table: TableSchema, action: nodes.SetMaintained
    ) -> None:
        """ALTER TABLE … SET MAINTAINED."""
        ...

    def detach(self, session: Session, transaction: Transaction, table: TableSchema) -> None:
        """ALTER TABLE … DROP MAINTAINED."""
        ...

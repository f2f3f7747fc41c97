"""What a running program holds: parameters, snapshots, and the way to the engine.

Generated code reads ``parameters``, ``parameter_rows`` and ``transactions``;
functions that need context read the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quereus_store.execute.committed import committed_rows
from quereus_store.execute.watch import IDLE, Watch
from quereus_store.modules.contract import Row
from quereus_store.plan.binder.context import BindContext
from quereus_store.plan.binder.view_lineage import lineage_of
from quereus_store.plan.lenses.reports import backfill_rows, effective_rows

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import ReadView
    from quereus_store.functions.introspection import Lineage
    from quereus_store.schema.objects import Schema, TableSchema, ViewSchema

Parameters = Sequence[Any] | Mapping[str, Any]


class Runtime:
    """One execution of one statement."""

    __slots__ = (
        "_common_rows",
        "_members",
        "_mutation_rows",
        "parameter_rows",
        "parameters",
        "session",
        "transaction",
        "transactions",
    )

    def __init__(
        self,
        session: Session,
        transaction: ReadView,
        parameters: Parameters,
        transactions: Sequence[Any],
        parameter_rows: list[Row] | None = None,
    ) -> None:
        self.session = session
        self.transaction = transaction
        self.parameters = parameters
        self.transactions = transactions
        self.parameter_rows = parameter_rows
        self._members: dict[int, Any] | None = None
        self._mutation_rows: dict[int, list[Row]] | None = None
        self._common_rows: dict[int, list[Row]] | None = None

    @property
    def mutations(self) -> dict[int, Any]:
        """The data-modifying members of the statement by number, each a function of the runtime."""
        if self._members is None:
            self._members = {}
        return self._members

    def mutation_rows(self, mutation_id: int) -> list[Row]:
        """The RETURNING rows of a data-modifying member; it runs when first asked for."""
        if self._mutation_rows is None:
            self._mutation_rows = {}
        rows = self._mutation_rows.get(mutation_id)
        if rows is None:
            rows = self._mutation_rows[mutation_id] = self.mutations[mutation_id](self)
        return rows

    def common_rows(self, table_id: int, compute: Callable[[], list[Row]]) -> list[Row]:
        """The rows of a common table, the same for all programs of the statement."""
        known = self.share_common_rows()
        rows = known.get(table_id)
        if rows is None:
            rows = known[table_id] = compute()
        return rows

    def share_common_rows(self) -> dict[int, list[Row]]:
        """Where the rows of common tables are kept, for another program of the same statement."""
        if self._common_rows is None:
            self._common_rows = {}
        return self._common_rows

    @property
    def diagnostics(self) -> Any:
        """What the functions about plans ask."""
        return self.session.diagnostics

    @property
    def watch(self) -> Watch:
        """What is asked while rows are read whether to go on; nobody is where no session runs the program."""
        watch: Watch = getattr(self.session, "watch", IDLE)
        return watch

    def committed_rows(self, table: TableSchema) -> Iterator[Row]:
        """The rows of a table before the current transaction, in the shape that it has now."""
        return committed_rows(self.session.engine, self.transaction, table)

    @property
    def changes(self) -> int:
        """How many rows the session's last change concerned."""
        changed: int = self.session.last_changes
        return changed

    # -- what functions with context ask for -------------------------------------

    @property
    def catalog(self) -> Any:
        """The catalog that the statement sees."""
        return self.transaction.catalog

    @property
    def registry(self) -> Any:
        """The functions that the statement may call."""
        return self.session.engine.registry

    @property
    def collations(self) -> Any:
        """The collations of the database."""
        return self.session.engine.collations

    @property
    def options(self) -> Mapping[str, Any]:
        """The session's options."""
        return self.session.options

    @property
    def schema_path(self) -> Sequence[str]:
        """The schemas that unqualified names are searched in."""
        return self.session.schema_path

    def lineage(self, relation: ViewSchema | TableSchema) -> Lineage:
        """What may be written through a view or a maintained table."""
        return lineage_of(self._bind_context(), relation)

    def effective_lens(self, view: ViewSchema) -> Iterable[tuple[Any, ...]]:
        """How the columns of a logical table are mapped."""
        return effective_rows(self._bind_context(), view)

    def basis_backfill(self, schema: Schema) -> Iterable[tuple[Any, ...]]:
        """What would fill the basis relations that a deployment has come to read."""
        return backfill_rows(self._bind_context(), schema)

    def _bind_context(self) -> BindContext:
        return self.session.engine.bind_context(self.catalog, self.schema_path, self.options)

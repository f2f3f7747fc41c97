"""Random data and schema changes in transactions: after each, the database is what the model says.

Looked at after every step: the rows of all tables, what every index finds, all columns, keys, constraints and
indexes as the catalog tells them, and whether the store's entries agree with each other, within the
open transaction too.  Outside a transaction ``quereus check`` goes through the rest.  At the end, and
whenever it comes to that, a file is closed and opened again.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import quereus_store
from quereus_store import Error
from quereus_store.cli.checking import check_database
from quereus_store.errors import StatusCode
from quereus_store.store.check import check_store
from quereus_store.store.module import StoreModule
from tests.evolution import moves
from tests.evolution.model import Model, Refused, Table

LONG = os.environ.get("QUEREUS_LONG") == "1"
SAVEPOINTS = ("s", "t")


class Evolution(RuleBasedStateMachine):
    """One database and its model."""

    backend: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.began: dict[str, Table] | None = None
        self.savepoints: list[tuple[str, dict[str, Table]]] = []
        self.folder = None if self.backend is None else tempfile.TemporaryDirectory()
        self.connection = self.open()

    def open(self) -> quereus_store.Connection:
        if self.folder is None:
            return quereus_store.connect(":memory:")
        path = Path(self.folder.name) / "db"
        return quereus_store.connect(path, backend=self.backend, synchronous="off")

    def teardown(self) -> None:
        self.connection.close()
        if self.folder is not None:
            if self.began is not None:
                self.restore(self.began)
            self.connection = self.open()
            self.looks_as_it_should()
            self.connection.close()
            self.folder.cleanup()

    # -- changes -----------------------------------------------------------------------------------------

    @initialize()
    def start(self) -> None:
        for name in moves.TABLES[:2]:
            sql = f"create table {name} (id integer primary key, a integer null, b text null)"
            self.connection.execute(sql)
            columns = [
                moves.Column("id", "integer", False),
                moves.Column("a", "integer", True),
                moves.Column("b", "text", True),
            ]
            self.model.create_table(Table(name, columns, ["id"]))

    @precondition(lambda self: self.model.tables)
    @rule(data=st.data(), make=st.sampled_from(moves.ROW_MOVES))
    def change_rows(self, data: st.DataObject, make: Any) -> None:
        table = self.model.tables[data.draw(st.sampled_from(sorted(self.model.tables)))]
        self.run(make(data.draw, self.model, table))

    @precondition(lambda self: self.model.tables)
    @rule(data=st.data(), make=st.sampled_from(moves.SCHEMA_MOVES))
    def change_schema(self, data: st.DataObject, make: Any) -> None:
        table = self.model.tables[data.draw(st.sampled_from(sorted(self.model.tables)))]
        self.run(make(data.draw, self.model, table))

    @rule(data=st.data())
    def create_table(self, data: st.DataObject) -> None:
        self.run(moves.create_table(data.draw, self.model))

    def run(self, move: moves.Move) -> None:
        """Both do it, or both refuse it; a refused statement changes nothing."""
        before = self.model.copy()
        note(f"{move.sql};")
        try:
            expected = move.effect(self.model)
            if self.began is None:
                self.model.settle()
        except Refused as reason:
            expected = reason
            self.restore(before)
        actual = self.attempt(move.sql)
        assert isinstance(actual, Error) == isinstance(expected, Refused), (move.sql, actual, expected)
        if move.counted and not isinstance(actual, Error):
            assert actual == expected, move.sql

    def attempt(self, sql: str) -> int | Error:
        """The rows that a statement changed, or its error."""
        try:
            return self.connection.execute(sql).rowcount
        except Error as error:
            if error.code is StatusCode.INTERNAL:
                raise
            return error

    def restore(self, tables: dict[str, Table]) -> None:
        self.model.tables = tables
        self.model.tables = self.model.copy()

    # -- transactions ------------------------------------------------------------------------------------

    @precondition(lambda self: self.began is None)
    @rule()
    def begin(self) -> None:
        self.connection.execute("begin")
        self.began = self.model.copy()

    @precondition(lambda self: self.began is not None)
    @rule()
    def commit(self) -> None:
        assert self.began is not None
        try:
            self.model.settle()
            refused = False
        except Refused:
            refused = True
            self.restore(self.began)
        try:
            self.connection.execute("commit")
        except quereus_store.IntegrityError:
            assert refused
        else:
            assert not refused
        self.end()

    @precondition(lambda self: self.began is not None)
    @rule()
    def rollback(self) -> None:
        assert self.began is not None
        self.connection.execute("rollback")
        self.restore(self.began)
        self.end()

    def end(self) -> None:
        self.began, self.savepoints = None, []
        assert not self.connection.in_transaction

    @rule(name=st.sampled_from(SAVEPOINTS))
    def savepoint(self, name: str) -> None:
        self.connection.execute(f"savepoint {name}")
        if self.began is None:
            self.began = self.model.copy()
        self.savepoints.append((name, self.model.copy()))

    @precondition(lambda self: self.savepoints)
    @rule(name=st.sampled_from(SAVEPOINTS), releases=st.booleans())
    def return_or_release(self, name: str, releases: bool) -> None:
        sql = f"release {name}" if releases else f"rollback to {name}"
        places = [place for place, (other, _) in enumerate(self.savepoints) if other == name]
        error = self.attempt(sql)
        assert isinstance(error, Error) != bool(places), error
        if not places:
            return
        place = places[-1]
        if releases:
            del self.savepoints[place:]
        else:
            del self.savepoints[place + 1 :]
            self.restore(self.savepoints[place][1])

    @precondition(lambda self: self.folder is not None and self.began is None)
    @rule()
    def reopen(self) -> None:
        self.connection.close()
        self.connection = self.open()

    # -- what must hold ----------------------------------------------------------------------------------

    @invariant()
    def looks_as_it_should(self) -> None:
        names = self.query("select name from schema() where schema = 'main' and type = 'table'")
        assert sorted(names) == [(name,) for name in sorted(self.model.tables)]
        for table in self.model.tables.values():
            self.compare_catalog(table)
            self.compare_rows(table)
        self.check_storage()

    def compare_catalog(self, table: Table) -> None:
        columns = self.query(
            f"select name, type, \"notnull\", dflt_value, pk from table_info('{table.name}') order by cid"
        )
        assert columns == [
            (
                column.name,
                column.kind.upper(),
                int(not column.null),
                None if column.default is None else moves.literal(column.default),
                int(column.name in table.key),
            )
            for column in table.columns
        ]
        uniques = [(item.name, item.columns, 0) for item in table.uniques]
        uniques += [
            (item.name, item.columns, int(item.where is not None)) for item in table.indexes if item.unique
        ]
        found = self.grouped(f"select name, column_name, partial from unique_constraint_info('{table.name}')")
        assert sorted(found) == sorted(uniques)
        indexes = [(item.name, item.columns, int(item.where is not None)) for item in table.indexes]
        found = self.grouped(f"select index_name, column_name, partial from index_info('{table.name}')")
        assert sorted(found) == sorted(indexes)
        checks = self.query(f"select name, expr from check_constraint_info('{table.name}')")
        assert sorted(checks) == sorted(
            (check.name, f"{check.column} < {check.bound}") for check in table.checks
        )
        keys = self.query(
            'select name, "from", referenced_table, "to", on_delete, on_update '
            f"from foreign_key_info('{table.name}')"
        )
        assert sorted(keys) == sorted(
            (key.name, key.column, key.parent, key.target, _shown(key.on_delete), _shown(key.on_update))
            for key in table.foreign_keys
        )

    def compare_rows(self, table: Table) -> None:
        wanted = table.tuples()
        assert Counter(self.query(f"select * from {table.name}")) == Counter(wanted)
        assert self.query(f"select count(*) from {table.name}") == [(len(wanted),)]
        for columns, counts in self.access_paths(table):
            place = table.names.index(columns[0])
            order = ", ".join(columns)
            where = f" where {counts[0]} > {counts[1]}" if counts else ""
            rows = [
                row
                for row, values in zip(wanted, table.rows, strict=True)
                if counts is None or (values[counts[0]] is not None and values[counts[0]] > counts[1])
            ]
            assert Counter(self.query(f"select * from {table.name}{where} order by {order}")) == Counter(rows)
            for value in {row[place] for row in wanted} - {None}:
                also = f"{where} and" if where else " where"
                sql = f"select * from {table.name}{also} {columns[0]} = {moves.literal(value)}"
                assert Counter(self.query(sql)) == Counter(row for row in rows if row[place] == value), sql

    @staticmethod
    def access_paths(table: Table) -> list[tuple[list[str], tuple[str, int] | None]]:
        paths: list[tuple[list[str], tuple[str, int] | None]] = [(table.key, None)]
        paths += [(unique.columns, None) for unique in table.uniques]
        return paths + [(index.columns, index.where) for index in table.indexes]

    def check_storage(self) -> None:
        session = self.connection.session
        if self.began is None:
            report = io.StringIO()
            assert check_database(self.connection, report), report.getvalue()
        elif session.transaction is not None:
            module = self.connection.database.engine.modules.get("store")
            if isinstance(module, StoreModule):
                findings = check_store(module, session.transaction.reader("store"))
                # The catalog of a transaction is written at its commit.
                assert [item for item in findings if item.place not in ("catalog", "stores")] == []

    # -- helpers -----------------------------------------------------------------------------------------

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def grouped(self, sql: str) -> list[tuple[str, list[str], int]]:
        found: dict[str, tuple[list[str], int]] = {}
        for name, column, partial in self.query(sql):
            found.setdefault(name, ([], partial))[0].append(column)
        return [(name, columns, partial) for name, (columns, partial) in found.items()]


def _shown(action: str) -> str:
    return "setNull" if action == "set null" else action


class EvolutionInLmdb(Evolution):
    backend = "lmdb"


class EvolutionInLeveldb(Evolution):
    backend = "leveldb"


_SETTINGS = settings(
    max_examples=300 if LONG else 10,
    stateful_step_count=60 if LONG else 25,
    deadline=None,
    derandomize=not LONG,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate),
)

TestInMemory = Evolution.TestCase
TestInMemory.settings = _SETTINGS
TestInLmdb = EvolutionInLmdb.TestCase
TestInLmdb.settings = _SETTINGS
TestInLeveldb = EvolutionInLeveldb.TestCase
TestInLeveldb.settings = _SETTINGS

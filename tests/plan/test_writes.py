"""INSERT, UPDATE, DELETE (dml-transactions-constraints, sections 1 to 11)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.mutations import DeletePlan, InsertPlan, UpdatePlan
from quereus_store.plan.nodes import ParameterRows, Values
from quereus_store.types import INTEGER, TEXT
from tests.plan.binding import CATALOG, bind_write, catalog_of, shape, show

STOCK = catalog_of(
    """
    create table stock (
        id integer primary key default (mutation_ordinal()),
        item text not null default 'none',
        label text null default (upper(new.item)),
        size integer generated always as (length(item) * 2),
        twice integer null generated always as (size + id),
        qty integer check (qty > 0) check on delete (qty = 0),
        constraint known check (exists (select 1 from stock s where s.id <= stock.id))
    );
    create table stamped (
        id integer primary key, who text default actor, at integer null default context.clock
    )
        with context (actor text, clock integer null);
    """
)


def test_one_row_of_values_is_a_function_of_the_parameters() -> None:
    plan = bind_write("insert into ship values (?, ? + 1)", p0=TEXT, p1=INTEGER)
    assert isinstance(plan, InsertPlan)
    assert isinstance(plan.source, ParameterRows)
    assert plan.source.slots == (0, 1)
    assert show(plan.row) == "(0, Arithmetic(+, 1, 1))"
    assert plan.converts == (False, False)
    assert plan.batchable


def test_a_parameter_of_another_type_is_converted() -> None:
    plan = bind_write("insert into ship values (?, ?)", p0=TEXT, p1=TEXT)
    assert plan.converts == (False, True)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into ship values (?, ?) on conflict (name) do update set tons = ?",
        "insert into ship values (?, ?) returning tons + ?",
        "insert into ship values (?, (select max(tons) from ship))",
    ],
)
def test_rows_that_cannot_be_batched(sql: str) -> None:
    assert not bind_write(sql).batchable


def test_several_rows_and_queries_are_plans() -> None:
    assert isinstance(bind_write("insert into ship values ('a', 1), (?, 2)").source, Values)
    assert shape(bind_write("insert into ship select nick, id from crew").source) == "Project(TableScan crew)"
    assert shape(bind_write("insert into ship default values").source) == "Values"


def test_omitted_columns_take_their_default() -> None:
    plan = bind_write("insert into stock (qty, item) values (1, ?)", STOCK)
    assert shape(plan.source) == "ParameterRows"
    assert show(plan.row) == "(1, 0, Call(upper, (0)), None, None, 1)"
    assert not plan.batchable


def test_rows_are_numbered_for_the_default_that_asks() -> None:
    plan = bind_write("insert into stock (qty, item) values (1, ?), (2, ?)", STOCK)
    assert shape(plan.source) == "Window(Values)"
    assert show(plan.row).startswith("(ordinal, ")


def test_default_as_a_value() -> None:
    plan = bind_write("insert into stock (id, item, label, qty) values (1, 'a', default, 2)", STOCK)
    assert show(plan.row) == "(1, 'a', Call(upper, ('a')), None, None, 2)"


def test_a_default_reads_supplied_columns_only() -> None:
    with pytest.raises(Error, match=r"new\.item isn't a column"):
        bind_write("insert into stock (id, qty) values (1, 2)", STOCK)


def test_generated_columns_come_in_dependency_order() -> None:
    plan = bind_write("insert into stock (id, item, qty) values (1, 'a', 2)", STOCK)
    assert [generated.position for generated in plan.generated] == [3, 4]
    assert show(plan.generated[1].expression) == "Arithmetic(+, size, id)"


def test_checks_by_operation() -> None:
    insert = bind_write("insert into stock (id, item, qty) values (1, 'a', 2)", STOCK)
    assert [check.deferred for check in insert.checks] == [False, True]
    delete = bind_write("delete from stock where id = 1", STOCK)
    assert isinstance(delete, DeletePlan)
    assert [show(check.expression) for check in delete.checks] == ["Comparison(=, qty, 0)"]


def test_not_null_is_tested_only_where_a_null_could_come() -> None:
    plan = bind_write("insert into crew values (1, ?, null, 'x')", p0=TEXT)
    assert plan.not_null == ()
    plan = bind_write("insert into crew values (?, null, null, 'x')")
    assert [test.position for test in plan.not_null] == [0, 1]


def test_or_replace_brings_the_default_for_a_null() -> None:
    plan = bind_write("insert or replace into stock (id, item, qty) values (1, null, 2)", STOCK)
    (test,) = [test for test in plan.not_null if test.position == 1]
    assert (test.action, show(test.substitute)) == ("replace", "'none'")


def test_upsert() -> None:
    plan = bind_write(
        "insert into crew values (1, 'a', 2, 'b') on conflict (id) do update"
        " set nick = excluded.nick || nick, rank = new.rank where crew.id > 1"
        " on conflict do nothing"
    )
    update, nothing = plan.upserts
    assert (update.target, update.assigned) == ((0,), (1, 2))
    assert show(update.row) == "(id, Concat(nick, nick), rank, ship)"
    nick = update.row[1]
    assert (nick.left.id, nick.right.id) == (plan.new[1].id, plan.old[1].id)
    assert show(update.where) == "Comparison(>, id, 1)"
    assert (nothing.target, nothing.assigned) == (None, ())


def test_update_reads_old_rows_and_the_values_assigned() -> None:
    plan = bind_write("update crew set rank = rank + 1, nick = 5 where id = 3 returning old.rank, rank")
    assert isinstance(plan, UpdatePlan)
    assert shape(plan.source) == "Project(Filter(TableScan crew))"
    assert [column.name for column in plan.source.columns] == ["id", "nick", "rank", "ship", "nick", "rank"]
    assert (plan.assigned, plan.converts) == ((1, 2), (False, True, False, False))
    assert [column.name for column in plan.returning.columns] == ["old.rank", "rank"]
    assert [value.id for value in plan.returning.expressions] == [plan.old[2].id, plan.new[2].id]


def test_update_from_and_delete_using() -> None:
    update = bind_write("update crew as c set rank = tons from ship where c.ship = name")
    assert shape(update.source) == "Project(Filter(Join cross(TableScan crew, TableScan ship)))"
    assert not update.matches_once
    delete = bind_write("delete from crew using ship where crew.ship = ship.name")
    assert shape(delete.source) == "Project(Filter(Join cross(TableScan crew, TableScan ship)))"


def test_several_columns_from_one_query() -> None:
    plan = bind_write("update crew set (rank, nick) = (select tons, name from ship where name = crew.ship)")
    assert plan.assigned == (1, 2)
    assert [column.type for column in plan.source.columns[4:]] == [TEXT, INTEGER]


def test_returning_names_and_stars() -> None:
    plan = bind_write("update crew set rank = 1 returning crew.id, *, old.*, id as id, upper(nick)")
    assert [column.name for column in plan.returning.columns] == [
        "crew.id", "id", "nick", "rank", "ship", "id:1", "nick:1", "rank:1", "ship:1", "id:2", "upper(nick)",
    ]  # fmt: skip


def test_common_tables_are_in_sight_of_every_clause() -> None:
    plan = bind_write(
        "with c as (select 1 as x) insert into ship select 'a', x from c returning (select count(*) from c)"
    )
    assert [table.name for table in plan.common_tables] == ["c"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("insert into crew (nope) values (1)", "Column 'nope' not found in table 'crew'"),
        (
            "insert into crew (id, ID) values (1, 2)",
            "column 'id' specified more than once in INSERT into 'crew'",
        ),
        (
            "insert into crew values (1)",
            r"Column count mismatch in VALUES clause\. Expected 4 columns, got 1\.",
        ),
        ("insert into crew select 1", r"Column count mismatch insert clause\."),
        ("insert into crew (id) values (1), (1, 2)", "All rows must have the same number of columns"),
        ("update crew set nope = 1", "Column 'nope' not found in table 'crew'"),
        ("update crew set rank = 1, RANK = 2", "duplicate assignment to column 'rank' in UPDATE on 'crew'"),
        (
            "insert into crew values (1, 'a', 1, 'b') on conflict (nope) do nothing",
            "Column 'nope' not found in table 'crew' for ON CONFLICT target",
        ),
        (
            "insert into crew values (1, 'a', 1, 'b') on conflict do update set nope = 1",
            "Column 'nope' not found in table 'crew' for DO UPDATE SET",
        ),
        (
            "insert into crew values (1, 'a', 1, 'b') on conflict do update set id = 1, id = 2",
            "duplicate assignment to column 'id' in ON CONFLICT DO UPDATE on 'crew'",
        ),
        (
            "insert into crew values (1, 'a', 1, 'b') returning old.id",
            "OLD qualifier cannot be used in INSERT RETURNING clause",
        ),
        ("delete from crew returning new.id", "NEW qualifier cannot be used in DELETE RETURNING clause"),
        ("delete from crew returning x.*", r"Table 'x' not found in FROM clause for qualified RETURNING \*"),
        ("delete from crew returning count(*)", "Aggregate function count not allowed in this context"),
        ("delete from committed.crew", "Cannot modify committed-state table 'committed.crew'"),
        ("delete from nope", "Table 'nope' not found in schema path: main"),
    ],
)
def test_errors(sql: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        bind_write(sql, CATALOG)
    assert caught.value.line == 1


def test_generated_columns_cannot_be_written() -> None:
    with pytest.raises(Error, match="Cannot INSERT into generated column 'size'"):
        bind_write("insert into stock (size) values (1)", STOCK)
    with pytest.raises(Error, match="Cannot UPDATE generated column 'size'"):
        bind_write("update stock set size = 1", STOCK)


def test_mutation_context() -> None:
    plan = bind_write("insert into stamped (id) with context actor = 'ann' values (1)", STOCK)
    assert show(plan.row) == "(1, 'ann', None)"
    plan = bind_write("insert into stamped (id) with context actor = lower('A'), clock = 3 values (1)", STOCK)
    assert show(plan.row) == "(1, ContextValue(actor), 3)"
    assert len(plan.context.values) == 1
    with pytest.raises(Error, match=r"table 'main\.stamped' requires mutation context variable 'actor'"):
        bind_write("insert into stamped (id) values (1)", STOCK)
    with pytest.raises(Error, match="mutation context variable 'actor' supplied more than once"):
        bind_write("insert into stamped (id) with context actor = 1, actor = 2 values (1)", STOCK)


def test_reserved_tags_have_no_place_on_a_statement() -> None:
    bind_write("delete from crew with tags (audit = true)")
    with pytest.raises(Error, match=r"Unknown reserved tag 'quereus\.x' on a DML statement"):
        bind_write('delete from crew with tags ("quereus.x" = 1)')


def test_a_write_to_a_view_is_one_to_its_table() -> None:
    plan = bind_write("delete from kites where nick = 'Bo'")
    assert plan.table.name == "crew"
    with pytest.raises(Error, match="'ship' is not a column of the view") as caught:
        bind_write("delete from kites where ship = 'Kite'")
    assert caught.value.details["reason"] == "unknown-view-column"

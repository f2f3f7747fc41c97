"""The catalogue of built-in functions is complete: every name with its arities, every table with its columns.

The lists are those of the chapter on functions; what the library has beyond them is not listed here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import quereus_store
from quereus_store import Connection

SCALARS = {
    "conversion": "integer/1 real/1 text/1 blob/1 boolean/1 date/1 time/1 datetime/1 timespan/1 json/1",
    "numbers": "abs/1 round/1 round/2 floor/1 ceil/1 ceiling/1 sqrt/1 pow/2 power/2 clamp/3",
    "conditions": "greatest/0 greatest/3 least/0 least/3 coalesce/0 coalesce/3 nullif/2 iif/3 choose/3",
    "values": "typeof/1 random/0 randomblob/1 mutation_ordinal/0",
    "text": "lower/1 upper/1 length/1 substr/2 substr/3 substring/2 substring/3 trim/1 trim/2 ltrim/1 ltrim/2"
    " rtrim/1 rtrim/2 replace/3 instr/2 reverse/1 lpad/3 rpad/3 like/2 glob/2 hex/1 unhex/1",
    "time": "date/0 date/2 date/4 time/0 time/2 datetime/0 datetime/2 julianday/0 julianday/2 epoch_s/1"
    " epoch_s/2 epoch_ms/1 epoch_ms/2 epoch_s_frac/1 epoch_s_frac/2 strftime/1 strftime/2 strftime/4"
    " IsISODate/1 IsISODateTime/1",
    "durations": "timespan_years/1 timespan_months/1 timespan_weeks/1 timespan_days/1 timespan_hours/1"
    " timespan_minutes/1 timespan_seconds/1 timespan_total_seconds/1 timespan_total_minutes/1"
    " timespan_total_hours/1 timespan_total_days/1",
    "JSON": "json_valid/1 json_type/1 json_type/2 json_extract/2 json_extract/3 json_array_length/1"
    " json_array_length/2 json_quote/1 json_array/0 json_array/3 json_object/0 json_object/4 json_insert/3"
    " json_replace/3 json_set/3 json_set/5 json_remove/1 json_remove/2 json_patch/2 json_schema/2",
}

AGGREGATES = (
    "count/0 count/1 sum/1 total/1 avg/1 min/1 max/1 group_concat/1 group_concat/2 string_concat/1 var_pop/1"
    " var_samp/1 stddev_pop/1 stddev_samp/1 json_group_array/1 json_group_object/2"
)

WINDOWS = (
    "row_number/0 rank/0 dense_rank/0 percent_rank/0 cume_dist/0 ntile/1 lag/1 lag/2 lag/3 lead/1 lead/2"
    " lead/3 first_value/1 last_value/1 count/0 count/1 sum/1 avg/1 min/1 max/1"
)

TABLES = {
    "generate_series(1, 2)": "value",
    "split_string('a,b', ',')": "value ordinal",
    "json_each('[1]')": "key value type atom id parent fullkey path",
    "json_tree('[1]', '$')": "key value type atom id parent fullkey path",
    "schema()": "schema type name tbl_name sql tags",
    "table_info('t')": "cid name type notnull dflt_value pk tags collation generated",
    "index_info('t')": "index_name seq column_name desc collation unique partial tags",
    "foreign_key_info('t')": "id name table from referenced_table referenced_schema to on_update on_delete"
    " deferred seq tags",
    "check_constraint_info('t')": "id name expr operations deferrable initially_deferred tags",
    "unique_constraint_info('t')": "id name seq column_name partial tags",
    "assertion_info()": "schema_name name violation_sql deferrable initially_deferred dependent_tables",
    "view_info()": "schema name is_insertable_into is_updatable is_deletable effective_targets",
    "view_info('v')": "schema name is_insertable_into is_updatable is_deletable effective_targets",
    "column_info('t')": "schema name cid column_name is_updatable base_table base_column",
    "function_info()": "name num_args type deterministic flags signature",
    "function_info('abs')": "name num_args type deterministic flags signature",
    "query_plan('select 1')": "id parent_id subquery_level node_type op detail object_name alias properties"
    " physical est_cost est_rows",
    "scheduler_program('select 1')": "addr dependencies description estimated_cost is_subprogram parent_addr",
    "stack_trace('select 1')": "frame_id depth location plan_node_type operation table_or_function"
    " is_virtual",
    "execution_trace('select 1')": "instruction_index operation dependencies input_values output_value"
    " duration_ms sub_programs error_message timestamp_ms",
    "row_trace('select 1')": "instruction_index operation row_index row_data timestamp_ms row_count",
    "explain_assertion('a')": "assertion relation_key base classification prepared_pk_params violation_sql",
}


@pytest.fixture(scope="module")
def con() -> Iterator[Connection]:
    with quereus_store.connect() as connection:
        connection.execute("create table t (id integer primary key, x text)")
        connection.execute("create view v as select * from t")
        connection.execute("create assertion a check (not exists (select 1 from t where x = 'no'))")
        yield connection


def calls(listed: str) -> list[tuple[str, int]]:
    return [(name, int(count)) for name, count in (item.split("/") for item in listed.split())]


def arguments(count: int) -> str:
    return ", ".join(["null"] * count)


@pytest.mark.parametrize(("name", "count"), [call for listed in SCALARS.values() for call in calls(listed)])
def test_scalar_functions(con: Connection, name: str, count: int) -> None:
    con.execute(f"explain select {name}({arguments(count)})").fetchall()


@pytest.mark.parametrize(("name", "count"), calls(AGGREGATES))
def test_aggregates(con: Connection, name: str, count: int) -> None:
    """An aggregate makes one row of none."""
    assert len(con.execute(f"select {name}({arguments(count)}) from t where false").fetchall()) == 1


@pytest.mark.parametrize(("name", "count"), calls(WINDOWS))
def test_window_functions(con: Connection, name: str, count: int) -> None:
    con.execute(f"select {name}({arguments(count)}) over (order by id) from t").fetchall()


@pytest.mark.parametrize("call", TABLES)
def test_table_valued_functions(con: Connection, call: str) -> None:
    description = con.execute(f"select * from {call}").description
    assert " ".join(column[0] for column in description or ()) == TABLES[call]


def test_what_is_missing_is_told(con: Connection) -> None:
    with pytest.raises(quereus_store.Error, match="Function not found: of_nothing/1"):
        con.execute("explain select of_nothing(null)")


def test_functions_are_listed_with_their_arity(con: Connection) -> None:
    listed = set(con.execute("select lower(name), num_args from function_info()").fetchall())
    every = " ".join([*SCALARS.values(), AGGREGATES])
    assert [
        call for call in calls(every) if not {(call[0].lower(), call[1]), (call[0].lower(), -1)} & listed
    ] == []

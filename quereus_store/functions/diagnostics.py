"""Plans, runs and assertions as rows: the declarations (functions, section 12).

What these functions show belongs to the planner and the executor.  So only their names,
columns and argument checks are here; the rows come from the statement context's ``diagnostics``, an object
with one method for each function, of the same name and arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from quereus_store.errors import StatusCode, sql_error, unsupported
from quereus_store.functions.introspection import columns_of
from quereus_store.functions.registry import Function, ResultColumn, TableFunction
from quereus_store.types.logical import REAL
from quereus_store.types.values import Value

_Row = tuple[Value, ...]


def _method(context: Any, name: str) -> Callable[..., Iterable[_Row]]:
    method = getattr(getattr(context, "diagnostics", None), name, None)
    if method is None:
        raise unsupported(f"{name}()")
    return method  # type: ignore[no-any-return]


def _of_text(name: str, needs: str) -> Callable[..., Iterable[_Row]]:
    """A function of one text."""

    def rows(context: Any, argument: Value) -> Iterable[_Row]:
        if type(argument) is not str:
            raise sql_error(StatusCode.ERROR, f"{name}() requires {needs} argument")
        return _method(context, name)(argument)

    return rows


def _costs(columns: tuple[ResultColumn, ...], *reals: str) -> tuple[ResultColumn, ...]:
    return tuple(ResultColumn(column.name, REAL) if column.name in reals else column for column in columns)


_SQL_FUNCTIONS: dict[str, tuple[ResultColumn, ...]] = {
    "query_plan": _costs(
        columns_of(
            "id parent_id subquery_level node_type op detail object_name alias properties physical"
            " est_cost est_rows",
            "id parent_id subquery_level est_rows",
        ),
        "est_cost",
    ),
    "scheduler_program": _costs(
        columns_of(
            "addr dependencies description estimated_cost is_subprogram parent_addr",
            "addr is_subprogram parent_addr",
        ),
        "estimated_cost",
    ),
    "stack_trace": columns_of(
        "frame_id depth location plan_node_type operation table_or_function is_virtual",
        "frame_id depth is_virtual",
    ),
    "execution_trace": _costs(
        columns_of(
            "instruction_index operation dependencies input_values output_value duration_ms sub_programs"
            " error_message timestamp_ms",
            "instruction_index",
        ),
        "duration_ms",
        "timestamp_ms",
    ),
    "row_trace": _costs(
        columns_of(
            "instruction_index operation row_index row_data timestamp_ms row_count",
            "instruction_index row_index row_count",
        ),
        "timestamp_ms",
    ),
}

_ASSERTION_COLUMNS = columns_of("assertion relation_key base classification prepared_pk_params violation_sql")


def _table(
    name: str, call: Callable[..., Iterable[_Row]], arguments: int, columns: tuple[ResultColumn, ...]
) -> TableFunction:
    return TableFunction(name, call, arguments, arguments, columns, deterministic=False, needs_context=True)


def diagnostic_functions() -> list[Function]:
    """The whole family, ready to register."""
    return [
        *(
            _table(name, _of_text(name, "a SQL string"), 1, columns)
            for name, columns in _SQL_FUNCTIONS.items()
        ),
        _table(
            "explain_assertion",
            _of_text("explain_assertion", "an assertion name string"),
            1,
            _ASSERTION_COLUMNS,
        ),
    ]

"""Window functions (queries, section 13)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import FrameBound, FrameExclusion, FrameUnit, PlanNode, Window, inputs
from tests.plan.binding import bind, shape, show, types_of


def windows(sql: str) -> list[Window]:
    """The window nodes of a query, outermost first."""
    found: list[Window] = []
    plan: PlanNode | None = bind(sql)
    while plan is not None:
        if isinstance(plan, Window):
            found.append(plan)
        plan = next(iter(inputs(plan)), None)
    return found


def test_calls_over_equal_windows_share_a_node() -> None:
    (window,) = windows(
        "select rank() over (partition by ship order by id), sum(rank) over w from crew"
        " window w as (partition by ship order by id)"
    )
    assert [call.function.name for call in window.calls] == ["rank", "sum"]
    assert show(window.partition) == "(ship)"
    assert len(windows("select rank() over (order by id), rank() over (order by nick) from crew")) == 2


def test_a_window_may_refine_a_named_one() -> None:
    (window,) = windows("select rank() over (w order by id) from crew window w as (partition by ship)")
    assert (show(window.partition), show(window.order[0].expression)) == ("(ship)", "id")
    with pytest.raises(Error, match="cannot override PARTITION BY of window 'w'"):
        bind("select rank() over (w partition by id) from crew window w as (partition by ship)")
    with pytest.raises(Error, match="Unknown window name: w"):
        bind("select count(*) over w from crew")


def test_default_frames() -> None:
    (whole,) = windows("select count(*) over () from crew")
    assert whole.calls[0].frame.end is FrameBound.UNBOUNDED_FOLLOWING
    (running,) = windows("select count(*) over (order by id) from crew")
    assert (running.calls[0].frame.unit, running.calls[0].frame.end) == (
        FrameUnit.RANGE,
        FrameBound.CURRENT_ROW,
    )


def test_a_written_frame() -> None:
    (window,) = windows(
        "select sum(id) over (order by id groups between 2 preceding and ? following exclude ties) from crew"
    )
    frame = window.calls[0].frame
    assert (frame.unit, frame.start, frame.end) == (
        FrameUnit.GROUPS,
        FrameBound.PRECEDING,
        FrameBound.FOLLOWING,
    )
    assert (show(frame.start_offset), show(frame.end_offset)) == ("2", "?0")
    assert frame.exclusion is FrameExclusion.TIES


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("rank() over ()", "Window function rank requires ORDER BY clause"),
        ("ntile() over (order by id)", "Window function ntile expects 1 arguments, got 0"),
        ("lag() over (order by id)", "lag requires at least one argument"),
        ("upper(nick) over ()", "Unknown window function: upper"),
        ("row_number()", "Function not found: row_number/0"),
        (
            "sum(id) over (order by id rows 1.5 preceding)",
            r"Invalid window frame offset: 1\.5\. Must be a non-negative integer\.",
        ),
        (
            "sum(id) over (order by id rows id preceding)",
            "Window frame offsets must be constant numeric literals",
        ),
        ("sum(count(*) over ()) over ()", "Window function count not allowed in this context"),
    ],
)
def test_errors(call: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        bind(f"select {call} from crew")
    assert caught.value.line == 1


@pytest.mark.parametrize("clause", ["where", "group by", "having"])
def test_windows_stand_in_select_qualify_and_order_by_only(clause: str) -> None:
    with pytest.raises(Error, match="Window function rank not allowed in this context"):
        bind(f"select count(*) from crew {clause} rank() over (order by 1) = 1")


def test_qualify_filters_above_the_windows_and_sees_aliases() -> None:
    plan = bind("select id, rank() over (order by rank) as r from crew qualify r = 1")
    assert shape(plan) == "Project(Filter(Window(TableScan crew)))"


def test_windows_in_order_by() -> None:
    assert shape(bind("select id from crew order by rank() over (order by nick)")) == (
        "Project(Sort(Project(Window(TableScan crew))))"
    )


def test_windows_over_groups() -> None:
    (window,) = windows("select ship, sum(count(*)) over (order by max(rank)) from crew group by ship")
    assert show(window.calls[0].arguments) == "(count)"
    assert show(window.order[0].expression) == "max"


def test_over_of_a_grouped_query_sees_aliases() -> None:
    (window,) = windows(
        "select ship as k, rank() over (order by k, c) as r, count(*) as c from crew group by ship"
    )
    assert [show(term.expression) for term in window.order] == ["ship", "count"]
    with pytest.raises(Error, match="ambiguous column name: k"):
        bind("select ship as k, nick as k, rank() over (order by k) from crew group by ship, nick")


def test_types() -> None:
    assert types_of(
        "select row_number() over (order by id), percent_rank() over (order by id),"
        " lag(id) over (order by id), lag(id, 1, 0.5) over (order by id),"
        " first_value(nick) over (order by id) from crew"
    ) == ["INTEGER", "REAL", "INTEGER?", "NUMERIC?", "TEXT?"]


def test_min_carries_its_collation() -> None:
    (window,) = windows("select min(n) over (partition by n order by r) from words")
    assert (window.calls[0].using, window.partition_using, window.order[0].using) == (
        "NOCASE",
        ("NOCASE",),
        "RTRIM",
    )

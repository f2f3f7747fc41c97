"""RANGE frames with durations: every frame is what the calendar of Python's own datetime makes of it."""

from __future__ import annotations

import calendar
import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.functions.windows import FrameSpecification, frame_offset, frames_of, peers_of
from quereus_store.types.logical import DATETIME, INTEGER

Moment = datetime.datetime
BASE = Moment(2024, 1, 1)


def moved(moment: Moment, months: int, days: int, hours: int) -> Moment:
    """A moment some months on, by the calendar, then some days and hours."""
    years, month = divmod(moment.month - 1 + months, 12)
    year = moment.year + years
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year, month + 1, day) + datetime.timedelta(days=days, hours=hours)


def one_unit(count: int) -> st.SearchStrategy[tuple[int, int, int]]:
    """Lengths in one unit, which never move a later moment before an earlier one."""
    counts = st.integers(0, count)
    return st.one_of(
        counts.map(lambda months: (months, 0, 0)),
        counts.map(lambda days: (0, 10 * days, 0)),
        counts.map(lambda hours: (0, 0, 24 * hours)),
    )


def spelled(length: tuple[int, int, int]) -> str:
    months, days, hours = length
    return f"P{months}M{days}DT{hours}H"


@pytest.mark.parametrize("type_name", ["date", "datetime"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
@settings(max_examples=40, deadline=None)
@given(
    days=st.lists(st.none() | st.integers(0, 130), max_size=12),
    before=one_unit(3),
    after=one_unit(3),
)
def test_frames_follow_the_calendar(
    type_name: str,
    direction: str,
    days: list[int | None],
    before: tuple[int, int, int],
    after: tuple[int, int, int],
) -> None:
    moments = [None if day is None else BASE + datetime.timedelta(days=day) for day in days]
    connection = quereus_store.connect(":memory:")
    connection.execute(f"create table t (id integer primary key, d {type_name} null)")
    texts = [None if m is None else m.date().isoformat() for m in moments]
    connection.executemany("insert into t values (?, ?)", list(enumerate(texts)))
    found = connection.execute(
        f"select id, json_group_array(id) over (order by d {direction}"
        f" range between interval '{spelled(before)}' preceding and ? following) from t order by id",
        [spelled(after)],
    ).fetchall()
    sign = 1 if direction == "asc" else -1

    def frame(moment: Moment | None) -> set[int]:
        if moment is None:
            return {row for row, other in enumerate(moments) if other is None}
        ends = [
            moved(moment, *(-sign * part for part in before)),
            moved(moment, *(sign * part for part in after)),
        ]
        low, high = sorted(ends)
        return {row for row, other in enumerate(moments) if other is not None and low <= other <= high}

    assert [set(ids) for _, ids in found] == list(map(frame, moments))


def frames(type_name: str, texts: list[str], clause: str) -> list[int]:
    rows = ", ".join(f"(cast('{text}' as {type_name}))" for text in texts)
    query = f"with v(x) as (values {rows}) select count(*) over (order by x range between {clause}) from v"
    return [count for (count,) in quereus_store.connect(":memory:").execute(query).fetchall()]


def test_a_time_does_not_turn_at_midnight() -> None:
    times = ["01:00:00", "12:00:00", "23:00:00"]
    assert frames("time", times, "interval '2' hour preceding and 'PT3H' following") == [1, 1, 1]
    assert frames("time", times, "interval '1' day preceding and current row") == [1, 2, 3]


def test_durations_are_measured_by_their_length() -> None:
    spans = ["PT1H", "PT90M", "PT2H", "P1D"]
    assert frames("timespan", spans, "interval '30' minute preceding and current row") == [1, 2, 2, 1]


def test_bounds_never_fall_where_the_calendar_turns_moments_round() -> None:
    # A month and two hours from 30 January 23:00 is 1 March, but from 31 January it is 29 February.
    keys = ["2024-01-30T23:00:00", "2024-01-31T00:00:00", "2024-02-29T12:00:00", "2024-03-01T00:30:00"]
    offset = frame_offset("P1MT2H", "range", DATETIME)
    frame = FrameSpecification("range", "current row", "following", 0, offset, measured=DATETIME)
    ((starts, ends),) = frames_of(frame, peers_of(4, keys), keys).parts
    assert (starts, ends) == ([0, 1, 2, 3], [4, 4, 4, 4])


@pytest.mark.parametrize("offset", ["-P7D", "P1Q", "x", None, True])
def test_offsets_that_are_refused(offset: Any) -> None:
    with pytest.raises(quereus_store.Error, match="Must be a non-negative"):
        frame_offset(offset, "range", DATETIME)


def test_only_moments_are_measured_by_durations() -> None:
    with pytest.raises(quereus_store.Error, match="Invalid window frame offset: P7D"):
        frame_offset("P7D", "range", INTEGER)


def test_frames_of_many_rows() -> None:
    size = 2000
    keys = [(BASE + datetime.timedelta(hours=row)).isoformat() for row in range(size)]
    for span, width in (("PT1H", 1), ("P30D", 720)):
        frame = FrameSpecification(
            "range", "preceding", start_offset=frame_offset(span, "range", DATETIME), measured=DATETIME
        )
        ((starts, ends),) = frames_of(frame, peers_of(size, keys), keys).parts
        assert starts == [max(row - width, 0) for row in range(size)]
        assert ends == list(range(1, size + 1))

"""Date functions with modifiers and strftime (types-and-values, section 14; functions, section 5)."""

import time

import pytest

from quereus_store.types.temporal import modifiers
from quereus_store.types.temporal.modifiers import (
    date_now,
    date_text,
    datetime_now,
    datetime_text,
    epoch_millis,
    epoch_seconds,
    epoch_seconds_fraction,
    julian_day,
    time_now,
    time_text,
)
from quereus_store.types.temporal.strftime import strftime_text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("2025-03-31", "-1 month"), "2025-02-28"),
        (("2025-03-05", "start of month", "+1 month", "-1 day"), "2025-03-31"),
        (("2025-03-05", "start of year"), "2025-01-01"),
        (("2025-03-05", "weekday 0"), "2025-03-09"),
        (("2025-03-05", "weekday 3"), "2025-03-05"),
        (("2025-03-05", "weekday 9"), "2025-03-05"),
        (("2025-03-05", " +1 WEEK"), "2025-03-05"),
        (("2025-03-05", None, 5, "+ 1 Years"), "2026-03-05"),
        (("2025-03-05", "+1.9 days"), "2025-03-06"),
        ((86400, "unixepoch"), "1970-01-02"),
        (("unixepoch", 86400), "1970-01-02"),
        (("2025-03-05", "unixepoch"), "2025-03-05"),
        ((2460739.5,), "2025-03-05"),
        ((1741132800,), "2025-03-05"),
        # Beyond the seconds of the year 3000 a number is milliseconds.
        ((1741132800000,), "2025-03-05"),
        ((40_000_000_000,), "1971-04-08"),
        (("20250305", "+1 day"), "2025-03-06"),
        (("10:30", "+1 day"), "2000-01-02"),
        (("soon", "+1 day"), None),
        (("86400", "unixepoch"), None),
        ((True, "utc"), None),
        ((None, "utc"), None),
        ((b"2025-03-05", "utc"), None),
        ((2**60, "unixepoch"), None),
        ((1.0005, "unixepoch"), None),
        ((), None),
    ],
)
def test_date(arguments, expected):
    assert date_text(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("2025-03-05", "+1.5 hours"), None),
        (("2025-03-05", "+1.5 seconds"), "2025-03-05 00:00:01"),
        (("2025-03-05", "+1.5 seconds", "subsec"), "2025-03-05 00:00:01.500"),
        (("2025-03-05T10:00:00+02:00", "utc"), "2025-03-05 08:00:00"),
        (("2025-03-05", "-1 hour"), "2025-03-04 23:00:00"),
        (("2025-03-05 10:11:12.9999", "start of day"), "2025-03-05 00:00:00"),
        (("2025-03-05 23:59:60", "utc"), "2025-03-05 23:59:59"),
        (("2025-03-05 24:00", "utc"), None),
        (("2024-07-22 10:30:00", "weekday 3", "start of day"), "2024-07-24 00:00:00"),
    ],
)
def test_datetime(arguments, expected):
    assert datetime_text(*arguments) == expected


def test_time():
    assert time_text("2025-03-05T10:11:12.987654", "subsec") == "10:11:12.987"
    assert time_text("10:30", "+45 minutes") == "11:15:00"


def test_numbers():
    assert julian_day("2025-03-05") == 2460739.5
    assert epoch_seconds("1969-12-31T23:59:58.5Z") == -2
    assert epoch_millis("1970-01-01 00:00:01.25") == 1250
    assert epoch_seconds_fraction("1970-01-02", "+1 second") == 86401.0


@pytest.mark.parametrize("value", [86400, "10:30", "20250305", "2025-03-05T10", None, "soon"])
def test_epochs_are_strict(value):
    assert epoch_seconds(value) is None
    assert epoch_millis(value) is None


@pytest.fixture
def new_york(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_local_time():
    assert datetime_text("2025-01-15 12:00", "localtime") == "2025-01-15 07:00:00"
    assert datetime_text("2025-07-15 12:00", "localtime") == "2025-07-15 08:00:00"
    assert datetime_text("2025-07-15 12:00", "localtime", "utc") == "2025-07-15 12:00:00"
    assert date_text("2025-01-15 03:00", "start of day", "localtime") == "2025-01-14"
    assert epoch_seconds("1970-01-01", "localtime") == 0
    assert strftime_text("%z", "2025-01-15", "localtime") == "-0500"
    # The clock jumps ahead at two in the morning; an hour is an hour.
    assert datetime_text("2025-03-09 06:30", "localtime", "+1 hour") == "2025-03-09 03:30:00"


def test_now(monkeypatch):
    monkeypatch.setattr(modifiers.clock, "time_ns", lambda: 1_741_179_723_987_654_321)
    assert date_now() == "2025-03-05"
    assert time_now() == "13:02:03"
    assert datetime_now() == "2025-03-05T13:02:03.987Z"
    assert datetime_text(" NOW ", "start of month") == "2025-03-01 00:00:00"
    assert epoch_millis("now") == 1_741_179_723_987


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("%Y-%m-%d", "2025-03-05"),
        ("%F %T", "2025-03-05 13:02:03"),
        ("%R %r %D", "13:02 01:02:03 PM 03/05/25"),
        ("%f", ".500"),
        ("%j %w %u", "064 3 3"),
        ("%W %V %G %g", "10 10 2025 25"),
        ("%y %C %h", "25 20 Mar"),
        ("[%e] [%k] [%l] %I", "[ 5] [13] [ 1] 01"),
        ("%p %P", "PM pm"),
        ("%s %E %Q", "1741179723 1741179723 1741179723500"),
        ("%z %%", "+0000 %"),
        ("%U %b %Z %-d %", "%U %b %Z %-d %"),
    ],
)
def test_strftime(layout, expected):
    assert strftime_text(layout, "2025-03-05 13:02:03.5") == expected


def test_strftime_gives_null():
    assert strftime_text(5, "2025-03-05") is None
    assert strftime_text("%Y", "soon") is None
    assert strftime_text("%Y") is None
    assert strftime_text("%J", "2025-03-05") == "2460739.5"

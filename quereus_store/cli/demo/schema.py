"""The tables of the demo: types, keys, references and indexes, and where the rows come from.

Columns are NOT NULL unless they say ``null``; ``NA`` in the data is NULL.  Flights have no natural
key that is short, so they are numbered.  ``flight.dest`` and ``flight.tailnum`` are not declared as
references: some destinations and planes are missing from the other tables, and one of the questions
asks which.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table, the CSV member that holds its rows, and the types of the CSV's columns.

    ``columns`` are name and type of each CSV column; ``numbered`` puts a running number in front.
    """

    name: str
    source: str
    create: str
    columns: tuple[tuple[str, str], ...]
    numbered: bool = False


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.split() for part in text.split(","))
    return tuple((name, type_name.upper()) for name, type_name in pairs)


TABLES: tuple[DemoTable, ...] = (
    DemoTable(
        "airlines",
        "airlines.csv",
        "create table airlines (carrier text primary key, name text)",
        _columns("carrier text, name text"),
    ),
    DemoTable(
        "airports",
        "airports.csv",
        """create table airports (
            faa text primary key, name text, lat real, lon real, alt integer, tz integer, dst text,
            tzone text null
        )""",
        _columns("faa text, name text, lat real, lon real, alt integer, tz integer, dst text, tzone text"),
    ),
    DemoTable(
        "planes",
        "planes.csv",
        """create table planes (
            tailnum text primary key, year integer null, type text, manufacturer text, model text,
            engines integer check (engines > 0), seats integer, speed integer null, engine text
        )""",
        _columns(
            "tailnum text, year integer, type text, manufacturer text, model text, engines integer, "
            "seats integer, speed integer, engine text"
        ),
    ),
    DemoTable(
        "weather",
        "weather.csv",
        """create table weather (
            origin text references airports (faa), year integer, month integer, day integer, hour integer,
            "temp" real null, dewp real null, humid real null, wind_dir integer null, wind_speed real null,
            wind_gust real null, precip real, pressure real null, visib real, time_hour datetime,
            primary key (origin, time_hour)
        )""",
        _columns(
            "origin text, year integer, month integer, day integer, hour integer, temp real, dewp real, "
            "humid real, wind_dir integer, wind_speed real, wind_gust real, precip real, pressure real, "
            "visib real, time_hour datetime"
        ),
    ),
    DemoTable(
        "flights",
        "flights.csv.zip",
        """create table flights (
            id integer primary key, year integer, month integer, day integer, dep_time integer null,
            sched_dep_time integer, dep_delay integer null, arr_time integer null, sched_arr_time integer,
            arr_delay integer null, carrier text references airlines (carrier), flight integer,
            tailnum text null, origin text references airports (faa), dest text, air_time integer null,
            distance integer check (distance > 0), hour integer, minute integer, time_hour datetime
        )""",
        _columns(
            "year integer, month integer, day integer, dep_time integer, sched_dep_time integer, "
            "dep_delay integer, arr_time integer, sched_arr_time integer, arr_delay integer, carrier text, "
            "flight integer, tailnum text, origin text, dest text, air_time integer, distance integer, "
            "hour integer, minute integer, time_hour datetime"
        ),
        numbered=True,
    ),
)

INDEXES: tuple[str, ...] = (
    "create index flights_tailnum on flights (tailnum)",
    "create index flights_route on flights (origin, dest)",
    "create index flights_day on flights (month, day)",
)

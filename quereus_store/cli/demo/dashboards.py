"""Dashboards over the flights: maintained tables, each with the question it answers.

``top_airports`` is a view over a view: a flight changes ``per_airport``, and that changes the ranking.  Its
order is that of its key, so the head of it is read without sorting.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A maintained table: its name, what it shows, its body."""

    name: str
    title: str
    body: str

    @property
    def create(self) -> str:
        """The statement that makes it."""
        return f"create materialized view {self.name} as\n{self.body}"


DASHBOARDS: tuple[Dashboard, ...] = (
    Dashboard(
        "per_day",
        "each carrier by day",
        """select carrier, month, day, count(*) as flights, count(dep_time) as departed,
       count(arr_delay) as arrived, sum(arr_delay) as minutes, avg(arr_delay) as mean_delay,
       max(arr_delay) as worst
from flights group by carrier, month, day""",
    ),
    Dashboard(
        "per_route",
        "each route with its delays, in any weather and in fog",
        """select f.origin, f.dest, count(*) as flights, count(f.dep_delay) as departed,
       sum(f.dep_delay) as minutes, avg(f.dep_delay) as mean_delay,
       count(f.dep_delay) filter (where w.visib < 5) as in_fog,
       sum(f.dep_delay) filter (where w.visib < 5) as minutes_in_fog
from flights f join weather w on w.origin = f.origin and w.time_hour = f.time_hour
group by f.origin, f.dest""",
    ),
    Dashboard(
        "per_airport",
        "each destination",
        """select dest, count(*) as flights, count(arr_delay) as arrived, sum(arr_delay) as minutes,
       sum(distance) as miles
from flights group by dest""",
    ),
    Dashboard(
        "top_airports",
        "destinations, the busiest first",
        "select dest, flights, miles from per_airport order by flights desc, dest",
    ),
)

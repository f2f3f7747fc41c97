"""What the analyst asks: one entry a question, in SQL as one would type it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A question in words and in SQL."""

    title: str
    sql: str


QUESTIONS: tuple[Question, ...] = (
    Question(
        "Where do most flights go, and how late do they arrive?",
        """select f.dest, a.name, count(*) as flights, round(avg(f.arr_delay) * 10) / 10 as mean_delay
from flights f left join airports a on a.faa = f.dest
group by f.dest, a.name
order by flights desc
limit 8""",
    ),
    Question(
        "Which airlines can be relied on?",
        """select a.name, count(*) as flights,
       round(1000.0 * sum(case when f.arr_delay > 30 then 1 else 0 end) / count(f.arr_delay)) / 10
           as late_percent
from flights f join airlines a on a.carrier = f.carrier
group by a.name
having count(*) > 1000
order by late_percent""",
    ),
    Question(
        "At what hour should one leave?",
        """select hour, count(*) as flights, round(avg(dep_delay) * 10) / 10 as mean_delay
from flights
where dep_delay is not null
group by hour
order by mean_delay
limit 6""",
    ),
    Question(
        "What were the five worst days?",
        """select month, day, count(*) as flights, count(*) - count(dep_time) as cancelled,
       round(avg(dep_delay)) as mean_delay
from flights
group by month, day
order by mean_delay desc
limit 5""",
    ),
    Question(
        "Does fog matter?",
        """select sight, count(*) as flights, round(avg(dep_delay) * 10) / 10 as mean_delay
from (
    select f.dep_delay,
           case when w.visib < 1 then 'below 1 mile' when w.visib < 5 then '1 to 5 miles' else 'clear' end
               as sight
    from flights f join weather w on w.origin = f.origin and w.time_hour = f.time_hour
) seen
group by sight
order by mean_delay desc""",
    ),
    Question(
        "How old are the planes?",
        """select p.year - p.year % 10 as decade, count(distinct p.tailnum) as planes, count(*) as flights
from planes p join flights f on f.tailnum = p.tailnum
where p.year is not null
group by p.year - p.year % 10
order by decade""",
    ),
    Question(
        "Which routes are longest?",
        """select distinct origin, dest, distance from flights order by distance desc limit 5""",
    ),
    Question(
        "How many seats did each airline move?",
        """select f.carrier, sum(p.seats) as seats, round(avg(p.seats)) as seats_a_flight
from flights f join planes p on p.tailnum = f.tailnum
group by f.carrier
order by seats desc
limit 6""",
    ),
    Question(
        "Where did one plane fly in its first days?",
        """select month, day, sched_dep_time, carrier, origin, dest, arr_delay
from flights
where tailnum = 'N14228'
order by time_hour, id
limit 6""",
    ),
    Question(
        "How many routes have a single airline?",
        """select count(*) as routes, sum(airlines = 1) as with_one_airline, max(airlines) as most
from (select origin, dest, count(distinct carrier) as airlines from flights group by origin, dest) r""",
    ),
    Question(
        "Which destinations are missing from the table of airports?",
        """select dest, count(*) as flights
from flights
where dest not in (select faa from airports)
group by dest
order by flights desc""",
    ),
    Question(
        "How was the last week of the year?",
        """select day, count(*) as flights, round(avg(arr_delay) * 10) / 10 as mean_delay
from flights
where month = 12 and day >= 25
group by day
order by day""",
    ),
)

"""The examples and the plans of docs/materialized-views.md are what the database says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import quereus_store

PAGE = (Path(__file__).parents[2] / "docs" / "materialized-views.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
SQL = [text for language, text in BLOCKS if language == "sql"]
SHOWN = [text for language, text in BLOCKS if not language]


def plan(con: Any, statement: str) -> str:
    return "\n".join(line for (line,) in con.execute(f"explain query plan {statement}"))


def test_the_page() -> None:
    con = quereus_store.connect(":memory:")
    con.executescript(SQL[0])
    assert con.execute("select * from per_day").fetchall() == [("AB", 1, 1, 1, 10, 10.0)]
    assert con.execute("select * from busiest").fetchall() == [("AB", 1)]
    assert plan(con, "insert into flight values (2, 'AB', 1, 5)") == SHOWN[0]

    con.execute(
        "create materialized view named as"
        " select f.id, c.name, f.day from flight f join carrier c on c.code = f.carrier"
    )
    assert SHOWN[1] in plan(con, "insert into flight values (2, 'AB', 1, 5)")
    ((by_carrier,),) = con.execute("select plan from maintenance_info('named') where source = 'carrier'")
    assert "CHANGES code, name" in by_carrier
    assert "HASH JOIN" in by_carrier
    con.execute("drop materialized view named")

    con.execute("insert into flight values (2, 'AB', 1, 10), (3, 'AB', 1, 5), (4, 'AB', 1, null)")
    con.execute("delete from flight where id = 1")
    assert con.execute("select * from per_day").fetchall() == [("AB", 1, 3, 2, 15, 7.5)]

    con.executemany(
        "insert into flight values (?, ?, ?, ?)",
        [(n, "ABCD"[n % 3 : n % 3 + 2], n % 30, n % 60) for n in range(10, 3000)],
    )
    assert plan(con, SQL[1].strip().removeprefix("explain query plan").rstrip(";")) == SHOWN[-1]
    con.execute("pragma answer_from_views = false")
    assert "SCAN main.flight" in plan(con, "select carrier, count(*) from flight group by carrier")
    con.close()


def test_rows_are_reported_as_the_page_shows() -> None:
    con = quereus_store.connect(":memory:")
    con.executescript(SQL[0])
    (example,) = [text for language, text in BLOCKS if language == "python"]
    exec(example, {"con": con})
    found = con.execute("select day, flights, minutes from per_day").fetchall()
    assert found == [(1, 1, 30), (2, 1, 10)]
    con.close()


def test_the_strategies_of_the_page_are_those_there_are() -> None:
    named = re.findall(r"^\| `([a-z ]+)` \|", PAGE, re.MULTILINE)
    assert named == ["delta", "merge", "states", "touched keys", "rebuild"]

"""``quereus explain``: the plan as text, JSON, a picture and a page."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import quereus_store
from quereus_store import PlanStep
from quereus_store.cli.plans.layout import BOX_WIDTH, lay_out
from quereus_store.cli.plans.listing import is_misjudged
from tests.cli.running import Run

SVG = "{http://www.w3.org/2000/svg}"
QUERY = "select name, count(*) from crew join ship on ship.name = crew.ship where id < 9 group by name"


@pytest.fixture
def run(run: Run) -> Run:
    with quereus_store.connect("app.qdb") as connection:
        connection.executescript("""
            create table ship (name text primary key);
            insert into ship values ('Ark'), ('B<e>e');
            create table crew (id integer primary key, ship text);
            insert into crew values (1, 'Ark'), (2, 'Ark'), (3, 'B<e>e');
        """)
    return run


def test_text(run: Run) -> None:
    status, output, _ = run("explain", "app.qdb", "select id from crew where ship = 'Ark'")
    assert status == 0
    operators = [line.split("  about ")[0].rstrip() for line in output.splitlines()]
    assert operators == ["PROJECT id", "  FILTER ship = 'Ark'", "    SCAN main.crew"]
    assert re.search(r"SCAN main\.crew +about 3 rows, cost 3$", output)


def test_measured_text(run: Run) -> None:
    status, output, _ = run("explain", "app.qdb", "--analyze", "select id from crew where ship = 'Ark'")
    assert status == 0
    assert re.search(
        r"^ *FILTER ship = 'Ark' +about .*; measured 2 rows, \d+\.\d\d ms \(\d+%\)$", output, re.M
    )


def test_changes_are_rolled_back(run: Run) -> None:
    _, output, _ = run("explain", "app.qdb", "--analyze", "delete from crew")
    assert re.search(r"^DELETE main\.crew .*measured 3 rows", output)
    with quereus_store.connect("app.qdb") as connection:
        assert connection.execute("select count(*) from crew").fetchone() == (3,)


def test_json(run: Run) -> None:
    _, output, _ = run("explain", "app.qdb", "--json", QUERY)
    tree = json.loads(output)
    assert tree["children"]
    assert tree["rows"] is None


@pytest.mark.parametrize("analyze", [(), ("--analyze",)])
def test_a_picture(run: Run, analyze: tuple[str, ...]) -> None:
    status, output, _ = run("explain", "app.qdb", "--svg", "plan.svg", *analyze, QUERY)
    assert (status, output) == (0, "")
    text = Path("plan.svg").read_text(encoding="utf-8")
    picture = ElementTree.fromstring(text)
    boxes = picture.findall(f"{SVG}g")
    with quereus_store.connect("app.qdb") as connection:
        steps = list(connection.explain(QUERY).walk())
    assert [box.findtext(f"{SVG}title") for box in boxes] == [step.text for step, _ in steps]
    # One edge fewer than boxes, each with its rows.
    assert len(picture.findall(f"{SVG}path")) == len(boxes) - 1
    assert (
        len([label for label in picture.findall(f"{SVG}text") if "row" in (label.text or "")])
        == len(boxes) - 1
    )
    assert not re.search(r"href|url\(|src=|@import|<script", text)


def test_a_page(run: Run) -> None:
    sql = "select * from ship where name = 'B<e>e'"
    status, output, _ = run("explain", "app.qdb", "--html", "-", "--analyze", sql)
    assert status == 0
    assert output.startswith("<!DOCTYPE html>")
    assert "<pre>select * from ship where name = &#x27;B&lt;e&gt;e&#x27;</pre>" in output
    assert "<e>" not in output
    assert "<th>own time</th>" in output
    assert not re.search(r"href|url\(|src=|@import|<script", output)


def test_mistakes_are_told(run: Run) -> None:
    assert run("explain", "app.qdb", "select nothing")[0] == 1
    assert run("explain", "app.qdb", "create table t (id integer primary key)")[0] == 1
    assert run("explain", "none.qdb", "select 1")[0] == 1


def test_boxes_do_not_overlap() -> None:
    leaf = PlanStep("SCAN", "main.t" * 40, 5.0)
    join = PlanStep(
        "JOIN", "cross", 25.0, children=(leaf, PlanStep("FILTER", "x", 5.0, children=(leaf, leaf)))
    )
    layout = lay_out(PlanStep("SORT", "a", 25.0, children=(join, leaf)))
    boxes = list(layout.root.walk())
    assert len(boxes) == 7
    for number, one in enumerate(boxes):
        assert 0 <= one.left <= layout.width - BOX_WIDTH
        assert one.bottom <= layout.height
        for other in boxes[number + 1 :]:
            beside = one.left + BOX_WIDTH < other.left or other.left + BOX_WIDTH < one.left
            assert beside or one.bottom < other.top or other.bottom < one.top


def test_estimates_are_judged_by_the_run() -> None:
    assert is_misjudged(PlanStep("SCAN", "", 5.0, rows=1000, runs=1))
    assert not is_misjudged(PlanStep("SCAN", "", 100.0, rows=1000, runs=10))
    assert not is_misjudged(PlanStep("SCAN", "", 5.0))

"""What refers to a table, a view or a column, and by which way."""

# ruff: noqa: E501 - statements are quoted whole

import pytest

from quereus_store.schema.dependencies import column_dependents, relation_dependents, relations_read
from quereus_store.sql.parser import parse_statement
from tests.schema.support import catalog

MADE = catalog(
    "create table t (a integer, b integer, c integer, check (a > 0), d integer default (new.b));"
    "create table u (x integer references t(b), g integer generated always as ((select max(a) from t)) stored,"
    " constraint c check (exists (select 1 from v where a > 1)), y integer default ((select count(*) from t)));"
    "create index i on t (b) where c > 1;"
    "create view v as select a, c from t; create view w as select a from v; create view o as select 1 as a;"
    "create view listed (p, q, r, s) as select * from t;"
    "create table mv (n integer) maintained as select a as n from w;"
    "create assertion direct check ((select count(*) from t) < 9);"
    "create assertion far check (not exists (select 1 from w where a < 0));"
    "create assertion broken check (not exists (select 1 from listed where p < 0))"
)


def summary(dependents):
    return {
        (
            d.kind.value,
            d.owner.name,
            d.label,
            *(view.name for view in d.through),
            *(["!"] if d.breaks_view else []),
        )
        for d in dependents
    }


def test_what_refers_to_a_table():
    assert summary(relation_dependents(MADE, "main", "T")) == {
        ("assertion", "direct", "assertion 'direct'"),
        ("assertion", "far", "assertion 'far'", "w", "v"),
        ("assertion", "broken", "assertion 'broken'", "listed"),
        ("check", "u", "CHECK constraint 'c'", "v"),
        ("default", "u", "the DEFAULT of column 'y'"),
        ("generated", "u", "the GENERATED expression of column 'g'"),
        ("view", "v", "view 'v'"),
        ("view", "w", "view 'w'", "v"),
        ("view", "listed", "view 'listed'"),
        ("materialized view", "mv", "materialized view 'mv'", "w", "v"),
    }


def test_what_refers_to_a_view():
    assert summary(relation_dependents(MADE, "main", "w")) == {
        ("assertion", "far", "assertion 'far'"),
        ("materialized view", "mv", "materialized view 'mv'"),
    }
    assert relation_dependents(MADE, "main", "o") == []
    assert relation_dependents(MADE, "main", "nothing") == []


def of_column(name):
    return summary(column_dependents(MADE, MADE.table("main", "t"), name))


def test_what_refers_to_a_column():
    assert of_column("a") == {
        ("check", "t", "the CHECK constraint (a > 0)"),
        ("generated", "u", "the GENERATED expression of column 'g'"),
        ("check", "u", "CHECK constraint 'c'", "v"),
        ("assertion", "far", "assertion 'far'", "w", "v"),
        ("assertion", "broken", "assertion 'broken'", "listed", "!"),
        ("view", "v", "view 'v'"),
        ("view", "w", "view 'w'", "v"),
        ("materialized view", "mv", "materialized view 'mv'", "w", "v"),
    }
    broken = ("assertion", "broken", "assertion 'broken'", "listed", "!")
    assert of_column("b") == {
        ("default", "t", "the DEFAULT of column 'd'"),
        ("foreign key", "u", "_fk_u_x"),
        broken,
    }
    assert of_column("c") == {("index", "t", "i"), ("view", "v", "view 'v'"), broken}
    assert of_column("d") == {broken}, "its own DEFAULT goes with it"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select 1 from t, v as x", {("main", "t"), ("main", "v")}),
        ("with t as (select 1) select * from t", set()),
        (
            "select (select max(x) from temp.nothing) from u where exists (select 1 from w)",
            {("main", "u"), ("main", "w")},
        ),
    ],
)
def test_relations_that_a_body_reads(query, expected):
    assert relations_read(MADE, "main", parse_statement(query)) == expected

# ruff: noqa: E501 - statements stay whole
"""Whatever the text: a tree, or an error of ours that says where."""

from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.sql import iter_statements, nodes, parse_expression, parse_statement, render
from quereus_store.sql.keywords import ALL

PIECES = st.one_of(
    st.sampled_from(sorted(ALL)),
    st.sampled_from(
        [*"()[]{},.;=<>+-*/%|&~?:'\"`", "1", "0x1F", "1.5", "'x'", "x'00'", "a", "t.a", ":p", "--\n", "/*"]
    ),
)
SCRIPTS = st.lists(PIECES, max_size=25).map(" ".join)
TEMPLATES = [
    "select a, b from t join u using (c) where a in (1, 2) group by rollup (a) order by 1 limit 2",
    "insert into t (a) values (1) on conflict (a) do update set b = excluded.b returning *",
    "create table t (a integer primary key, b text default 'x' check (b > 1)) using m (k = 1) with tags (x = 1)",
    "declare schema main { table t { a integer } view v as select 1 seed t ((1)) }",
    "alter table t add constraint c foreign key (a) references p (b) on delete set null",
    "with recursive n (i) as (select 1 union all select i + 1 from n) select sum(i) over (w rows 1 preceding) from n",
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement with some words removed, repeated or replaced."""
    words = draw(st.sampled_from(TEMPLATES)).split(" ")
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words) - 1))
        words[place : place + 1] = draw(st.sampled_from([[], [words[place]] * 2, [draw(PIECES)]]))
        words = words or [""]
    return " ".join(words)


def error_of(parse: Callable[[], object]) -> Error | None:
    """The error that parsing raises, if it is one of ours."""
    try:
        parse()
    except Error as error:
        return error
    return None


def survives(text: str) -> None:
    found: list[nodes.Statement] = []
    for error in (
        error_of(lambda: found.extend(iter_statements(text))),
        error_of(lambda: parse_expression(text)),
    ):
        if error is not None:
            assert 1 <= error.line <= text.count("\n") + 1
            assert error.column >= 1
    for statement in found:
        assert text[statement.span.start : statement.span.end].strip()
        assert parse_statement(render(statement)) == statement


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SCRIPTS)
@example("")
@example("select ((((")
@example("/*/")
def test_any_words(text: str):
    survives(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(damaged())
def test_damaged_statements(text: str):
    survives(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=30))
def test_any_text(text: str):
    survives(text)

"""What cannot be materialized, and why (views-and-maintained-tables, section 5).

The gates come after the rows have been computed, so that a body whose present rows
already collide says so first.
"""

from __future__ import annotations

from collections.abc import Iterator

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.plan import nodes as plans
from quereus_store.plan.analysis import is_deterministic, is_deterministic_expression
from quereus_store.plan.text import expression_text
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.views.body import Body, hidden_scans, scans
from quereus_store.views.emptiness import reads_nothing
from quereus_store.views.graph import Member
from quereus_store.views.plans import Maintained


def check_gates(engine: Engine, catalog: Catalog, name: str, body: Body, *, nondeterministic: bool) -> None:
    """Raise UNSUPPORTED for a body that cannot be kept equal to its query.

    ``nondeterministic`` is the option that lets bodies read the clock and the like.
    """
    detail = next(_objections(engine, catalog, body, nondeterministic), None)
    if detail is not None:
        raise _refusal(name, detail)


def check_size(engine: Engine, member: Member, threshold: float) -> None:
    """Raise UNSUPPORTED where each change of a source would compute a large body anew.

    ``threshold`` is the option ``materialized_view_rebuild_row_threshold``; 0 turns the gate off.
    """
    if not threshold:
        return
    table, rows = max(
        ((source, engine.row_count(source)) for source in member.body.sources.values()),
        key=lambda pair: pair[1],
    )
    strategies = Maintained(engine, member)
    if rows > threshold and any(
        strategies.strategy(frozenset((key,))) is strategies.rebuild for key in member.body.sources
    ):
        raise _refusal(
            member.table.name,
            "its only sound maintenance strategy is a full body rebuild, but its largest source"
            f" '{table.qualified_name}' has ~{int(rows)} rows, over the"
            f" materialized_view_rebuild_row_threshold ({threshold:g}) — every write would re-scan it. Raise"
            " or disable the threshold (`pragma materialized_view_rebuild_row_threshold = 0`)",
        )


def _refusal(name: str, detail: str) -> Error:
    return sql_error(
        StatusCode.UNSUPPORTED,
        f"materialized view '{name}' cannot be materialized: {detail}. For this body, use a plain 'create"
        " view' (live re-evaluation) or 'create table ... as <body>' (a one-off snapshot)",
    )


def _objections(engine: Engine, catalog: Catalog, body: Body, nondeterministic: bool) -> Iterator[str]:
    every = [*scans(body.plan), *hidden_scans(body.plan)]
    if any(scan.committed for scan in every):
        yield "its body reads the committed state, which no change of the current transaction moves"
    if not is_deterministic(body.plan):
        yield from _non_deterministic(body, nondeterministic)
    if reads_nothing(engine, catalog, body):
        yield "its body reads no source table"
    if body.key is None:
        yield (
            "its body has no provable unique key — it is a bag (e.g. a key-dropping projection or a"
            " `union all` of overlapping inputs), so it must be a set"
        )


def _non_deterministic(body: Body, allowed: bool) -> Iterator[str]:
    rows = "source rows" if len(list(scans(body.plan))) > 1 else "source row"
    for node in plans.walk_plan(body.plan):
        wrong = [e for e in plans.expressions(node) if not is_deterministic_expression(e)]
        if isinstance(node, plans.Project) and wrong:
            text = expression_text(wrong[0])
            column = node.columns[node.expressions.index(wrong[0])].name
            named = f" column '{column}'" if rows == "source row" else ""
            yield (
                f"it projects a non-deterministic expression{named} ({text}); a row-time backing value must"
                f" be reproducible from the {rows}"
            )
        elif isinstance(node, plans.Aggregate) and wrong:
            verb = "groups by" if wrong[0] in node.keys else "aggregates"
            yield f"it {verb} a non-deterministic expression ({expression_text(wrong[0])})"
        elif isinstance(node, plans.TableFunctionScan) and not node.function.deterministic:
            yield (
                f"it fans out through a non-deterministic table-valued function '{node.function.name}' (a"
                " row-time fan-out must be reproducible from the base row)"
            )
        elif isinstance(node, plans.TableFunctionScan) and wrong:
            yield (
                f"it passes a non-deterministic argument ({expression_text(wrong[0])}) to the lateral"
                " table-valued function"
            )
        elif wrong and not allowed:
            yield (
                f"its body is non-deterministic ({expression_text(wrong[0])}); a materialized view body must"
                " be reproducible to stay equal to its plain view (set `pragma nondeterministic_schema` to"
                " override)"
            )


def duplicate_rows(table: TableSchema) -> Error:
    """The error for a materialized view whose rows collide when it is filled."""
    return sql_error(
        StatusCode.CONSTRAINT,
        f"materialized view '{table.qualified_name}' body produces duplicate rows, but a materialized view"
        " must be a set: its body needs a unique key. Project the source's primary-key column(s) so every"
        " row is unique; for a non-keyed result use a plain `create view` (live re-evaluation) or"
        " `create table ... as <body>` (a one-off snapshot).",
    )

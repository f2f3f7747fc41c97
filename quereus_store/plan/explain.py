"""A plan as text: one line an operator, children indented, what matters of each in words.

::

    SORT tons desc, nick
      PROJECT nick, tons
        HASH JOIN inner on ship = name
          SCAN main.crew as c
          SEEK main.ship by primary key (name = ?)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from quereus_store.modules.contract import AccessKind
from quereus_store.plan import nodes
from quereus_store.plan.estimates import Estimator
from quereus_store.plan.expressions import SortTerm, subplans
from quereus_store.plan.optimizer import OptimizerServices
from quereus_store.plan.text import conjunct_text, expression_text
from quereus_store.schema.objects import TableSchema


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One operator of a plan: how deep it stands, its kind, what it does, its estimated rows."""

    depth: int
    operator: str
    detail: str
    node: nodes.PlanNode
    rows: float

    @property
    def text(self) -> str:
        """The line without indentation."""
        return f"{self.operator} {self.detail}".rstrip()


def explain_plan(plan: nodes.PlanNode, services: OptimizerServices) -> Iterator[PlanLine]:
    """The operators of a plan, each before what is below it; subqueries stand below their users."""
    yield from _lines(plan, 0, Estimator(services))


def plan_lines(plan: nodes.PlanNode, services: OptimizerServices) -> list[str]:
    """The plan as indented text, one line per operator."""
    return ["  " * line.depth + line.text for line in explain_plan(plan, services)]


def _lines(plan: nodes.PlanNode, depth: int, estimates: Estimator) -> Iterator[PlanLine]:
    operator, describe = _OPERATORS[type(plan)]
    yield PlanLine(depth, operator, describe(plan), plan, estimates.rows(plan))
    for expression in nodes.expressions(plan):
        for inner in subplans(expression):
            yield PlanLine(depth + 1, "SUBQUERY", "", inner, estimates.rows(inner))
            yield from _lines(inner, depth + 2, estimates)
    for child in nodes.inputs(plan):
        yield from _lines(child, depth + 1, estimates)


def _table(table: TableSchema, alias: str | None) -> str:
    name = table.qualified_name
    return f"{name} as {alias}" if alias and alias != table.name else name


def _scan(plan: nodes.TableScan) -> str:
    return _table(plan.table, plan.alias)


def _access(plan: nodes.IndexAccess) -> str:
    path = plan.access.path
    way = "primary key" if path.index is None else f"index {path.index}"
    parts = [expression_text(condition) for condition in plan.conditions]
    if not parts and plan.prefix:
        parts = [f"= {expression_text(value)}" for value in plan.prefix]
    where = f" ({' and '.join(parts)})" if parts else ""
    backwards = " backwards" if path.reverse else ""
    verb = "in order of" if path.kind is AccessKind.SCAN or not (plan.prefix or parts) else "by"
    return f"{_table(plan.table, plan.alias)} {verb} {way}{where}{backwards}"


def _project(plan: nodes.Project) -> str:
    return ", ".join(expression_text(expression) for expression in plan.expressions)


def _terms(terms: tuple[SortTerm, ...]) -> str:
    parts = []
    for term in terms:
        text = expression_text(term.expression)
        text += f" collate {term.using.lower()}" if term.using != "BINARY" else ""
        text += " desc" if term.descending else ""
        parts.append(text + (" nulls last" if term.nulls_last else ""))
    return ", ".join(parts)


def _limit(plan: nodes.Limit | nodes.TopN) -> str:
    text = "" if plan.count is None else expression_text(plan.count)
    return text + ("" if plan.offset is None else f" offset {expression_text(plan.offset)}")


def _join(plan: nodes.Join) -> str:
    lateral = " lateral" if plan.lateral else ""
    condition = "" if plan.condition is None else f" on {expression_text(plan.condition)}"
    return f"{plan.kind.value}{lateral}{condition}"


def _hash_join(plan: nodes.HashJoin | nodes.MergeJoin) -> str:
    keys = " and ".join(
        f"{expression_text(left)} = {expression_text(right)}"
        for left, right in zip(plan.left_keys, plan.right_keys, strict=True)
    )
    rest = "" if plan.residual is None else f" and {conjunct_text(plan.residual)}"
    return f"{plan.kind.value} on {keys}{rest}"


def _index_join(plan: nodes.IndexJoin) -> str:
    rest = "" if plan.residual is None else f" and {conjunct_text(plan.residual)}"
    return f"{plan.kind.value}{rest}"


def _aggregate(plan: nodes.Aggregate) -> str:
    keys = ", ".join(expression_text(key) for key in plan.keys)
    calls = ", ".join(expression_text(call) for call in plan.aggregates)
    sets = "" if plan.sets is None else f" in {len(plan.sets)} grouping sets"
    streamed = " one after the other" if plan.streamed else ""
    return f"{calls} by {keys}{sets}{streamed}".strip() if keys else calls


def _window(plan: nodes.Window) -> str:
    calls = ", ".join(getattr(call.function, "name", str(call.function)) for call in plan.calls)
    partition = ", ".join(expression_text(expression) for expression in plan.partition)
    order = _terms(plan.order)
    return f"{calls} over (partition by {partition or 'nothing'}{' order by ' + order if order else ''})"


def _set_operation(plan: nodes.SetOperation) -> str:
    return f"{plan.kind.value}{' all' if plan.all else ''}"


_Description = tuple[str, Callable[[Any], str]]

_OPERATORS: Mapping[type[nodes.PlanNode], _Description] = MappingProxyType(
    {
        nodes.TableScan: ("SCAN", _scan),
        nodes.IndexAccess: ("SEEK", _access),
        nodes.Values: ("VALUES", lambda plan: f"{len(plan.rows)} row{'' if len(plan.rows) == 1 else 's'}"),
        nodes.ParameterRows: ("PARAMETERS", lambda plan: ""),
        nodes.GivenRows: ("CHANGES", lambda plan: ", ".join(column.name for column in plan.columns)),
        nodes.TableFunctionScan: ("FUNCTION", lambda plan: plan.function.name),
        nodes.Filter: ("FILTER", lambda plan: expression_text(plan.predicate)),
        nodes.Project: ("PROJECT", _project),
        nodes.Join: ("JOIN", _join),
        nodes.HashJoin: ("HASH JOIN", _hash_join),
        nodes.MergeJoin: ("MERGE JOIN", _hash_join),
        nodes.IndexJoin: ("INDEX JOIN", _index_join),
        nodes.Aggregate: ("AGGREGATE", _aggregate),
        nodes.Window: ("WINDOW", _window),
        nodes.Distinct: ("DISTINCT", lambda plan: ""),
        nodes.Sort: ("SORT", lambda plan: _terms(plan.terms)),
        nodes.Limit: ("LIMIT", _limit),
        nodes.SingleRow: ("SINGLE ROW", lambda plan: ""),
        nodes.TopN: ("TOP", lambda plan: f"{_limit(plan)} by {_terms(plan.terms)}"),
        nodes.SetOperation: ("SET", _set_operation),
        nodes.With: ("WITH", lambda plan: ", ".join(table.name for table in plan.tables)),
        nodes.CommonTableScan: ("COMMON TABLE", lambda plan: plan.name),
        nodes.Recursion: ("RECURSION", lambda plan: plan.name),
        nodes.MutationScan: ("MUTATION", lambda plan: ""),
    }
)

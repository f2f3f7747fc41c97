"""FROM, joins, grouping and window specifications (queries, sections 5, 6, 8 and 13)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quereus_store.sql.lexer import INTEGER, REAL, Token
from quereus_store.sql.nodes import (
    BoundKind,
    Cube,
    Expression,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    FunctionSource,
    GroupingElement,
    GroupingSet,
    GroupingSets,
    Join,
    JoinKind,
    MembershipFlag,
    OrderingTerm,
    Relation,
    Rollup,
    RowValue,
    Side,
    SubquerySource,
    TableReference,
    WindowFrame,
    WindowReference,
    WindowSpecification,
)
from quereus_store.sql.parser.expressions import BITS, ExpressionParser

_JOIN_KINDS: Mapping[str, JoinKind] = MappingProxyType({str(each): each for each in JoinKind})
_OUTER = frozenset({JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL})
_FRAME_UNITS: Mapping[str, FrameUnit] = MappingProxyType({str(each): each for each in FrameUnit})
_FRAME_STARTS = frozenset({"unbounded", "current", "between", INTEGER, REAL})
_EXCLUSIONS: Mapping[tuple[str, ...], FrameExclusion] = MappingProxyType(
    {
        ("no", "others"): FrameExclusion.NO_OTHERS,
        ("current", "row"): FrameExclusion.CURRENT_ROW,
        ("group",): FrameExclusion.GROUP,
        ("ties",): FrameExclusion.TIES,
    }
)
_LOCKS = frozenset({("no", "key"), ("key", "share")})
_ARTICLE: Mapping[JoinKind, str] = MappingProxyType({JoinKind.INNER: "an", JoinKind.CROSS: "a"})
_SIDE_OF_OUTER: Mapping[JoinKind, Side] = MappingProxyType(
    {JoinKind.LEFT: Side.RIGHT, JoinKind.RIGHT: Side.LEFT}
)


class SourceParser(ExpressionParser):
    """FROM clauses and what else belongs to a SELECT beside its expressions."""

    __slots__ = ()

    # Hooks

    def membership_flag(self) -> MembershipFlag:
        """``exists [left|right] as name``."""
        raise NotImplementedError

    # FROM

    def from_clause(self, word: str) -> Relation | None:
        """``[from source, …]``: a comma is a cross join."""
        if not self.accept(word):
            return None
        left = self.joined_source()
        while self.accept(","):
            right = self.joined_source()
            left = Join(JoinKind.CROSS, left, right, position=left.position)
        return left

    def joined_source(self) -> Relation:
        """A source with the joins that follow it."""
        left = self.source()
        while True:
            key = self.token.key
            if key != "natural" and key != "join" and key not in _JOIN_KINDS:
                return left
            left = self.join(left)

    def join(self, left: Relation) -> Relation:
        """``[natural] [kind] join source [on …|using …] [exists …]``."""
        position = self.token.position
        natural = self.accept("natural")
        kind = JoinKind.INNER
        if self.token.key in _JOIN_KINDS:
            kind = _JOIN_KINDS[self.advance().key]
            if kind in _OUTER:
                self.accept("outer")
        self.expect("join", "Expected 'JOIN'.")
        right = self.source()
        condition: Expression | None = None
        using: tuple[str, ...] = ()
        if natural:
            pass
        elif self.token.key == "on" and self.peek_key() != "conflict":
            self.advance()
            condition = self.expression()
        elif self.accept("using"):
            using = self.parenthesised_list(
                lambda: self.expect_name("Expected column name."),
                "Expected '(' after 'USING'.",
                "Expected ')' after USING columns.",
            )
        elif kind is not JoinKind.CROSS:
            raise self.failure("Expected 'ON' or 'USING' after JOIN.")
        return Join(
            kind, left, right, condition, using, natural, self.existence_flags(kind), position=position
        )

    def existence_flags(self, kind: JoinKind) -> tuple[MembershipFlag, ...]:
        """``[exists [left|right] as name, exists …]`` after a join."""
        flags: list[MembershipFlag] = []
        while self.token.key == "exists":
            start = self.token
            flag = self.membership_flag()
            self.check_flag(kind, flag, start)
            flags.append(flag)
            if not (self.token.key == "," and self.peek_key() == "exists" and self.peek_key(2) != "("):
                break
            self.advance()
        return tuple(flags)

    def check_flag(self, kind: JoinKind, flag: MembershipFlag, start: Token) -> None:
        """Refuse flags that say nothing or are ambiguous."""
        if kind not in _OUTER:
            join = f"{_ARTICLE[kind]} {kind.upper()} join"
            raise self.error(
                f"'exists ... as' is not valid on {join} (no side is null-extended, so the flag would be a "
                "constant true)",
                start.position,
            )
        if kind is JoinKind.FULL:
            if flag.side is None:
                raise self.error(
                    "'exists as' is ambiguous on a FULL join — specify 'exists left as' or 'exists right as'",
                    start.position,
                )
        elif flag.side not in (None, _SIDE_OF_OUTER[kind]):
            raise self.error(
                f"'exists {flag.side} as' references the preserved side of a {kind.upper()} join; only the "
                f"non-preserved side ({_SIDE_OF_OUTER[kind]}) has a meaningful match flag",
                start.position,
            )

    def source(self) -> Relation:
        """A table, function, subquery or parenthesised join, with its alias."""
        position = self.token.position
        lateral = self.accept("lateral")
        if self.token.key == "(":
            if self.is_query_at(self.index + 1):
                opening = self.open_parenthesis("Expected '('.")
                query = self.relation_query()
                self.close_parenthesis(opening, "Expected ')' after subquery.")
                alias, columns = self.source_alias()
                if alias is None and self.token.key == "(" and not self.is_query_at(self.index + 1):
                    columns = self.column_names()
                return SubquerySource(query, alias, columns, lateral, position=position)
            opening = self.open_parenthesis("Expected '('.")
            inner = self.joined_source()
            while self.accept(","):
                inner = Join(JoinKind.CROSS, inner, self.joined_source(), position=inner.position)
            self.close_parenthesis(opening, "Expected ')' after joined sources.")
            return inner
        if self.peek_key() == "(" and self.is_name(self.token):
            name = self.take_name()
            call = self.call(name, position)
            alias, columns = self.source_alias()
            return FunctionSource(call, alias, columns, lateral, position=position)
        table = self.object_name()
        alias, columns = self.source_alias()
        return TableReference(table.name, table.schema, alias, columns, position=position)

    def source_alias(self) -> tuple[str | None, tuple[str, ...]]:
        """``[[as] alias] [(columns)]``."""
        alias: str | None = None
        if self.accept("as"):
            alias = self.expect_name("Expected alias after 'AS'.")
        elif self.is_bare_alias(self.token) and not self.at_clause():
            alias = self.take_name()
        columns: tuple[str, ...] = ()
        if self.token.key == "(" and alias is not None:
            columns = self.column_names()
        return alias, columns

    def column_names(self) -> tuple[str, ...]:
        """``(name, …)`` after a source."""
        return self.name_list("Expected column name.", "Expected ')' after column list.")

    def at_clause(self) -> bool:
        """Whether a soft word opens WINDOW, QUALIFY, FETCH or FOR UPDATE here rather than being an alias."""
        key = self.token.key
        if key == "qualify":
            return self.starts_operand(1)
        if key == "for":
            return self.at_locking_clause()
        return self.at_window_clause() or self.at_fetch()

    def at_fetch(self) -> bool:
        """Whether ``fetch first 3 rows`` stands here."""
        return (
            self.token.key == "fetch"
            and self.peek_key() in ("first", "next")
            and (self.peek_key(2) in ("row", "rows") or self.starts_operand(2))
        )

    def at_locking_clause(self) -> bool:
        """Whether ``for update`` or one of its like, which there are not, stands here.

        ``select … from t for update u set …`` is a table called ``for``, and a second statement.
        """
        if self.peek_key() == "update":
            after = self.peek(2)
            return not self.is_schema_or_table_name(after) or after.key in ("of", "nowait", "skip")
        return self.peek_key() == "share" or (self.peek_key(), self.peek_key(2)) in _LOCKS

    def at_window_clause(self) -> bool:
        """Whether ``window name as (`` stands here."""
        return (
            self.token.key == "window"
            and self.is_name(self.peek())
            and self.peek_key(2) == "as"
            and self.peek_key(3) == "("
        )

    # GROUP BY

    def grouping_element(self) -> GroupingElement:
        """One element of GROUP BY."""
        key = self.token.key
        if self.peek_key() == "(" and key in ("rollup", "cube"):
            position = self.advance().position
            elements = self.parenthesised_list(
                self.grouping_set, "Expected '('.", f"Expected ')' after {key.upper()}."
            )
            return (Rollup if key == "rollup" else Cube)(elements, position=position)
        if self.at_words("grouping", "sets", "("):
            position = self.advance().position
            self.advance()
            sets = self.parenthesised_list(
                self.grouping_sets_element, "Expected '('.", "Expected ')' after GROUPING SETS."
            )
            return GroupingSets(sets, position=position)
        if key == "(" and self.peek_key() == ")":
            return self.grouping_set()
        found = self.expression()
        if isinstance(found, RowValue):
            return GroupingSet(found.items, position=found.position)
        return found

    def grouping_set(self) -> GroupingSet:
        """``e``, ``(e, …)`` or ``()`` as an element of a grouping construct."""
        position = self.token.position
        if self.token.key == "(" and self.peek_key() == ")":
            self.advance()
            self.advance()
            return GroupingSet((), position=position)
        found = self.expression()
        items = found.items if isinstance(found, RowValue) else (found,)
        return GroupingSet(items, position=position)

    def grouping_sets_element(self) -> GroupingSet | Rollup | Cube | GroupingSets:
        """One element of GROUPING SETS."""
        found = self.grouping_element()
        if isinstance(found, Expression):
            return GroupingSet((found,), position=found.position)
        return found

    # Windows

    def window(self) -> WindowSpecification | WindowReference:
        """What follows OVER."""
        if self.is_name(self.token):
            position = self.token.position
            return WindowReference(self.take_name(), position=position)
        return self.window_specification()

    def window_specification(self) -> WindowSpecification:
        """``([base] [partition by …] [order by …] [frame])``."""
        opening = self.open_parenthesis("Expected '(' after OVER.")
        base: str | None = None
        if self.is_name(self.token) and not self.at_frame():
            base = self.take_name()
        partition_by: tuple[Expression, ...] = ()
        if self.accept("partition"):
            self.expect("by", "Expected 'BY' after 'PARTITION'.", got=False)
            partition_by = self.comma_list(self.expression)
        order_by: tuple[OrderingTerm, ...] = ()
        if self.accept("order"):
            self.expect("by", "Expected 'BY' after 'ORDER'.")
            order_by = self.ordering_terms()
        frame = self.window_frame() if self.at_frame() else None
        self.close_parenthesis(opening, "Expected ')' after window specification.")
        return WindowSpecification(partition_by, order_by, frame, base, position=opening.position)

    def at_frame(self) -> bool:
        """Whether a frame clause starts here; GROUPS is also a plain name."""
        key = self.token.key
        return key in ("rows", "range") or (key == "groups" and self.peek_key() in _FRAME_STARTS)

    def window_frame(self) -> WindowFrame:
        """``unit bound | unit between bound and bound [exclude …]``."""
        token = self.advance()
        if self.accept("between"):
            start = self.frame_bound()
            self.expect("and", "Expected 'AND' after frame start bound.", got=False)
            end = self.frame_bound()
        else:
            start = self.frame_bound()
            end = FrameBound(BoundKind.CURRENT_ROW)
        return WindowFrame(
            _FRAME_UNITS[token.key], start, end, self.frame_exclusion(), position=token.position
        )

    def frame_bound(self) -> FrameBound:
        """``unbounded …``, ``current row`` or ``n preceding|following``."""
        position = self.token.position
        if self.accept("unbounded"):
            if self.accept("preceding"):
                return FrameBound(BoundKind.UNBOUNDED_PRECEDING, position=position)
            self.expect("following", "Expected PRECEDING or FOLLOWING after UNBOUNDED.", got=False)
            return FrameBound(BoundKind.UNBOUNDED_FOLLOWING, position=position)
        if self.accept("current"):
            self.expect("row", "Expected 'ROW' after 'CURRENT'.", got=False)
            return FrameBound(BoundKind.CURRENT_ROW, position=position)
        offset = self.expression(BITS)
        if self.accept("preceding"):
            return FrameBound(BoundKind.PRECEDING, offset, position=position)
        self.expect("following", "Expected PRECEDING or FOLLOWING after frame value.", got=False)
        return FrameBound(BoundKind.FOLLOWING, offset, position=position)

    def frame_exclusion(self) -> FrameExclusion | None:
        """``[exclude no others|current row|group|ties]``."""
        if not self.accept("exclude"):
            return None
        for words, exclusion in _EXCLUSIONS.items():
            if self.accept_words(*words):
                return exclusion
        raise self.failure("Expected NO OTHERS, CURRENT ROW, GROUP or TIES after EXCLUDE.", got=True)

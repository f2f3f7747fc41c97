"""Objects of a catalog are shared by all threads, so what they find out late they must show as a whole."""

from __future__ import annotations

from dataclasses import replace

from tests.schema.support import table


class ReadMeanwhile(tuple):  # type: ignore[type-arg]
    """Columns during whose first walk somebody else looks a column up."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        if not hasattr(self, "found"):
            self.found = None
            for position, column in enumerate(super().__iter__()):
                if position == 2:
                    self.found = self.owner.column_index("c")
                yield column
        else:
            yield from super().__iter__()


def test_a_column_is_found_while_another_thread_looks_one_up():
    made = table("create table t (a integer primary key, b integer, c integer)")
    columns = ReadMeanwhile(made.columns)
    columns.owner = replace(made, columns=columns)  # type: ignore[attr-defined]
    assert columns.owner.column_index("a") == 0  # type: ignore[attr-defined]
    assert columns.found == 2

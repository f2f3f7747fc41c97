"""The window of a merge join, against joining all with all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.execute.codegen import merging
from quereus_store.execute.codegen.merging import MergeWindow, rows_by_key


def batches(keys: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 60), max_size=60),
    st.lists(st.integers(0, 60), max_size=60),
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from([0, 4, 1000]),
)
def test_window_finds_all_rows(
    left: list[int], right: list[int], left_size: int, right_size: int, large: int
) -> None:
    """Whatever the batches are, and however often the window shrinks."""
    left, right = sorted(left), sorted(right)
    pieces = (
        ([batch[0], batch[-1]], rows_by_key([(key, (key, number)) for number, key in enumerate(batch)]))
        for batch in batches(right, right_size)
    )
    before = merging._LARGE
    merging._LARGE = large
    try:
        window = MergeWindow(pieces, None, True)
        found: list[Any] = []
        for batch in batches(left, left_size):
            lookup = window.upto([batch[0], batch[-1]])
            found += [(key, row[0]) for key in batch for row in lookup(key, ())]
    finally:
        merging._LARGE = before
    assert found == [(key, other) for key in left for other in right if key == other]


def test_window_reads_no_further_than_the_left() -> None:
    read: list[int] = []

    def pieces() -> Iterator[tuple[list[int], dict[int, Any]]]:
        for start in range(0, 1000, 10):
            read.append(start)
            yield [start, start + 9], {key: (key,) for key in range(start, start + 10)}

    window = MergeWindow(pieces(), None, False)
    assert window.upto([3, 15])(12) == (12,)
    assert read == [0, 10]
    assert window.upto([])(12) == (12,)
    assert window.upto([19, 19])(19) == (19,)
    assert read == [0, 10, 20]

"""Sorted rows in chunks: sharing, splitting, joining."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import InternalError
from quereus_store.modules.memory import chunks, sorted_rows
from quereus_store.modules.memory.chunks import DuplicateKey
from quereus_store.modules.memory.sorted_rows import SortedRows


def filled(keys):
    rows = SortedRows()
    rows.merge(list(keys), [(key,) for key in keys])
    return rows


def keys_of(rows):
    return [key for batch in rows.all_rows() for (key,) in batch]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    for name, size in {"FULL": 8, "LARGEST": 12, "SMALLEST": 3}.items():
        monkeypatch.setattr(chunks, name, size)
        monkeypatch.setattr(sorted_rows, name, size)


def test_in_order_appends_fill_their_chunks():
    rows = SortedRows()
    for key in range(20):
        rows.insert(key, (key,))
    assert [len(chunk.keys) for chunk in rows.chunks] == [8, 8, 4]
    assert rows.lasts == [7, 15, 19]


def test_a_chunk_that_grows_too_large_is_cut_in_two():
    rows = filled(range(0, 16, 2))
    for key in range(1, 10, 2):
        rows.insert(key, (key,))
    assert [len(chunk.keys) for chunk in rows.chunks] == [6, 7]
    assert keys_of(rows) == sorted([*range(0, 16, 2), *range(1, 10, 2)])


def test_a_chunk_that_shrinks_joins_its_neighbour():
    rows = filled(range(16))
    for key in (0, 1, 2, 3, 8, 9, 10, 11, 12, 13):
        rows.delete(key)
    assert [len(chunk.keys) for chunk in rows.chunks] == [6]
    assert keys_of(rows) == [4, 5, 6, 7, 14, 15]


def test_a_scan_hands_out_the_very_lists():
    rows = filled(range(20))
    assert all(batch is chunk.rows for batch, chunk in zip(rows.all_rows(), rows.chunks, strict=True))


def test_a_taken_key_tells_who_has_it_and_leaves_everything():
    rows = filled(range(0, 40, 2))
    assert rows.insert(4, ("new",)) == (4,)
    with pytest.raises(DuplicateKey) as caught:
        rows.merge([1, 3, 8, 41], [("a",), ("b",), ("c",), ("d",)])
    assert (caught.value.row, caught.value.existing) == (("c",), (8,))
    assert keys_of(rows) == list(range(0, 40, 2))


def test_changing_what_is_not_there_is_a_defect():
    rows = filled([1, 2])
    for change in (lambda: rows.delete(3), lambda: rows.replace(0, ()), lambda: rows.remove([1, 5])):
        with pytest.raises(InternalError):
            change()


BATCHES = st.lists(st.lists(st.integers(0, 200), unique=True, max_size=60), max_size=8)


@settings(max_examples=60, deadline=None)
@given(BATCHES, BATCHES, st.integers(0, 30))
def test_batches_agree_with_a_dictionary(inserted, removed, sparse):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_rows, "SPARSE", sparse)
        rows, model, undo, states = SortedRows(), {}, [], []
        for number, (some, others) in enumerate(zip(inserted, removed, strict=False)):
            new = sorted(set(some) - set(model))
            gone = sorted(set(others) & (set(model) | set(new)))
            kept = sorted((set(model) | set(new)) - set(gone))[::2]
            states.append((dict(model), rows.fork(), rows.freeze()))
            undo.append(rows.merge(new, [(key, number) for key in new]))
            undo.append(rows.remove(gone))
            undo.append(rows.replace_many(kept, [(key, -number) for key in kept]))
            model.update({key: (key, number) for key in new})
            model = {key: row for key, row in model.items() if key not in gone}
            model.update({key: (key, -number) for key in kept})
            check(rows, model)
        for before, fork, _ in reversed(states):
            check(fork, before)
            for _ in range(3):
                function, *arguments = undo.pop()
                function(*arguments)
            check(rows, before)


PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 30))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["insert", "delete", "replace", "merge", "fork", "look"]), PAIRS)))
def test_an_index_finds_all_rows_with_equal_own_halves(actions):
    rows, model, states = SortedRows(nested=True), {}, []
    for number, (action, key) in enumerate(actions):
        row = (*key, number)
        if action == "insert":
            assert rows.insert(key, row) == model.get(key)
            model.setdefault(key, row)
        elif action == "merge":
            new = [pair for own in range(key[0], 7, 2) if (pair := (own, key[1])) not in model]
            rows.merge(new, [(*pair, number) for pair in new], distinct=True)
            model.update((pair, (*pair, number)) for pair in new)
        elif action == "fork":
            states.append((rows, dict(model)))
            rows = rows.fork()
        elif action == "look":
            rows.equal(key[0])
        elif key in model:
            if action == "delete":
                rows.delete(key)
                del model[key]
            else:
                rows.replace(key, row)
                model[key] = row
    for tree, expected in [*states, (rows, model)]:
        for own in range(8):
            same = [expected[key] for key in sorted(expected) if key[0] == own]
            assert tree.equal(own) == same
            assert tree.first_equal(own) == (same[0] if same else None)


@settings(max_examples=80, deadline=None)
@given(
    st.sets(PAIRS, min_size=1, max_size=60),
    st.lists(
        st.tuples(st.sampled_from(["insert", "delete", "replace", "read", "follow", "undo", "fork"]), PAIRS)
    ),
)
def test_an_index_whose_keys_stay_looks_the_rows_up_later(pairs, actions):
    # Of the pair (own half, key) the key is unique, as in a table.
    model = {key: (own, key, 0) for own, key in pairs}
    table, index = SortedRows(), SortedRows(nested=True)
    table.merge(sorted(model), [model[key] for key in sorted(model)])
    entries = sorted((own, key) for own, key, _ in model.values())
    index.merge(entries, [model[key] for _, key in entries], distinct=True)
    states = []
    for number, (action, (own, key)) in enumerate([("follow", (0, 0)), *actions], 1):
        row = (model[key][0] if key in model else own, key, number)
        if action in ("follow", "undo"):
            changed = {key: (own, key, number) for own, key, _ in list(model.values())[::2]}
            undo_table = table.replace_many(sorted(changed), [changed[key] for key in sorted(changed)])
            undo_index = index.take_rows_of(table)
            if action == "follow":
                model.update(changed)
            else:
                for function, *arguments in (undo_index, undo_table):
                    function(*arguments)
        elif action == "fork":
            states.append((index, sorted(model.values(), key=lambda row: row[:2])))
            table, index = table.fork(), index.fork()
        elif action == "read":
            index.equal(own)
        elif action == "insert" and key not in model:
            table.insert(key, row)
            index.insert(row[:2], row)
            model[key] = row
        elif key in model and action == "delete":
            table.delete(key)
            index.delete(model.pop(key)[:2])
        elif key in model:
            table.replace(key, row)
            index.replace(row[:2], row)
            model[key] = row
    assert [row for batch in index.all_rows() for row in batch] == sorted(
        model.values(), key=lambda row: row[:2]
    )
    for seen, expected in states:
        assert [row for batch in seen.all_rows() for row in batch] == expected


def test_an_index_that_was_read_lets_the_rows_of_old_go():
    table, index = filled(range(20)), SortedRows(nested=True)
    index.merge([(-key, key) for key in range(19, -1, -1)], [(key,) for key in range(19, -1, -1)])
    table.replace_many(list(range(20)), [(key, "new") for key in range(20)])
    index.take_rows_of(table)
    late = index.chunks[0]
    assert late._source is not None
    assert index.equal(-19) == [(19, "new")]
    assert late._source is None


def check(rows, model):
    expected = [model[key] for key in sorted(model)]
    assert [row for batch in rows.all_rows() for row in batch] == expected
    assert [row for batch in rows.all_rows(reverse=True) for row in batch] == expected[::-1]
    assert rows.count == len(expected)
    assert rows.lasts == [chunk.keys[-1] for chunk in rows.chunks]
    assert all(rows.get(key) == model.get(key) for key in range(0, 200, 7))
    found = [
        row for batch in rows.between(rows.position(20, False), rows.position(90, True)) for row in batch
    ]
    assert found == [model[key] for key in sorted(model) if 20 <= key <= 90]


@pytest.mark.parametrize("many", [1, 1000])
@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 80)), st.lists(st.integers(-3, 83), max_size=120))
def test_many_keys_are_looked_up_at_once(many, present, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_rows, "MANY", many)
        rows = filled(sorted(present))
        assert rows.get_many(wanted) == [(key,) if key in present else None for key in wanted]

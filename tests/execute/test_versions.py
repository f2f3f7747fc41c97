"""What is kept for the last versions of a catalog."""

from quereus_store.execute.versions import KEPT, with_version


def test_the_newest_versions_are_kept():
    known: dict[int, str] = {}
    for version in range(1, KEPT + 4):
        known = with_version(known, version, f"catalog {version}")
    assert sorted(known) == list(range(4, KEPT + 4))


def test_what_was_just_found_is_kept_although_it_is_old():
    newer = dict.fromkeys(range(10, 10 + KEPT), "newer")
    known = with_version(newer, 3, "of an old snapshot")
    assert known[3] == "of an old snapshot"
    assert sorted(known) == [3, *range(11, 10 + KEPT)]


def test_a_reader_never_meets_a_mapping_that_changes():
    known = {1: "first"}
    assert with_version(known, 1, "again") == {1: "again"}
    assert known == {1: "first"}

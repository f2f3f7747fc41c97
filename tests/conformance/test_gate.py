"""The gate over the conformance vectors: what counts as listed, as a regression, as stale."""

from pathlib import Path

import pytest

from tools.check_vectors import Difference, judge, read_differences, tell

REPORT: dict[str, dict[str, object]] = {
    "a": {"ok": 3, "of": 5, "bad": [[2, "got 1", "select 1"], [4, "no error", "select 2"]]},
    "b": {"ok": 2, "of": 2, "bad": []},
}


def test_failures_are_listed_or_not() -> None:
    verdict = judge("memory", REPORT, [Difference("a", 2, "better", ("memory",))])
    assert (verdict.holds, verdict.total) == (5, 7)
    assert [(f.file, f.line) for f in verdict.listed] == [("a", 2)]
    assert [(f.file, f.line) for f in verdict.unlisted] == [("a", 4)]
    assert verdict.stale == ()


def test_a_difference_that_holds_is_stale() -> None:
    difference = Difference("b", 1, "better", ("memory",))
    verdict = judge("memory", REPORT, [difference])
    assert verdict.stale == (difference,)
    assert not tell(verdict, floor=5, show=0)


def test_a_difference_counts_for_its_backends_only() -> None:
    verdict = judge("lmdb", REPORT, [Difference("b", 1, "better", ("memory",))])
    assert verdict.stale == ()


def test_fewer_checks_than_the_floor_fail(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = judge("memory", REPORT, [])
    assert tell(verdict, floor=5, show=0)
    assert not tell(verdict, floor=6, show=0)
    assert "1 checks fewer than before" in capsys.readouterr().out


def test_every_difference_names_lines_and_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "differences.toml"
    path.write_text('[[difference]]\nfile = "a"\nlines = [1, 2]\nreason = "better"\n')
    assert [(d.file, d.line, d.reason) for d in read_differences(path)] == [
        ("a", 1, "better"),
        ("a", 2, "better"),
    ]
    path.write_text('[[difference]]\nfile = "a"\nlines = [1]\nreason = " "\n')
    with pytest.raises(SystemExit, match="lacks lines or a reason"):
        read_differences(path)


def test_the_project_s_own_list_can_be_read() -> None:
    read_differences(Path(__file__).parent / "differences.toml")

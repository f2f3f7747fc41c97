"""The examples of a page run one after the other and print what their comments say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def promised_by(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a page's examples in a folder; the lines that they promise to print."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    return re.findall(r"print\(.*\)  # (.*)", "".join(blocks))


def test_the_page_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    promised = promised_by(DOCS / "python.md", tmp_path, monkeypatch)
    assert len(promised) >= 6
    assert capsys.readouterr().out.splitlines() == promised


def test_the_page_on_other_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    promised = promised_by(DOCS / "attach.md", tmp_path, monkeypatch)
    assert len(promised) == 2
    assert capsys.readouterr().out.splitlines() == promised


def test_the_page_on_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    promised = promised_by(DOCS / "modules.md", tmp_path, monkeypatch)
    assert len(promised) == 1
    assert capsys.readouterr().out.splitlines() == promised

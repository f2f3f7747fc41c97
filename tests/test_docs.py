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


def test_the_page_on_the_architecture_names_what_there_is() -> None:
    """Every file and folder that it names exists; every module is named, or the folder that it stands in."""
    package = Path(__file__).parent.parent / "quereus_store"
    modules = {f"/{path.relative_to(package)}" for path in package.rglob("*.py") if "__" not in path.name}
    folders = {f"/{path.relative_to(package)}/" for path in package.rglob("*") if path.is_dir()}
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = {f"/{name}" for name in re.findall(r"`([\w/]+(?:\.py|/))`", text)}
    there = modules | folders
    assert sorted(name for name in named if not any(path.endswith(name) for path in there)) == []
    covering = {folder for folder in folders if any(folder.endswith(name) for name in named)}
    assert [
        module
        for module in sorted(modules)
        if not module.endswith(tuple(named)) and not module.startswith(tuple(covering))
    ] == []

"""The examples of docs/python.md run one after the other and print what their comments say."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "python.md"


def test_the_page_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    promised = re.findall(r"print\(.*\)  # (.*)", "".join(blocks))
    assert len(promised) >= 6
    assert capsys.readouterr().out.splitlines() == promised

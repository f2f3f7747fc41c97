"""The README's example runs as it stands and prints what one expects."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_first_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("make demo") < text.index("make test") < text.index("```python")
    (first, *_others) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(first.strip().splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    code = compile(first, str(README), "exec")
    exec(code, {})
    exec(code, {})  # again, on the file that is there now
    assert capsys.readouterr().out.splitlines() == ["Ann 3", "Bo None", "(2, 3)"] * 2

"""Files that are not as they should be: what fits is loaded, what does not is kept and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

import quereus_store
from quereus_store.cli.main import main


@pytest.fixture
def folder(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a database ``db`` that has a table ``crew``."""
    monkeypatch.chdir(tmp_path)
    with quereus_store.connect("db", backend=backend) as connection:
        connection.execute("create table crew (id integer primary key, nick text null)")
        connection.execute("insert into crew values (1, 'Ann')")
    return tmp_path


def crew(backend: str) -> list[tuple[object, ...]]:
    with quereus_store.connect("db", backend=backend) as connection:
        assert connection.database.check() == []
        return connection.execute("select * from crew order by id").fetchall()


def test_ragged_lines(folder: Path, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "crew.csv").write_text('id,nick\n2,Bo\n3\n4,Di,more\n5,"Ed"x\n6,Flo\n')
    assert main(["import", "db", "crew", "crew.csv"]) == 0
    said = capsys.readouterr().out
    assert "2 rows into crew" in said
    assert "3 rows rejected, see crew.rejected.csv" in said
    assert "line 3: 1 fields, the header has 2" in said
    assert "line 4: 3 fields, the header has 2" in said
    assert "line 5: not valid CSV" in said
    assert crew(backend) == [(1, "Ann"), (2, "Bo"), (6, "Flo")]
    rejected = (folder / "crew.rejected.csv").read_text()
    assert all(text in rejected for text in ("3\n", "4,Di,more\n", '5,""Ed""x'))


def test_wrong_encoding(folder: Path, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "crew.csv").write_bytes("id,nick\n2,Bo\n3,René\n".encode("latin-1"))
    assert main(["import", "db", "crew", "crew.csv"]) == 0
    said = capsys.readouterr().out
    assert "line 3: column 'nick': byte 0xe9 at character 4 is not valid utf-8" in said
    assert crew(backend) == [(1, "Ann"), (2, "Bo")]
    assert b"Ren\xe9" in (folder / "crew.rejected.csv").read_bytes()
    # With the right one the refused row goes in.
    (folder / "rest.csv").write_bytes("id,nick\n3,René\n".encode("latin-1"))
    assert main(["import", "db", "crew", "rest.csv", "--encoding", "latin-1"]) == 0
    assert crew(backend)[-1] == (3, "René")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("crew.csv", b"", "no header line"),
        ("crew.csv", b"id,id\n2,3\n", "column 'id' stands twice in the header"),
        ("crew.csv", b"id,n\xe4me\n2,x\n", "line 1: byte 0xe4 at character 5 is not valid utf-8"),
        ("crew.csv", b"id,rank\n2,x\n", "table crew has no column 'rank'; it has id, nick"),
        ("crew.xls", b"id,nick\n2,x\n", "unknown kind of file"),
        ("crew.csv", None, "crew.csv"),
    ],
)
def test_files_that_cannot_be_used_at_all(
    folder: Path,
    backend: str,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: bytes | None,
    message: str,
) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    assert main(["import", "db", "crew", name]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert message in said.err
    assert crew(backend) == [(1, "Ann")]
    assert not (folder / "crew.rejected.csv").exists()


def test_an_encoding_that_does_not_exist(
    folder: Path, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "crew.csv").write_text("id,nick\n2,Bo\n")
    assert main(["import", "db", "crew", "crew.csv", "--encoding", "klingon"]) == 1
    assert "klingon" in capsys.readouterr().err
    assert crew(backend) == [(1, "Ann")]

from pathlib import Path

import pytest
import typer

from worker.cli.truth_file import read_truth_file


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_edges_are_read_from_two_columns_below_a_header(tmp_path: Path) -> None:
    path = written(tmp_path, "truth.csv", 'source,target\n"a,1",b\n\nb, c\n')
    assert read_truth_file(path) == {
        "kind": "edges",
        "edges": [{"source": "a,1", "target": "b"}, {"source": "b", "target": "c"}],
    }


def test_json_is_passed_on_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, "truth.json", '{"kind": "adjacency", "matrix": [[0, 1], [1, 0]]}')
    assert read_truth_file(path) == {"kind": "adjacency", "matrix": [[0, 1], [1, 0]]}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("truth.csv", "source,target\na,b\na,b,c\n", "line 3"),
        ("truth.csv", "source,target\nonly\n", "line 2"),
        ("truth.json", '{"edges": ', "no JSON"),
        ("truth.json", "[1, 2]", "must hold an object"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    with pytest.raises(typer.BadParameter, match=place):
        read_truth_file(written(tmp_path, name, text))


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_bytes("source,target\nä,b\n".encode("latin-1"))
    with pytest.raises(typer.BadParameter, match="UTF-8"):
        read_truth_file(path)

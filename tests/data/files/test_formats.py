"""The registry of file formats: how files are recognised, and what a new format takes."""

import pytest

import deciban as db
from deciban.data.files import formats
from deciban.data.files.delimited import Delimited
from deciban.data.files.fragment import FileFormat


def test_no_suffix_has_two_formats():
    suffixes = [suffix for file_format in formats.FORMATS.values() for suffix in file_format.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.csv", "csv"),
        ("a.TSV.GZ", "csv"),
        ("s3://b/a.ndjson.zst", "jsonl"),
        ("a.parquet/", "parquet"),
        ("a.xyz", None),
    ],
)
def test_a_suffix_names_the_format(path, name):
    file_format = formats.format_by_suffix(path)
    assert name == (None if file_format is None else file_format.name)


def test_a_format_is_one_entry_of_the_registry(tmp_path, monkeypatch):
    """Its suffix, its signature and its name in `scan` lead to it."""
    bars = FileFormat(
        "bars",
        lambda file, options: Delimited(file, options.csv, options.trim),
        (".bars",),
        lambda start: start.startswith(b"#bars"),
    )
    monkeypatch.setitem(formats.FORMATS, "bars", bars)
    for name, text, options in (
        ("t.bars", "x|y\n1|a\n2|b\n", {}),
        ("t.parquet", "#bars|y\n1|a\n2|b\n", {}),
        ("t", "x|y\n1|a\n2|b\n", {"format": "bars"}),
    ):
        (tmp_path / name).write_text(text)
        assert list(db.scan(tmp_path / name, **options).columns.values()) == ["integer", "text"]
    with pytest.raises(db.DecibanError, match=r"format must be one of csv, .*bars, not 'foos'"):
        db.scan(tmp_path / "t", format="foos")

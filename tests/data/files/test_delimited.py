"""Separated values: what is read is what Python's csv module reads, in any dialect and in blocks of any size."""

import csv
import io

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import deciban as db
from deciban.data.files.dialect import NA_VALUES, CsvOptions, Dialect, sniff
from tests.data.files.written import at, csv_text


def read(path, **options):
    return db.scan(path, **options).read().to_pydict()


@pytest.fixture
def written(tmp_path):
    """Writes bytes to a file and reads them with blocks of several sizes, which must not matter."""

    def reading(data, name="t.csv", **options):
        path = at(tmp_path, name, data)
        table = read(path, **options)
        for size in (1, 20):
            assert read(path, block_size=size, **options) == table
        return table

    return reading


# Dialects ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [True, False])
def test_delimiter_and_header_are_inferred(written, header):
    rows = [["1", "a", "2.5"], ["2", "b", ""], ["3", "a", "-1"]]
    names = ["n", "t", "f"] if header else ["c1", "c2", "c3"]
    expected = dict(zip(names, ([1, 2, 3], ["a", "b", "a"], [2.5, None, -1.0]), strict=True))
    for delimiter in ",;\t|":
        lines = [delimiter.join(row) for row in ([["n", "t", "f"]] if header else []) + rows]
        assert written("\n".join(lines) + "\n") == expected
        assert written("\n".join(lines)) == expected  # the last line may lack its line break


def test_line_ends(written):
    for end in ("\n", "\r\n", "\r"):
        data = end.join(["x,y", "1,a", '2,"b"', "3,c"])
        expected = {"x": [1, 2, 3], "y": ["a", "b", "c"]}
        assert written(data) == written(data + end) == written(data + end * 3) == expected


def test_quoted_cells(written):
    data = 'x,y\n1,"a, b"\n2,"two\nlines"\n3,"a ""b"""\n"4",""\n5,plain "quotes" inside\n6,"\r\n"\n'
    texts = ["a, b", "two\nlines", 'a "b"', None, 'plain "quotes" inside', "\r\n"]
    assert written(data) == {"x": [1, 2, 3, 4, 5, 6], "y": texts}
    assert texts[:3] == pd.read_csv(io.StringIO(data))["y"].tolist()[:3]


def test_no_quote(written):
    assert written('x,y\n1,"a\n2,b"\n', quote="") == {"x": [1, 2], "y": ['"a', 'b"']}
    assert written("x,y\n1,'a,b'\n", quote="'") == {"x": [1], "y": ["a,b"]}


def test_blank_lines_are_no_rows(written):
    assert written("\n\nx,y\n\n1,a\n\r\n\n2,b\n\n") == {"x": [1, 2], "y": ["a", "b"]}


def test_spaces_after_delimiters(written):
    data = "age, work, pay\n39, State-gov, 7\n50, ?, ?\n38,  Private , 8\n 40, ?,   ?\n"
    assert written(data) == {
        "age": [39, 50, 38, 40],
        "work": ["State-gov", None, "Private", None],
        "pay": [7, None, 8, None],
    }


def test_spaces_beside_numbers_and_truths_are_nothing_beside_text_they_count(written):
    data = "x,b,t\n 1,true , a\n2 ,false,b \n\t3, true,c\n"
    assert written(data) == {"x": [1, 2, 3], "b": [True, False, True], "t": [" a", "b ", "c"]}


def test_other_spaces_make_text_of_words_alone(written):
    assert written("x,y\n\xa01,\xa0a\n2,b\n") == {"x": [1.0, 2.0], "y": ["\xa0a", "b"]}


def test_byte_order_mark(written):
    assert written(b"\xef\xbb\xbfx,y\n1,a\n") == {"x": [1], "y": ["a"]}


def test_byte_order_marks_inside_a_file_are_text_whatever_the_blocks(tmp_path):
    path = at(tmp_path, "t.csv", "x,y\n" + "\ufeffa,1\n\ufeff\ufeffb,2\nc,3\n" * 2)
    expected = {"x": ["\ufeffa", "\ufeff\ufeffb", "c"] * 2, "y": [1, 2, 3] * 2}
    for size in range(1, 40):
        assert db.scan(path, block_size=size).read().to_pydict() == expected


def test_encodings(written):
    expected = {"größe": [1, 2], "y": ["ä", "ü"]}
    for encoding in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"):
        assert written("größe,y\n1,ä\n2,ü\n".encode(encoding), encoding=encoding) == expected


def test_decimal_comma(written):
    assert written("x;y\n1,5;a\n-2;b\n", decimal=",") == {"x": [1.5, -2.0], "y": ["a", "b"]}
    assert written("1,5;2,5\n3,5;4\n", decimal=",") == {"c1": [1.5, 3.5], "c2": [2.5, 4.0]}
    assert written("x;y\n1.234,5;a\n", decimal=",") == {"x": [1234.5], "y": ["a"]}
    assert written("x;y\n1.5;a\n", decimal=",") == {"x": ["1.5"], "y": ["a"]}


DECIMAL_COMMAS = {
    "1,5;2,5;a\n2,5;3;b\n": {"c1": [1.5, 2.5], "c2": [2.5, 3.0], "c3": ["a", "b"]},
    "1,5;2,5\n2,5;3,5\n": {"c1": [1.5, 2.5], "c2": [2.5, 3.5]},
    "x;y\n1,5;a\n?;b\n-2;a\n": {"x": [1.5, None, -2.0], "y": ["a", "b", "a"]},
    "x\ty\n1,5\ta\n": {"x": [1.5], "y": ["a"]},
    "x;n\n1,5;1000\n0,125;7\n": {"x": [1.5, 0.125], "n": [1000, 7]},
    "x;y\n1,5;2\nu;3\n": {"x": ["1,5", "u"], "y": [2, 3]},  # text beside them
    "x;y\n1,234;2\n12,345;3\n": {"x": [1234.0, 12345.0], "y": [2, 3]},  # thousands
    "x;y\n1,5;2.5\n2,5;3.5\n": {"x": [1.5, 2.5], "y": [2.5, 3.5]},  # points elsewhere
    "x,y\n1;5,a\n2;5,b\n": {"x": ["1;5", "2;5"], "y": ["a", "b"]},
}


def test_decimal_commas_are_inferred_unless_the_decimal_is_given(written):
    for data, expected in DECIMAL_COMMAS.items():
        assert written(data) == expected, data
    assert written("x;y\n1,5;a\n", decimal=".") == {"x": ["1,5"], "y": ["a"]}


def test_text_after_decimal_commas_makes_text_of_all_unless_it_is_rare(tmp_path, small_sample):
    for times, expected in ((20, ["1,5", "t"]), (1, [1.5, None])):
        data = "x;y\n" + "1,5;a\n" * 500 + "t;b\n" * times
        scan = db.scan(at(tmp_path, "t.csv", data), block_size=1000)
        assert scan.columns["x"] == "number"
        assert scan.read()["x"].unique().to_pylist() == expected


HEADERS = [  # with numbers in them
    "0,1,2,y\n5.1,3.5,1.4,a\n4.9,3,1.5,a\n4.7,3.2,1,b\n",
    "0,1,y\n5.1,3.5,a\n4.9,3,a\n",
    ",0,1\n0,5.1,3.5\n1,4.9,3\n",
    "1,2,3\n5.1,3.5,1.4\n4.9,3,1.5\n",
    "0,1,2,3,4,5\n0,0,7,0,1,0\n3,1,0,0,2,0\n",
    "0,1,size\n5,3,2\n4,3,1\n",
    "name,2019,2020,grp\nAnna,3.5,4,a\nBen,2,1.5,b\n",
    "size,2019\n7,3.5\n8,4\n",
]
NO_HEADERS = [
    "39, State-gov, 77516, Bachelors\n50, Private, 83311, HS-grad\n38, Private, 215646, 11th\n",
    "5.1,3.5,1.4,a\n4.9,3,1.5,a\n",
    "0,a\n1,b\n2,c\n",
    "0,1\n1,0\n1,1\n",
    "0,1,2,a\n3,4,5,b\n",  # whole numbers above whole numbers
    "1,2,a\n1.5,2.5,b\n",
    "0,1,a\n1.5,2.5,b\n0.5,1.5,a\n",  # the class comes again
    "Anna,1987,a\nBen,1990,b\n",
    "Anna,1987,1999,a\nBen,1990,2001,b\n",
    "Anna,1500,a\nBen,3.5,b\n",
    "5,-,3\n4,2,1\n",
    "2019,2020\n3.5,4\n",
    "1,2,3,4,5\n2,1,3,5,4\n5,4,3,2,1\n",  # ranks
    "0,1,2,y\n",
]


def test_headers_may_hold_numbers_and_rows_that_look_like_headers_are_rows():
    assert [data for data in HEADERS if not sniff(data.encode()).header] == []
    assert [data for data in NO_HEADERS if sniff(data.encode()).header] == []


def test_limits_of_the_csv_module_are_left_alone(tmp_path):
    limit = csv.field_size_limit()
    cell = "w" * (limit + 1)
    assert read(at(tmp_path, "t.csv", f"x,{cell}\n1,2\n")) == {"x": [1], cell: [2]}
    with pytest.raises(db.DecibanError, match="line 3: 1 cells"):
        read(at(tmp_path, "t.csv", f"x,y\n1,{cell}\n2\n"))
    assert csv.field_size_limit() == limit == 131072


def test_lines_are_skipped(written):
    data = '# made by "hand\n"# with a quote\nx,y\n1,a\n'
    assert written(data, skip=2) == {"x": [1], "y": ["a"]}
    assert written(data.replace("\n", "\r"), skip=2) == {"x": [1], "y": ["a"]}


def test_small_files(written):
    for data, expected in (
        ("x\n1\n2\n", {"x": [1, 2]}),
        ("1\n2", {"c1": [1, 2]}),
        ("1,2", {"c1": [1], "c2": [2]}),
        ("a,b", {"a": [], "b": []}),
        ("a,b\n", {"a": [], "b": []}),
        ("a\n\n\n", {"a": []}),
        (",x\n1,2\n", {"c1": [1], "x": [2]}),
        (" x , y\n1, 2\n", {"x": [1], "y": [2]}),
        ("u,v\nu,w\n", {"c1": ["u", "u"], "c2": ["v", "w"]}),  # a name is none of its column's values
        ("kind,size\nu,v\nu,w\n", {"kind": ["u", "u"], "size": ["v", "w"]}),
        ("?,a\n1,b\n", {"c1": [None, 1], "c2": ["a", "b"]}),  # what stands for missing is no name
    ):
        assert written(data) == expected, data


def test_what_is_given_is_not_guessed(written):
    assert written("1,2\n3,4\n", header=True) == {"1": [3], "2": [4]}
    assert written("x,y\n1,2\n", header=False) == {"c1": ["x", "1"], "c2": ["y", "2"]}
    assert written("x,y\n1,2\n", names=["a", "b"], header=True) == {"a": [1], "b": [2]}
    assert written("1,2\n", names=["a", "b"]) == {"a": [1], "b": [2]}
    assert written("a,b\n1,2\n", names=["a", "b"]) == {"a": [1], "b": [2]}
    assert written("a,b|c\n1,x|3\n", delimiter="|") == {"a,b": ["1,x"], "c": [3]}
    assert written("x,y\n-,NA\n1,2\n", na_values=["-"]) == {"x": [None, 1], "y": ["NA", "2"]}
    assert written("x,y\n,a\n1,\n", na_values=[]) == {"x": ["", "1"], "y": ["a", ""]}
    assert written("x,y\n5%,no.\n7%,yes.\n", trim={"x": "%", "y": "."}) == {"x": [5, 7], "y": ["no", "yes"]}


def test_headers_and_rows_may_be_longer_than_blocks_and_samples(tmp_path, small_sample):
    wide = [f"column number {j}" for j in range(200)]
    path = at(tmp_path, "wide.csv", ",".join(wide) + "\n" + ",".join(map(str, range(200))) + "\n")
    scan = db.scan(path, block_size=100)
    assert scan.names == tuple(wide)
    assert scan.select(wide[-2:]).read().to_pydict() == {wide[-2]: [198], wide[-1]: [199]}
    cell = "word " * 2000
    path = at(tmp_path, "long.csv", f'x,y\n1,"{cell}"\n2,b\n')
    assert read(path, block_size=1000) == {"x": [1, 2], "y": [cell, "b"]}


def test_dialects_are_guessed_from_the_first_rows():
    assert sniff(b"a;b\n1,5;2\n", CsvOptions(decimal=",")) == Dialect(";", '"', True, False, ",")
    assert sniff(b"a\tb,c\n1\t2,3\n", delimiters="\t,").delimiter == "\t"
    assert sniff(b"word\nmore words, here\n").delimiter in ",;|\t"


def test_wrong_options_are_refused(tmp_path):
    path = at(tmp_path, "t.csv", "x,y\n1,a\n")
    for options, message in (
        ({"delimiter": "ab"}, "delimiter must be one character"),
        ({"delimiter": "\n"}, "delimiter must be one character"),
        ({"delimiter": "é"}, "delimiter must be one character"),
        ({"quote": "''"}, "quote must be one character"),
        ({"delimiter": '"'}, "different characters"),
        ({"delimiter": ",", "decimal": ","}, "different characters"),
        ({"delimiter": "."}, "different characters"),
        ({"decimal": ""}, "decimal must be one character"),
        ({"names": ["a"]}, "line 1: 1 names are given for 2 columns"),
        ({"names": ["a", "b", "c"]}, "line 1: 3 names are given for 2 columns"),
        ({"names": "ab"}, "names must be a list"),
        ({"na_values": "NA"}, "na_values must be a list"),
        ({"names": ["a", "a"]}, "t.csv: column 'a' occurs more than once"),
        ({"types": {"x": "day"}}, "must be one of category, number, boolean, date"),
        ({"types": {"z": "category"}}, "no column 'z'"),
        ({"trim": {"z": "."}}, "no column 'z'"),
        ({"block_size": 0}, "block_size must be"),
        ({"skip": -1}, "skip must be"),
        ({"encoding": "klingon"}, "no encoding called 'klingon'"),
        ({"encoding": "rot13"}, "no encoding called 'rot13'"),
        ({"encoding": "base64"}, "no encoding called 'base64'"),
        ({"encoding": "undefined"}, "no encoding called 'undefined'"),
        ({"format": "xml"}, "format must be"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            read(path, **options)


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6) | st.sampled_from(
    ['"', '""', ",", "\n", "\r", "\r\n", "a,b", '"a', "1", "0x1", "true", " ", ""]
)
QUOTING = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]


@st.composite
def written_rows(draw):
    """Rows of text as csv.writer writes them; None stands in for what it cannot write."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=8))
    delimiter, quoting = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(QUOTING))
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    try:
        writer.writerows(rows)
    except csv.Error:
        assume(False)
    text = out.getvalue()
    if quoting == csv.QUOTE_NONE:  # then every quote is part of a cell, and no cell holds a line break
        assume(not any(set('"\r\n') & set("".join(row)) for row in rows))
    return rows, text, delimiter


@given(written=written_rows(), size=st.integers(1, 60))
@example(written=([["a\r"], ["b"]], '"a\r"\nb\n', ","), size=1)
@example(written=([['"', '","'], ["\n", ""]], '"""",""","""\n"\n",\n', ","), size=2)
def test_any_rows_that_csv_writes_are_read_back(tmp_path_factory, written, size):
    rows, text, delimiter = written
    path = at(tmp_path_factory.mktemp("rows"), "t.csv", text)
    names = [f"n{j}" for j in range(len(rows[0]))]
    options = {"delimiter": delimiter, "header": False, "names": names, "na_values": [], "block_size": size}
    expected = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    assume(expected == rows)  # csv.writer leaves some carriage returns without quotes
    assert dialect_of(path, options).spaced or columns_of(path, options) == [list(c) for c in zip(*rows, strict=True)]


def dialect_of(path, options):
    (part,) = db.scan(path, **options).fragments
    return part.dialect


def columns_of(path, options):
    table = db.scan(path, types=dict.fromkeys(options["names"], "category"), **options).read()
    return [column.to_pylist() for column in table.columns]


@given(st.lists(CELL, min_size=1, max_size=20), st.integers(1, 40))
def test_types_do_not_depend_on_blocks(tmp_path_factory, cells, size):
    """The type of a column is a function of its cells, and each cell is read as it."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([["x", "y"], *([cell, "y"] for cell in cells)])
    path = at(tmp_path_factory.mktemp("types"), "t.csv", out.getvalue())
    whole = db.scan(path, header=True, delimiter=",")
    parts = db.scan(path, header=True, delimiter=",", block_size=size)
    assert parts.read().to_pydict() == whole.read().to_pydict()
    assert parts.columns == whole.columns


# What is wrong with a file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("x,y\n1,a\n2\n3,c\n", "line 3: 1 cells, where there are 2 columns"),
        ("x,y\n1,a\n2,b,c\n3,c\n", "line 3: 3 cells, where there are 2 columns: '2,b,c'"),
        ('x,y\n1,"a\nb"\n\n2,"c\r\nd"\n3\n', "line 7: 1 cells"),
        ("x,y\r1,a\r2\r", "line 3: 1 cells"),
        ("x,y\r\n1,a\r\n2\r\n", "line 3: 1 cells"),
        ('x,y\n1,a\n2,"b\n3,c\n4,d\n', "line 3: the quote that opens here is not closed"),
        ('x,y\n1,"a\nb"\n2,"b', "line 4: the quote that opens here is not closed"),
        ('x,y\n1,"a\nb"\n"2","b""\n', "line 4: the quote that opens here is not closed"),
        ('x,y\n"a\nb","c\n', "line 3: the quote that opens here is not closed"),
        ('x,"y\n1,a\n', "line 1: the quote that opens here is not closed"),
        (b"x,y\n1,a\n2,\0\n", "line 3: holds a NUL byte"),
        ("x,y\n1,a\n2,é\n".encode("latin-1"), "line 3: holds bytes that are not UTF-8"),
        ("x,é\n1,a\n".encode("latin-1"), "line 1: holds bytes that are not UTF-8"),
        ("x,y\n1,a\n".encode("utf-16-le"), "line 1: holds a NUL byte"),
        ("x,x\n1,2\n", "column 'x' occurs more than once"),
        ("", "is empty"),
        ("\n\r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
    ],
)
def test_errors_name_file_and_line(tmp_path, data, message):
    path = at(tmp_path, "t.csv", data)
    for size in (5, 40, 1 << 20):
        with pytest.raises(db.DecibanError) as error:
            read(path, block_size=size)
        assert str(path) in str(error.value)
        assert message in str(error.value)


def test_options_that_no_text_can_match_are_refused(tmp_path):
    path = at(tmp_path, "t.csv", "x,y\n1,a\n")
    for option in ({"na_values": ["\udce0"]}, {"names": ["\udce0", "y"]}, {"trim": {"y": "\udce0"}}):
        with pytest.raises(db.DecibanError, match=f"{next(iter(option))} must be text in UTF-8"):
            db.scan(path, **option)
    with pytest.raises(db.DecibanError, match="trim must be text in UTF-8"):
        db.scan(path).with_trim("y", "\udce0")


def test_utf_16_without_a_byte_order_mark_needs_its_byte_order(tmp_path):
    path = at(tmp_path, "t.csv", "x,y\n1,a\n".encode("utf-16-le"))
    with pytest.raises(db.DecibanError, match=r"t\.csv is not text in utf-16: .*BOM"):
        read(path, encoding="utf-16")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("7", "1 cells"),
        ("7,8,9", "3 cells"),
        ('7,"8', "the quote that opens here is not closed"),
        ("7,\0", "NUL"),
        ("7,\xe9", "not UTF-8"),
    ],
)
def test_lines_are_counted_beyond_the_sample(tmp_path, small_sample, bad, message):
    rows = ['1,"two\nlines"\n'] * 100 + ["1,one\n"] * 200  # 401 lines
    path = at(tmp_path, "t.csv", ("x,y\n" + "".join(rows) + bad + "\n").encode("latin-1"))
    for size in (100, 1 << 23):
        with pytest.raises(db.DecibanError, match=f"line 402: .*{message}"):
            read(path, block_size=size)


def test_text_in_another_encoding_is_refused_with_its_line(tmp_path):
    cut_off = "x,y\n1,a\n2,b".encode("utf-16")[:-1]
    for encoding, data in (("ascii", "x,y\n1,a\n2,é\n".encode()), ("utf-16", cut_off)):
        with pytest.raises(db.DecibanError, match=f"t.csv, line 3: this is not text in {encoding}"):
            read(at(tmp_path, "t.csv", data), encoding=encoding, block_size=1)


# Types ---------------------------------------------------------------------------------------------------------------

LATE = {  # first cell, last cell, type, what the two are read as
    "whole, text": ("1", "t", "text", "1", "t"),
    "whole, number": ("1", "1.5", "number", 1.0, 1.5),
    "missing, whole": ("", "3", "integer", None, 3),
    "missing, truth": ("", "true", "boolean", None, True),
    "missing, text": ("?", "t", "text", None, "t"),
    "truth, text": ("true", "t", "text", "true", "t"),
    "truth, whole": ("true", "1", "text", "true", "1"),
    "number, truth": ("1.5", "true", "text", "1.5", "true"),
    "whole, hexadecimal": ("5", "0x1F", "text", "5", "0x1F"),
    "hexadecimal, number": ("0x1F", "1.5", "text", "0x1F", "1.5"),
    "whole, leading zeros": ("10001", "00501", "text", "10001", "00501"),
    "leading zeros, number": ("007", "1.5", "text", "007", "1.5"),
    "number, leading zeros": ("1.5", "007", "text", "1.5", "007"),
    "zeros before, text": ("001", "z", "text", "001", "z"),
    "whole, too large": ("1", "9223372036854775808", "number", 1.0, 2.0**63),
    "whole, exponent": ("1", "1e5", "number", 1.0, 1e5),
    "whole, plus": ("1", "+5", "number", 1.0, 5.0),
    "whole, infinite": ("1", "-inf", "number", 1.0, -float("inf")),
    "whole, NaN": ("1", "nan", "integer", 1, None),
    "text, whole": ("t", "5", "text", "t", "5"),
}


def passes_over(monkeypatch):
    """A list that grows by one for each pass over a file in blocks."""
    from deciban.data.files.text_files import TextFile

    passes, blocks = [], TextFile.blocks
    monkeypatch.setattr(TextFile, "blocks", lambda *given: passes.append(given) or blocks(*given))
    return passes


@pytest.mark.parametrize("case", LATE)
def test_types_hold_all_cells_of_a_file_and_of_all_files(tmp_path, monkeypatch, small_sample, case):
    first, last, cells, a, b = LATE[case]
    path = at(tmp_path, "t.csv", "x,y\n" + f"{first},a\n" * 500 + f"{last},a\n" * 10)
    passes = passes_over(monkeypatch)
    scan = db.scan(path, block_size=1000)
    column = scan.read()["x"]
    assert (scan.columns["x"], column[0].as_py(), column[-1].as_py()) == (cells, a, b)
    assert len(passes) <= 4  # one that fails, two that look at types and at how text is written, one that reads
    passes.clear()
    scan.read()
    assert len(passes) == 1
    paths = [at(tmp_path, f"{i}.csv", f"x,y\n{cell},a\n") for i, cell in enumerate((first, last))]
    for order, values in ((paths, [a, b]), (paths[::-1], [b, a])):
        scan = db.scan(order)
        assert scan.read()["x"].to_pylist() == values
        assert scan.columns["x"] == cells


def test_given_types(written):
    assert written("x,y\n1,a\n0,b\n", types={"x": "category"}) == {"x": ["1", "0"], "y": ["a", "b"]}
    assert written("x,y\n1,a\n0,b\n", types={"x": "number"}) == {"x": [1.0, 0.0], "y": ["a", "b"]}
    assert written("x,y\n1,a\n0,b\n", types={"x": "boolean"}) == {"x": [True, False], "y": ["a", "b"]}
    assert written("x,y\n,a\n", types={"x": "number"}) == {"x": [None], "y": ["a"]}


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_cells_that_do_not_fit_a_given_type_are_refused(tmp_path, monkeypatch, size):
    passes = passes_over(monkeypatch)
    for given_type, cell in (("number", "a"), ("boolean", "2"), ("number", "0x1"), ("number", "1,5")):
        path = at(tmp_path, "t.csv", 'y,x\n"a\nb",1\nc,?\nc,0\nd,"' + cell + '"\n')
        passes.clear()
        words = {"number": "numbers", "boolean": "true or false"}[given_type]
        with pytest.raises(db.DecibanError, match=f"t.csv, line 6: column 'x' is read as {words}, and '{cell}' is not"):
            read(path, types={"x": given_type}, block_size=size)
        assert len(passes) == 1  # there is no need to look at all rows for it


def test_cells_agree_with_pandas(tmp_path):
    table = pa.table({"x": [1.5, None, 1e-300, 0.1], "n": [1, 2, 3, 2**62], "t": ["a", "b c", None, "é"]})
    path = at(tmp_path, "t.csv", csv_text(table))
    expected = pd.read_csv(path, na_values=list(NA_VALUES))
    pd.testing.assert_frame_equal(db.scan(path).read().to_pandas().astype({"t": "str"}), expected.astype({"t": "str"}))

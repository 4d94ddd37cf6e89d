"""Folders, Maildirs, mbox files and streams of mail: the same rows however they are stored and read."""

import gzip
import io
import mailbox
import os
import sys
import tracemalloc
import warnings
from email.message import EmailMessage
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.files.mail_message import COLUMNS, MAX_BYTES, parse
from deciban.data.files.mailboxes import END, MAX_END, mails_of
from deciban.data.prefetch import parallel_map
from tests.data.files.written import at


def mail(subject, body="text\n"):
    message = EmailMessage()
    message["From"] = "ann@example.org"
    message["Subject"] = subject
    message.set_content(body)
    return message.as_bytes()


def put(folder, files):
    """Files at paths below a folder, which are made."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        at(folder, path, data)
    return folder


def subjects(scan):
    return scan.read()["subject"].to_pylist()


def as_mbox(mails):
    return b"".join(b"From ann@example.org Mon Jan  1 00:00:00 2024\n" + data + b"\n" for data in mails)


@pytest.fixture
def folder(tmp_path):
    return put(
        tmp_path / "mail",
        {
            "spam/2": mail("s2"),
            "spam/1.eml": mail("s1"),
            "ham/deep/er/1": mail("h2"),
            "ham/box": as_mbox([mail("h0"), mail("h1")]),
            "top.eml": mail("t"),
        },
    )


# Folders -------------------------------------------------------------------------------------------------------------


def test_folders_are_classes_and_the_order_is_that_of_paths(folder):
    scan = db.scan(folder)
    assert scan.names == ("folder", *COLUMNS)
    assert set(scan.columns.values()) == {"text"}
    table = scan.read()
    assert table["subject"].to_pylist() == ["h0", "h1", "h2", "s1", "s2", "t"]
    assert table["folder"].to_pylist() == ["ham", "ham", "ham", "spam", "spam", None]
    assert set(table.schema.types) == {pa.string()}
    expected = [parse(mail(subject)).texts["body"] for subject in table["subject"].to_pylist()]
    assert [body.rstrip("\n") for body in table["body"].to_pylist()] == [body.rstrip("\n") for body in expected]
    assert scan.read() == table  # again
    assert db.scan(str(folder) + os.sep).read() == table
    assert pa.table(scan) == table
    assert repr(scan.select("subject")) == f"Scan of {folder}: subject (category)"


def test_rows_do_not_hang_on_the_size_of_blocks_or_on_threads(folder, monkeypatch):
    expected = db.scan(folder).read()
    for size in (1, 300, 700, 1 << 40):
        assert db.scan(folder, block_size=size).read() == expected
    monkeypatch.setattr("deciban.data.files.mailboxes.ROWS", 2)
    monkeypatch.setattr("deciban.data.files.scan.parallel_map", partial(parallel_map, workers=5))
    scan = db.scan(folder)
    assert scan.read() == expected
    assert [frame.rows for frame in scan.frames()] == [2, 2, 2]


def test_columns_are_chosen(folder):
    assert db.scan(folder).select(["subject", "folder"]).read().column_names == ["subject", "folder"]
    with pytest.raises(db.DecibanError, match="column 'subject' holds text, and numbers elsewhere"):
        db.scan(folder, types={"subject": "number"}).read()


def test_a_model_learns_which_folder_a_mail_is_in(tmp_path):
    folder = put(tmp_path, {f"{name}/{i}": mail(name) for name in ("ham", "spam") for i in range(5)})
    scan = db.scan(folder).select(["folder", "subject"])
    model = db.NaiveBayes().fit(scan, "folder")
    assert model.predict(scan.select("subject")).tolist() == ["ham"] * 5 + ["spam"] * 5


def test_maildirs(tmp_path):
    inbox = {"cur/1:2,S": mail("seen"), "new/2": mail("new"), "tmp/3": mail("half")}
    files = {"dovecot-uidlist": "3 V1", "maildirfolder": "", ".Spam/dovecot.index": "x"}
    files |= {f".Spam/{path}": mail(f"spam {path[:3]}") for path in inbox}
    root = put(tmp_path / "Maildir", inbox | files)
    table = db.scan(root).read()
    assert table["subject"].to_pylist() == ["spam cur", "spam new", "seen", "new"]
    assert table["folder"].to_pylist() == ["Spam", "Spam", None, None]
    both = put(tmp_path / "both", {f"{name}/{path}": data for name in ("ham", "spam") for path, data in inbox.items()})
    assert db.scan(both).read()["folder"].to_pylist() == ["ham", "ham", "spam", "spam"]
    plain = put(tmp_path / "plain", {"tmp/1": mail("x"), "old/1": mail("y")})  # no Maildir
    assert db.scan(plain).read()["folder"].to_pylist() == ["old", "tmp"]


def test_what_a_mailbox_of_the_standard_library_holds(tmp_path):
    box = mailbox.Maildir(tmp_path / "m", create=True)
    mbox = mailbox.mbox(tmp_path / "b.mbox")
    for i in range(3):
        box.add(mail(f"{i}"))
        mbox.add(mail(f"{i}", "From here\n\nFrom there\nto here\n"))
    mbox.close()
    assert sorted(subjects(db.scan(tmp_path / "m"))) == ["0", "1", "2"]
    scan = db.scan(tmp_path / "b.mbox")
    assert subjects(scan) == ["0", "1", "2"]
    assert scan.read()["body"].to_pylist() == ["From here\n\nFrom there\nto here\n"] * 3
    assert scan.read()["folder"].to_pylist() == [None] * 3


def test_hidden_files_links_in_circles_and_pipes_are_not_read(folder, tmp_path):
    expected = db.scan(folder).read()
    put(folder, {".DS_Store": "x", ".git/config": "x", "ham/box.msf": "x", "spam/.hidden": mail("x")})
    (folder / "ham" / "circle").symlink_to(folder)
    (folder / "ham" / "self").symlink_to(folder / "ham" / "self")
    (folder / "ham" / "nowhere").symlink_to(folder / "gone")
    os.mkfifo(folder / "ham" / "pipe")
    assert db.scan(folder).read() == expected
    (folder / "zz").symlink_to(at(tmp_path, "elsewhere", mail("linked")))
    assert subjects(db.scan(folder))[-1] == "linked"


def test_names_that_are_no_text(tmp_path):
    name = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(name)
    with open(os.path.join(name, b"\xff"), "wb") as file:
        file.write(mail("x"))
    assert db.scan(tmp_path).read()["folder"].to_pylist() == ["caf\ufffd"]


def test_folders_beside_files(folder, tmp_path):
    scan = db.scan([folder / "spam", at(tmp_path, "one.eml", mail("one"))])
    assert subjects(scan) == ["s1", "s2", "one"]
    with pytest.raises(db.DecibanError, match="must have the same columns"):
        _ = db.scan([folder, at(tmp_path, "t.csv", "x,y\n1,2\n")]).names


# What is no mail -----------------------------------------------------------------------------------------------------


def test_what_is_no_mail_is_said_once_and_does_not_stop_the_run(folder):
    put(folder, {f"ham/picture{i}.png": b"\x89PNG\r\n" for i in range(5)} | {"ham/empty": b""})
    scan = db.scan(folder, block_size=1)
    with pytest.warns(db.DecibanWarning) as caught:
        assert subjects(scan) == ["h0", "h1", "h2", "s1", "s2", "t"]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    said = str(caught[0].message)
    ham = folder / "ham"
    assert said.startswith(f"{folder}: 6 skipped, as a whole or in part: {ham / 'empty'}: it is empty; ")
    assert said.endswith(f"{ham / 'picture1.png'}: it does not begin with a header, such as 'From: …'; and 3 more")
    assert len(subjects(scan.drop("folder"))) == 6  # it was said
    with pytest.warns(db.DecibanWarning, match="6 skipped"):
        db.scan(folder, block_size=1).read()


def test_no_mail_at_all_is_an_error(tmp_path):
    put(tmp_path, {"a.png": b"\x89PNG", "b": b""})
    scan = db.scan(tmp_path)
    with pytest.raises(db.DecibanError, match=r"there is no mail in .*a.png: it does not begin .*; .*b: it is empty"):
        scan.read()
    (tmp_path / "none").mkdir()
    with pytest.raises(db.DecibanError, match=r"none is a directory without files: there is no mail"):
        db.scan(tmp_path / "none")


def test_a_folder_of_tables_is_none_of_mail(tmp_path):
    put(tmp_path, {"a.csv": "x,y\n1,2\n", "b.parquet": b"PAR1"})
    with pytest.raises(db.DecibanError, match="is a directory: name the files in it"):
        db.scan(tmp_path)
    with pytest.raises(db.DecibanError, match="is a directory: name the files in it"):
        db.scan(tmp_path, format="csv")
    assert subjects(db.scan(put(tmp_path / "t", {"a.txt": mail("x"), "b.csv": mail("y")}))) == ["x", "y"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(folder):
    (folder / "spam" / "2").chmod(0)
    (folder / "ham" / "deep").chmod(0)
    try:
        with pytest.warns(db.DecibanWarning, match="2 skipped.*deep: it cannot be read: Permission denied"):
            assert subjects(db.scan(folder)) == ["h0", "h1", "s1", "t"]
    finally:
        (folder / "ham" / "deep").chmod(0o700)


def test_files_that_go_away(folder):
    scan = db.scan(folder)
    (folder / "spam" / "2").unlink()
    with pytest.warns(db.DecibanWarning, match="1 skipped.*spam.2: it cannot be read: No such file"):
        assert subjects(scan) == ["h0", "h1", "h2", "s1", "t"]


def test_errors_name_the_file_and_the_mail(folder):
    put(folder, {"ham/a": b"no mail", "ham/deep/a": mail("x")})
    index = at(folder.parent, "index", "ham mail/ham/deep/a\nham mail/ham/deep/er/1\nspam mail/top.eml\n")
    scan = db.scan(folder, labels=index)
    with pytest.raises(db.DecibanError, match=f"{folder / 'ham' / 'box'}, mail 1: ") as raised:
        db.NaiveBayes().fit(scan.select(["label", "subject"]), "label")
    assert "label" in str(raised.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in (1, 1000, 1 << 22):
            scan = db.scan(folder, block_size=size)
            read = scan.read()["subject"].to_pylist()
            places = [scan.locate(row) for row in range(len(read))]
            assert [place.removeprefix(f"{folder}{os.sep}") for place in places] == [
                *("ham/box, mail 1", "ham/box, mail 2", "ham/deep/a", "ham/deep/er/1"),
                *("spam/1.eml", "spam/2", "top.eml"),
            ]


def test_progress(folder):
    scan, seen = db.scan(folder, block_size=1), []
    scan.on_progress = lambda rows, read, path: seen.append((rows, read, path))
    scan.read()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert [rows for rows, _, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert [read for _, read, _ in seen] == sorted(read for _, read, _ in seen)
    assert seen[-1][1:] == (size, str(folder))
    assert scan.fragments[0].size == size


# mbox ----------------------------------------------------------------------------------------------------------------


def split(data, size):
    stream = io.BytesIO(data)
    return list(mails_of(stream.read(size), partial(stream.read, size)))


LINES = st.sampled_from([b"", b"text", b"Key: value", b">From x", b">>From y", b"From z", b"From now on", b"a" * 50])


@given(st.lists(st.lists(LINES, max_size=6), min_size=1, max_size=5), st.sampled_from([b"\n", b"\r\n"]))
def test_mbox_is_split_the_same_in_any_pieces(bodies, line_break):
    written = [b"Subject: %d\n\n" % i + b"\n".join(lines) + b"\n" for i, lines in enumerate(bodies)]
    data = as_mbox(written).replace(b"\n", line_break)
    whole = split(data, len(data))
    for size in (1, 7, 64):
        assert split(data, size) == whole


@given(st.lists(st.text("ab >From\n:", max_size=60), min_size=1, max_size=5))
def test_mbox_of_the_standard_library(tmp_path_factory, bodies):
    path = tmp_path_factory.mktemp("mbox") / "box.mbox"
    box = mailbox.mbox(path)
    for i, body in enumerate(bodies):
        box.add(b"Subject: %d\n\n" % i + body.encode() + b"\n")
    box.close()
    scan = db.scan(path)
    assert subjects(scan) == [str(i) for i in range(len(bodies))]
    # it writes ">From" for "From" and leaves the former as it is, so that they cannot be distinguished
    lines = [[line.lstrip(">") for line in text.split("\n") if line] for text in scan.read()["body"].to_pylist()]
    assert lines == [[line.lstrip(">") for line in body.split("\n") if line] for body in bodies]


def test_from_within_a_text_does_not_end_a_mail():
    box = as_mbox([b"Subject: a\n\nFrom now on\n\nFrom today\nno header here\n\nbye\n", b"Subject: b\n\nx\n"])
    assert [parse(data).texts["subject"] for data in split(box, 100)] == ["a", "b"]
    assert END.search(b"\n\nFrom " + b"x" * 1000 + b"\n" + b"H" * 200 + b":").end() == 2
    assert MAX_END >= 2 + 1 + 5 + 1000 + 1 + 201 + 1


def test_mbox_numbers_what_is_no_mail(tmp_path):
    data = as_mbox([mail("0")]) + b"From x\n>From y\n\nz\n\n" + as_mbox([mail("2")])
    with pytest.warns(db.DecibanWarning, match="1 skipped.*box.mbox, mail 2: it does not begin with a header"):
        assert subjects(db.scan(at(tmp_path, "box.mbox", data))) == ["0", "2"]


def test_mbox_compressed_by_gzip(tmp_path):
    packed = gzip.compress(as_mbox([mail("0"), mail("1")]))
    assert subjects(db.scan(at(tmp_path, "box.mbox.gz", packed))) == ["0", "1"]
    at(tmp_path, "box.mbox.gz", packed[:-20])
    with pytest.warns(db.DecibanWarning, match="it cannot be read"):
        assert subjects(db.scan(put(tmp_path, {"one": mail("x")})))[-1] == "x"


def test_an_mbox_is_never_in_memory_as_a_whole(tmp_path):
    long = mail("long") + b"x" * (3 * MAX_BYTES) + b"\n"
    with open(tmp_path / "box.mbox", "wb") as file:
        for _ in range(8):
            file.write(as_mbox([mail("short"), long]))
    scan = db.scan(tmp_path / "box.mbox", format="mail").select("subject")
    tracemalloc.start()
    with pytest.warns(db.DecibanWarning, match="8 skipped.*mail 2: longer than 4 MB"):
        actual = [subject for frame in scan.frames() for subject in frame.table["subject"].to_pylist()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert actual == ["short", "long"] * 8
    assert peak < 20 * MAX_BYTES  # 24 of them are in the file, and some are read ahead


@pytest.mark.parametrize("data", [mail("one"), as_mbox([mail("one"), mail("two")])], ids=["mail", "mbox"])
def test_standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    scan = db.scan("-", format="mail")
    assert subjects(scan) == ["one", "two"][: data.count(b"Subject:")]
    assert scan.locate(0).startswith("standard input")


def test_standard_input_that_is_no_mail(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\x89PNG")))
    with pytest.raises(db.DecibanError, match="no mail in standard input: standard input: it does not begin"):
        db.scan("-", format="mail").read()


def test_any_file_may_be_said_to_be_mail(tmp_path):
    assert subjects(db.scan(at(tmp_path, "m.csv", mail("x")), format="mail")) == ["x"]
    assert subjects(db.scan(at(tmp_path, "m.eml", mail("x")))) == ["x"]


# Texts ---------------------------------------------------------------------------------------------------------------


def test_folders_of_texts(tmp_path):
    put(tmp_path, {"a/2.txt": "zwei\n", "a/1": b"\xef\xbb\xbfein\xff", "b/x.lock": "", "c.csv": "x,y"})
    table = db.scan(tmp_path, format="text").read()
    assert table.to_pydict() == {"folder": ["a", "a", "b", None], "text": ["ein\ufffd", "zwei\n", "", "x,y"]}
    assert db.scan(tmp_path / "a" / "2.txt", format="text").read()["text"].to_pylist() == ["zwei\n"]
    at(tmp_path, "a/1", b"caf\xe9")
    assert db.scan(tmp_path, format="text", encoding="latin-1").read()["text"][0].as_py() == "café"
    at(tmp_path, "a/1", b"+2AA-x")
    assert db.scan(tmp_path, format="text", encoding="utf-7").read()["text"][0].as_py() == "?x"
    with pytest.raises(db.DecibanError, match="there is no encoding called 'x'"):
        db.scan(tmp_path, format="text", encoding="x")


def test_long_texts_are_cut_and_said_so(tmp_path):
    at(tmp_path, "long", b"x" * (MAX_BYTES + 10))
    with pytest.warns(db.DecibanWarning, match="long: longer than 4 MB: the rest was not read"):
        assert len(db.scan(tmp_path, format="text").read()["text"][0].as_py()) == MAX_BYTES


# Labels --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("index", "spam mail/spam/1.eml\nham mail/ham/box\n\nham  ./mail/top.eml\n"),
        ("mail/index", "spam spam/1.eml\nham ham/box\nham top.eml\n"),
        ("full/index", "spam ../mail/spam/1.eml\r\nham ../mail/ham/box\r\nham ../mail/top.eml\r\n"),
        ("elsewhere/index", "spam spam/1.eml\nham ham/box\nham top.eml\nham is/not/there\n"),
        ("index.csv", "path,label\nmail/spam/1.eml,spam\nmail/ham/box,ham\nmail/top.eml,ham\n"),
        ("index.csv", 'id,Label,File\n1,spam,"spam/1.eml"\n2,ham,ham/box\n\n3,ham,top.eml\n'),
    ],
)
def test_labels(folder, where, text):
    put(folder.parent, {where: text})
    scan = db.scan(folder, labels=folder.parent / where)
    assert scan.names == ("label", *COLUMNS)
    table = scan.read()
    assert table["subject"].to_pylist() == ["h0", "h1", "h2", "s1", "s2", "t"]
    assert table["label"].to_pylist() == ["ham", "ham", None, "spam", None, "ham"]


def test_labels_of_absolute_paths_of_a_file_and_of_texts(folder):
    index = at(folder.parent, "index", f"spam {folder / 'spam' / '2'}\nham mail/ham/box\n")
    assert db.scan(folder / "ham" / "box", format="mail", labels=index).read()["label"].to_pylist() == ["ham"] * 2
    table = db.scan(folder / "spam", format="text", labels=index).read()
    assert table.column_names == ["label", "text"]
    assert table["label"].to_pylist() == [None, "spam"]


def test_labels_that_cannot_be(folder):
    for text, message in (
        ("spam mail/spam/1.eml\nham spam/1.eml\n", "index, line 2: 'spam/1.eml' is 'ham' here, and was 'spam' before"),
        ("spam nowhere\n", "none of the 1 paths in .*index is a file in .*mail"),
        ("", "none of the 0 paths"),
        ("spam mail/spam/1.eml\nspam\n", "line 2: a line must be 'label path'"),
        ("path,label\nx\n", "line 2: 1 cells, and 2 in the header"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            db.scan(folder, labels=at(folder.parent, "index", text))


def test_labels_that_are_not_there_or_of_a_table(folder):
    with pytest.raises(db.DecibanError, match="index cannot be read: No such file"):
        db.scan(folder, labels=folder / "index")
    with pytest.raises(db.DecibanError, match=r"labels go with mail and texts, and .*t.csv is csv"):
        db.scan(at(folder, "t.csv", "x,y\n1,2\n"), labels=folder / "index")

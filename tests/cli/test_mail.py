"""`deciban mail filter`, `learn` and `forget`: what passes through, what is said, and nothing lost by many at once."""

import email
import email.policy
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from base64 import encodebytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.cli import mail
from deciban.cli.mail_filter import MANY
from deciban.cli.mail_verdict import with_header
from deciban.data.files.mail_message import parse
from deciban.mail.filter import Filter, Verdict
from tests.cli.runs import MAIN, NAIVE_BAYES, command, files_in, run
from tests.laws import flattened

SPAM = b"From: win@spam.example\nTo: me@example.org\nSubject: claim your prize\n\nFree pills, cheap money: click!\n"
HAM = b"From: ann@ham.example\nTo: me@example.org\nSubject: lunch\n\nThe report is done. Lunch tomorrow at noon?\n"
UNKNOWN = b"From: someone@elsewhere.example\nSubject: hello\n\nqwertz\n"
WORDS = {"spam": "free win claim prize pills cheap money", "ham": "lunch meeting report noon tomorrow draft"}


def written(label, i):
    words = WORDS[label].split()
    said = " ".join(words[(i * k) % len(words)] for k in range(1, 6))
    return f"From: {i % 3}@{label}.example\nSubject: {words[i % len(words)]} {label}{i}\n\n{said}\n".encode()


def deliver(*args, data=b"", code=0):
    """A command, in this process: what it writes to standard output and to stderr."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        exit_code = mail.run(str(args[0]), [*map(str, args[1:])])
    assert exit_code == code, err.getvalue()
    return out.buffer.getvalue(), err.getvalue()


def process(*args, program=MAIN, **options):
    """A command as a process of its own, of bytes."""
    line = [sys.executable, "-c", program, *map(str, args)]
    return subprocess.Popen(line, stderr=subprocess.PIPE, **{"stdin": subprocess.PIPE} | options)


def done(running, data=None, code=0):
    """What it wrote, when it has ended."""
    out, err = running.communicate(data, timeout=120)
    assert running.returncode == code, err
    assert b"Traceback" not in err
    return out, err


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder of mail, and models of it: evidence (ev) and naive Bayes (nb)."""
    folder = tmp_path_factory.mktemp("office")
    for label in WORDS:
        (folder / "mail" / label).mkdir(parents=True)
        for i in range(20):
            (folder / "mail" / label / f"{i}.eml").write_bytes(written(label, i))
    run("fit", folder / "mail", "--label-from-folder", "-o", folder / "ev.deciban")
    run("fit", folder / "mail", "--label-from-folder", *NAIVE_BAYES, "-o", folder / "nb.deciban")
    return folder


@pytest.fixture
def model(office, tmp_path):
    """A copy of naive Bayes, alone in a folder."""
    (tmp_path / "box").mkdir()
    path = tmp_path / "box" / "m.deciban"
    path.write_bytes((office / "nb.deciban").read_bytes())
    return path


# Many at once --------------------------------------------------------------------------------------------------------


def test_six_that_learn_at_once_lose_nothing(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    taught = [(label, written(label, i)) for label in WORDS for i in range(3)]
    all_at_once = [process("mail", "learn", folder / "m.deciban", "--as", label) for label, _ in taught]
    for running, (_, data) in zip(all_at_once, taught, strict=True):  # all begin before the first has its mail
        running.stdin.write(data)
        running.stdin.close()
        running.stdin = None
    for running in all_at_once:
        done(running)
    expected = Filter.new()
    for label, data in taught:
        expected = expected.learn([parse(data).texts], label)
    expected.save(tmp_path / "expected.deciban")
    assert files_in(folder) == {"m.deciban": (tmp_path / "expected.deciban").read_bytes()}


def test_all_who_change_a_model_at_once_lose_nothing(model, tmp_path):
    for name, label, i in (("more", "spam", 30), ("less", "ham", 3)):
        (tmp_path / name / label).mkdir(parents=True)
        (tmp_path / name / label / "1.eml").write_bytes(written(label, i))
    learned, forgotten = [("ham", 41), ("news", 42)], [("spam", 6)]
    changes = [(process("fit", tmp_path / "more", "--resume", model, stdout=subprocess.DEVNULL), None)]
    for words, mails in (("learn", learned), ("forget", forgotten)):
        for label, i in mails:
            data = written(label if label in WORDS else "ham", i)
            changes.append((process("mail", words, model, "--as", label), data))
    classifying = process("mail", "filter", model, stdout=subprocess.PIPE)
    run("forget", model, tmp_path / "less")
    for running, data in changes:
        done(running, data)
    assert done(classifying, SPAM)[0].startswith(b"X-Deciban: spam p=")
    texts = {(label, i): parse(written(label, i)).texts for label in WORDS for i in range(43)}
    expected = Filter.new().learn([texts["ham", i] for i in [*range(20), 41] if i != 3], "ham")
    expected = expected.learn([texts["spam", i] for i in [*range(20), 30] if i != 6], "spam")
    expected.learn([texts["ham", 42]], "news").save(tmp_path / "expected.deciban")
    assert [*files_in(model.parent)] == ["m.deciban"]
    assert same_evidence(model, tmp_path / "expected.deciban")


def same_evidence(path, other):
    """Whether two models have the same statistics; importances depend on the rows that they kept."""
    mine, theirs = (db.load(file).generative_ for file in (path, other))
    blocks = zip(mine.blocks, theirs.blocks, strict=True)
    return mine.counts.value.tolist() == theirs.counts.value.tolist() and all(
        a.plan == b.plan and str(flattened(a.statistic)) == str(flattened(b.statistic)) for a, b in blocks
    )


KILLED = """
import os, signal
real = os.{name}
def killed(*args):
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
os.{name} = killed
"""


@pytest.mark.parametrize(
    ("name", "before", "learned"),
    [("fsync", "", False), ("replace", "", False), ("replace", "real(*args)", True)],
    ids=["written", "synced", "replaced"],
)
def test_a_process_that_is_killed_leaves_a_model(name, before, learned, model):
    old = model.read_bytes()
    running = process("mail", "learn", model, "--as", "spam", program=KILLED.format(name=name, before=before) + MAIN)
    done(running, SPAM, code=-signal.SIGKILL)
    assert (model.read_bytes() != old) == learned
    assert db.load(model).class_count_.tolist() == [20, 20 + learned]
    left = [each for each in os.listdir(model.parent) if each != "m.deciban"]
    # a file that was not yet given its name is hidden, and in nobody's way
    assert [bool(re.fullmatch(r"\.[0-9a-f]{16}\.deciban-tmp", each)) for each in left] == [True] * (not learned)
    deliver("learn", model, "--as", "spam", data=SPAM)  # nobody holds the lock any more
    assert os.listdir(model.parent) == ["m.deciban"]  # and what was left is removed
    assert db.load(model).class_count_.tolist() == [20, 21 + learned]


SLOW = """
import os, sys, time
def slowly(*args):
    print("now", file=sys.stderr, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, b"deciban: interrupted\n"),
        (signal.SIGTERM, 143, b""),
        (signal.SIGHUP, 129, b""),
    ],
)
def test_an_interruption_leaves_what_was_there_and_nothing_else(number, code, said, model):
    old = model.read_bytes()
    running = process("mail", "learn", model, "--as", "spam", program=f"{SLOW}os.fsync = slowly\n{MAIN}")
    running.stdin.write(SPAM)
    running.stdin.close()
    running.stdin = None
    assert running.stderr.readline() == b"now\n"
    running.send_signal(number)
    assert done(running, code=code)[1] == said
    assert files_in(model.parent) == {"m.deciban": old}


# Learning and forgetting ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nb", "ev"])
@pytest.mark.parametrize("label", ["spam", "ham", "news"])
def test_what_is_learned_and_forgotten_leaves_the_file_as_it_was(kind, label, office, tmp_path):
    path = tmp_path / "m.deciban"
    path.write_bytes((office / f"{kind}.deciban").read_bytes())
    old = path.read_bytes()
    assert deliver("learn", path, "--as", label, data=SPAM) == (b"", "")
    new = path.read_bytes()
    assert new != old
    assert db.load(path).classes_.tolist() == sorted({"ham", "spam", label})
    deliver("learn", path, f"--as={label}", data=HAM)
    deliver("forget", path, "--as", label, data=HAM)
    assert path.read_bytes() == new
    assert deliver("forget", path, "--as", label, data=SPAM) == (b"", "")
    assert path.read_bytes() == old


@pytest.mark.parametrize("kind", ["nb", "ev"])
@pytest.mark.parametrize("label", ["spam", "nobody"])
def test_what_was_never_learned_cannot_be_forgotten(kind, label, office, tmp_path):
    path = tmp_path / "m.deciban"
    path.write_bytes((office / f"{kind}.deciban").read_bytes())
    _, said = deliver("forget", path, "--as", label, data=UNKNOWN, code=1)
    assert said.startswith("deciban: ")
    assert said.count("\n") == 1
    assert files_in(tmp_path) == {"m.deciban": (office / f"{kind}.deciban").read_bytes()}


@pytest.mark.parametrize("args", [NAIVE_BAYES, [*NAIVE_BAYES, "--smoothing", "auto"], []], ids=" ".join)
def test_to_learn_is_to_resume(args, office, tmp_path):
    fitted, learned = tmp_path / "fitted.deciban", tmp_path / "learned.deciban"
    run("fit", office / "mail", "--label-from-folder", *args, "-o", fitted)
    learned.write_bytes(fitted.read_bytes())
    more = tmp_path / "more" / "spam" / "1.eml"
    more.parent.mkdir(parents=True)
    more.write_bytes(SPAM)
    run("fit", tmp_path / "more", "--resume", fitted)
    deliver("learn", learned, "--as", "spam", more)
    assert learned.read_bytes() == fitted.read_bytes()


def test_a_model_that_does_not_exist_is_made(office, tmp_path):
    path = tmp_path / "new.deciban"
    for label in WORDS:
        mails = sorted((office / "mail" / label).iterdir())
        _, said = deliver("learn", path, "--as", label, *mails)
        assert said == ("" if label == "ham" else f"deciban: {path} is a new model: naive Bayes for mail\n")
    assert same_evidence(path, office / "nb.deciban")
    deliver("forget", tmp_path / "none.deciban", "--as", "spam", data=SPAM, code=1)
    assert "no such file" in deliver("forget", tmp_path / "none.deciban", "--as", "spam", data=SPAM, code=1)[1]
    assert "cannot be locked" in deliver("learn", tmp_path / "no" / "m.deciban", "--as", "a", data=SPAM, code=1)[1]
    assert os.listdir(tmp_path) == ["new.deciban"]


def test_a_file_of_many_mails(tmp_path):
    """More of them than a single mail may be long, 4 MB."""
    mails = [written("spam", i)[:-1] + b" " + b"x" * 100 + b"\n" for i in range(30_000)]
    box = tmp_path / "all.mbox"
    box.write_bytes(b"\n".join(b"From me Mon Jan  1 00:00:00 2024\n" + each for each in mails))
    assert box.stat().st_size > 5 << 20
    deliver("learn", tmp_path / "m.deciban", "--as", "spam", "--mbox", box)
    model = db.load(tmp_path / "m.deciban")
    assert model.class_count_.tolist() == [30_000]
    deliver("learn", tmp_path / "in.deciban", "--as", "spam", "--mbox", data=box.read_bytes())
    assert (tmp_path / "in.deciban").read_bytes() == (tmp_path / "m.deciban").read_bytes()


def test_what_is_not_mail_is_not_learned(model, tmp_path):
    old = model.read_bytes()
    picture, letter = tmp_path / "picture.png", tmp_path / "letter.eml"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    letter.write_bytes(SPAM)
    for words in (["learn"], ["forget"]):
        _, said = deliver(*words, model, "--as", "spam", data=b"", code=1)
        assert said == "deciban: standard input: it is empty\n"
        _, said = deliver(*words, model, "--as", "spam", picture, code=1)
        assert said.startswith(f"deciban: {picture}: it does not begin with a header")
        assert f"{tmp_path}/no.eml: No such" in deliver(*words, model, "--as", "a", tmp_path / "no.eml", code=1)[1]
    assert "there is no mail to learn" in deliver("learn", model, "--as", "spam", picture, picture, code=1)[1]
    assert files_in(model.parent) == {"m.deciban": old}
    _, said = deliver("learn", model, "--as", "spam", letter, picture, code=1)  # what is mail is learned
    assert said.startswith(f"deciban: {picture}: it does not begin with a header")
    assert db.load(model).class_count_.tolist() == [20, 21]
    deliver("learn", tmp_path / "new.deciban", "--as", "spam", data=b"no mail", code=1)
    assert not (tmp_path / "new.deciban").exists()


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Models that read no mail, and what is said of them."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "n.csv").write_text("x,z,y\n1,3,a\n2,1,b\n3,2,a\n5,2,b\n")
    (folder / "c.csv").write_text("c,y\nu,a\nv,b\nu,a\nw,b\n")
    run("fit", folder / "n.csv", "--label", "y", "--model", "lda", "-o", folder / "lda.deciban")
    run("fit", folder / "n.csv", "--label", "y", "--model", "logistic", "--l2", "1", "-o", folder / "logistic.deciban")
    run("fit", folder / "n.csv", "--label", "y", *NAIVE_BAYES, "-o", folder / "numbers.deciban")
    run("fit", folder / "c.csv", "--label", "y", "-o", folder / "words.deciban")
    (folder / "damaged.deciban").write_bytes((folder / "lda.deciban").read_bytes()[:-5])
    return folder


OTHERS = {
    "lda": "a GaussianDiscriminant reads no mail: fit evidence or naive-bayes",
    "logistic": "a LogisticRegression reads no mail: fit evidence or naive-bayes",
    "numbers": "the model reads a column 'x', which mails do not have: fit one on mail",
    "words": "the model reads the column 'c' as Categorical: fit it on --text",
    "damaged": "is damaged",
    "none": "there is no such file",
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_that_read_no_mail(name, others):
    path, before = others / f"{name}.deciban", files_in(others)
    for args in (["filter", path], ["filter", path, "--mbox"]):
        out, said = deliver(*args, data=SPAM, code=3)
        assert out == SPAM
        assert OTHERS[name] in said
        assert said.count("\n") == 1
        assert deliver(*args, "--json", data=SPAM, code=3)[0] == b""
    words = [] if name == "none" else ["learn"]  # which makes one
    for each in [*words, "forget"]:
        assert OTHERS[name] in deliver(each, path, "--as", "spam", data=SPAM, code=1)[1]
    assert deliver("filter", path, others / "n.csv", code=3)[0] == b""
    assert files_in(others) == before


# What passes through -------------------------------------------------------------------------------------------------

HEADER = rb"X-Deciban: [^\r\n]+(?:\r?\n\t[^\r\n]+)*\r?\n"


def without(passed, start=0):
    """A mail without the header that it was given."""
    result = re.compile(HEADER).match(passed, start)
    assert result, passed[:200]
    return passed[:start] + passed[result.end() :]


PASSED = {
    "LF": SPAM,
    "CRLF": SPAM.replace(b"\n", b"\r\n"),
    "no final newline": SPAM.rstrip(),
    "headers only": b"Subject: claim your prize\n",
    "headers only, no newline": b"Subject: claim your prize",
    "an empty body": b"Subject: claim your prize\n\n",
    "NULs": SPAM.replace(b" ", b"\0"),
    "8 bits": SPAM + bytes(range(256)),
    "other lines": SPAM + b"a\rb\r\nc\n\r\n\x0b\x0c\x1c\x85\xe2\x80\xa8",
    "body of CRLF": SPAM + b"a\r\nb\r\n" * 10,
    "words in a body": SPAM + b"X-Deciban: ham\n\nX-Deciban: ham\n",
    "name that is longer": b"X-Decibans: ham\n" + SPAM,
    "name within a header": b"Subject: claim X-Deciban: ham\n X-Deciban: prize\n\n",
    "emoji": SPAM + "👍🏽 👨‍👩‍👧 prize".encode(),
}


@pytest.mark.parametrize("kind", ["nb", "ev"])
def test_mail_passes_through_byte_for_byte(kind, office):
    for name, data in PASSED.items():
        out, said = deliver("filter", office / f"{kind}.deciban", "--exit-zero", data=data)
        assert said == "", name
        assert without(out) == data, name
        assert re.search(rb"\r?\n", out)[0] == (b"\r\n" if name == "CRLF" else b"\n"), name
        assert all(len(each) <= 78 for each in out[: len(out) - len(data)].split(b"\n")), name


def test_the_line_of_an_mbox_stays_first(office):
    envelope = b"From win@spam.example Mon Jan  1 00:00:00 2024\n"
    out, _ = deliver("filter", office / "nb.deciban", data=envelope + SPAM)
    assert without(out, len(envelope)) == envelope + SPAM


def test_empty_lines_before_a_mail_do_not_make_its_headers_text(office):
    for before in (b"\n", b"\n\n\n", b"\r\n\r\n", b"\xef\xbb\xbf\n"):
        out, _ = deliver("filter", office / "nb.deciban", data=before + SPAM)
        assert without(out, len(before)) == before + SPAM
    out, _ = deliver("filter", office / "nb.deciban", data=b"\xef\xbb\xbf" + SPAM)
    assert without(out) == b"\xef\xbb\xbf" + SPAM


SPOOFS = {
    "plain": b"X-Deciban: ham p=1.0000\n",
    "case": b"x-DECIBAN: ham\n",
    "space before the colon": b"X-Deciban : ham\n",
    "no space": b"X-Deciban:ham\n",
    "folded": b"X-Deciban:\n ham\n\tp=1.0000\n  and more\n",
    "folded over nothing": b"X-Deciban: a\n \n\t\n ham\n",
    "twice": b"X-Deciban: ham\nX-Deciban: ham\n",
    "CR": b"X-Note: x\rX-Deciban: ham\n",
}


@pytest.mark.parametrize("line", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", SPOOFS)
def test_headers_that_pretend_to_be_ours_are_removed(name, line, office):
    def mails(spoof):
        spam = SPAM.replace(b"\n", line)
        yield spoof + spam
        yield spam.replace(line * 2, line + spoof + line)  # the last header
        yield b"From me Mon Jan  1 00:00:00 2024" + line + spoof + spam
        yield spoof + b"Subject: prize"
        yield b"Subject: prize" + line + spoof

    start = b"From me Mon Jan  1 00:00:00 2024" + line
    spoof = SPOOFS[name].replace(b"\n", line)
    left = b"X-Note: x\r" if name == "CR" else b""
    for data, kept in zip(mails(spoof), mails(left), strict=True):
        if data.removeprefix(start).startswith(b"X-Deciban :"):  # which begins no mail
            continue
        out, _ = deliver("filter", office / "nb.deciban", "--exit-zero", data=data)
        result = email.message_from_bytes(out)
        assert len(result.get_all("X-Deciban")) == 1
        assert result["X-Deciban"].split()[0] in ("spam", "unsure")
        assert without(out, len(start) if data.startswith(b"From me") else 0) == kept
        again, _ = deliver("filter", office / "nb.deciban", "--exit-zero", data=out)
        assert again == out  # nothing grows


LINES = st.sampled_from(
    ["Subject: a", "X-Deciban: no", "x-deciban:no", " more", "\tX-Deciban: in a fold", "X-Other: x", "To: b", " "]
)


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]), st.binary(max_size=30), st.booleans())
def test_whatever_the_headers_are_there_is_one_of_ours(lines, line_break, body, envelope):
    envelope = envelope and line_break != "\r"  # there is no mbox of such lines
    head = line_break.join([*(["From me Mon Jan  1 00:00:00 2024"] if envelope else []), "From: a", *lines])
    data = (head + 2 * line_break).encode() + body
    out = with_header(data, "spam p=0.9 (a +1.0; b -2.0)")
    parsed = email.message_from_bytes(out, policy=email.policy.compat32)
    assert parsed.get_all("X-Deciban") == ["spam p=0.9 (a +1.0; b -2.0)"]
    before = email.message_from_bytes(data, policy=email.policy.compat32)
    kept = [(name, value) for name, value in before.items() if name.lower() != "x-deciban"]
    assert [pair for pair in parsed.items() if pair[0] != "X-Deciban"] == kept
    if line_break != "\r":  # the package reads a lone CR as it does a line's end, others do not: see SPOOFED
        assert out.endswith(line_break.encode() + body)


# What is said --------------------------------------------------------------------------------------------------------

NAMES = {
    "accents": "Werbemüll",
    "emoji": "👍🏽",
    "right to left": "דואר זבל",
    "an injected header": "spam\r\nBcc: all@example.org\n\nnew body",
    "controls": "a\0b\x1b[31m\x7f\x85\u2028c",
    "long": "x" * 500,
    "long beyond ASCII": "щ" * 100,
    "surrogates": "\udcff\ud800",
    "words": "not at all wanted " * 20,
}


@pytest.mark.parametrize("name", NAMES)
def test_whatever_classes_and_terms_are_called_the_header_is_sound(name, tmp_path):
    path, label = tmp_path / "m.deciban", NAMES[name]
    said = f"{label} für {'ж' * 60} 日本語 👍🏽"
    new = b"Subject: offer\nContent-Type: text/plain; charset=utf-8\n\n" + said.encode("utf-8", "replace")
    deliver("learn", path, "--as", label, data=new)
    deliver("learn", path, "--as", "ham", data=HAM)
    for data in (new, new.replace(b"\n", b"\r\n")):
        out, err = deliver("filter", path, "--pos-label", label, data=data)
        assert err == ""
        line = b"\r\n" if b"\r" in data[:20] else b"\n"
        added = out[: len(out) - len(data)]
        assert out[len(added) :] == data
        lines = added.split(line)
        assert lines.pop() == b""
        assert lines[0].startswith(b"X-Deciban: ")
        assert all(each.startswith(b"\t") and each.strip() for each in lines[1:])
        assert all(re.fullmatch(rb"\t?[ -~]+", each) and len(each) <= 78 for each in lines)
    (tmp_path / "new.eml").write_bytes(new)
    printed, _ = deliver("filter", path, tmp_path / "new.eml", "--pos-label", label)
    assert printed.count(b"\n") == 1
    assert printed.decode().split("\t")[0] == " ".join(label.encode("utf-8", "replace").decode().split())
    result = json.loads(deliver("filter", path, tmp_path / "new.eml", "--pos-label", label, "--json")[0])
    assert result["class"] == label


def test_the_header_says_what_the_verdict_is(office):
    out, _ = deliver("filter", office / "nb.deciban", data=SPAM)
    verdict = Filter.load(office / "nb.deciban").explain([parse(SPAM).texts])[0]
    result = " ".join(email.message_from_bytes(out)["X-Deciban"].split())
    header = re.fullmatch(r"(\S+) p=(\S+) decibans=(\S+) \((.*)\)", result)
    assert header[1] == verdict.label == "spam"
    assert float(header[2]) == pytest.approx(verdict.probability, abs=1e-4)
    assert float(header[3]) == pytest.approx(verdict.decibans, abs=0.1)
    terms = [each.rpartition(" ") for each in header[4].split("; ")]
    assert [term for term, _, _ in terms] == [term for term, _ in verdict.terms]
    assert [float(value) for _, _, value in terms] == pytest.approx([v for _, v in verdict.terms], abs=0.1)


def p_of(model, data):
    return Filter.load(model).classify([parse(data).texts])[0].probability


@pytest.mark.parametrize("kind", ["nb", "ev"])
def test_exit_codes(kind, office, tmp_path):
    path = office / f"{kind}.deciban"
    p = p_of(path, UNKNOWN)
    assert p < 0.9
    for data, args, code in (
        (SPAM, [], 0),
        (HAM, [], 1),
        (UNKNOWN, [], 2),
        (b"no mail", [], 3),
        (b"", [], 3),
        (HAM, ["--pos-label", "ham"], 0),
        (SPAM, ["--pos-label=ham"], 1),
        (SPAM, ["--pos-label", "nobody"], 3),
        (UNKNOWN, ["--sure", p - 1e-9], 1),
        (UNKNOWN, ["--sure", p + 1e-9], 2),
        (UNKNOWN, ["--sure", "0"], 1),
        (HAM, ["--exit-zero"], 0),
        (UNKNOWN, ["--exit-zero"], 0),
        (b"no mail", ["--exit-zero"], 3),
    ):
        out, said = deliver("filter", path, *args, data=data, code=code)
        assert (out == data) == (code == 3)  # what cannot be judged passes as it is
        assert (said != "") == (code == 3)
        if data:
            (tmp_path / "one.eml").write_bytes(data)
            deliver("filter", path, tmp_path / "one.eml", *args, code=code)
            lines, _ = deliver("filter", path, *args, "--json", data=data, code=code)
            assert lines.count(b"\n") == (code != 3)
    out, _ = deliver("filter", path, data=UNKNOWN, code=2)
    assert out.startswith(b"X-Deciban: unsure (ham) p=0.")
    with pytest.raises(SystemExit, match="3"):
        deliver("filter", path, "--sure", "2")


@pytest.mark.parametrize("args", [["--sure", "2"], ["--sure", "nan"], ["--sure", "x"], ["--nothing"], ["--as", "a"]])
def test_what_cannot_be_asked(args, model, capsys):
    with pytest.raises(SystemExit, match="3"):
        mail.run("filter", [str(model), *args])
    said = capsys.readouterr().err
    assert said.startswith("deciban: ")
    assert said.count("\n") == 1
    assert "_share" not in said
    for command_ in ("learn", "forget"):
        with pytest.raises(SystemExit, match="2"):
            mail.run(command_, [str(model)])
        assert "--as" in capsys.readouterr().err


def test_files_json_and_bulk(office, tmp_path):
    path = office / "ev.deciban"
    names = [tmp_path / f"{i}.eml" for i in range(300)]  # more than are judged at a time
    for i, name in enumerate(names):
        name.write_bytes(written(["ham", "spam"][i % 2], i))
    out, _ = deliver("filter", path, *names)
    expected = Filter.load(path).explain([parse(name.read_bytes()).texts for name in names])
    lines = [line.split("\t") for line in out.decode().splitlines()]
    assert [line[3] for line in lines] == [str(name) for name in names]
    assert [float(line[1]) for line in lines] == pytest.approx([v.probability for v in expected], abs=1e-4)
    assert [float(line[2]) for line in lines] == pytest.approx([v.decibans for v in expected], abs=0.1)
    assert [line[0] for line in lines] == [v.label if v.probability >= 0.9 else f"unsure ({v.label})" for v in expected]
    listed = "".join(f"{name}\n\n" for name in names).encode()
    assert deliver("filter", path, "--bulk", data=listed)[0] == out
    assert deliver("filter", path, "-b", data=listed.rstrip())[0] == out
    result = [json.loads(line) for line in deliver("filter", path, "-b", "--json", data=listed)[0].splitlines()]
    for each, name, verdict in zip(result, names, expected, strict=True):
        assert Verdict(each["class"], each["probability"], each["decibans"], tuple(each["terms"].items())) == verdict
        assert (each["file"], each["sure"]) == (str(name), verdict.probability >= 0.9)
        assert (each["replaced"], each["problems"]) == (0, [])
    assert deliver("filter", path, "-b", data=b"") == (b"", "")


WITHOUT_NUMPY = """
import sys
from deciban.cli import main
try:
    main()
finally:
    print("numpy" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("kind", ["nb", "ev"])
def test_many_mails_leave_tables_for_the_next_many(kind, office, model, tmp_path, monkeypatch):
    """With which these are classified without numpy; and a model that has changed is read again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "other.deciban"
    path.write_bytes((office / f"{kind}.deciban").read_bytes())
    for i in range(MANY):
        (tmp_path / f"{i}.eml").write_bytes(written(["ham", "spam"][i % 2], i))
    listed = "".join(f"{tmp_path}/{i}.eml\n" for i in range(MANY)).encode()

    def filtered(*options, data=listed):
        line = ["mail", "filter", path, "--bulk", *options]
        with process(*line, program=WITHOUT_NUMPY, stdout=subprocess.PIPE) as running:
            out, err = running.communicate(data, timeout=120)
        return out, err == b"True\n"

    few, with_numpy = filtered(data=listed[: listed.index(b"\n")])
    assert with_numpy
    assert not (tmp_path / "cache").exists()
    all_, with_numpy = filtered()
    assert with_numpy
    assert filtered() == (all_, False)
    assert filtered(data=listed[: listed.index(b"\n")]) == (few, False)
    assert filtered("--pos-label", "ham") == (all_, False)
    assert filtered("--json")[1]
    out, err = deliver("filter", path, "-b", "--pos-label", "news", data=listed, code=3)
    assert (out, "only the classes ham, spam" in err) == (b"", True)
    deliver("learn", path, "--as", "spam", data=HAM)
    changed, with_numpy = filtered()
    assert with_numpy
    assert changed != all_
    assert filtered() == (changed, False)
    path.write_bytes(path.read_bytes()[:-1])
    assert "damaged" in deliver("filter", path, "-b", data=listed, code=3)[1]


def test_json_has_no_infinity(office, tmp_path):
    run("fit", office / "mail", "--label-from-folder", *NAIVE_BAYES, "--smoothing", "0", "-o", tmp_path / "m.deciban")
    result = json.loads(
        deliver("filter", tmp_path / "m.deciban", "--json", data=written("spam", 1))[0],
        parse_constant=lambda constant: pytest.fail(constant),
    )
    assert (result["class"], result["probability"]) == ("spam", 1.0)
    assert None in result["terms"].values()
    assert "decibans" not in result


def test_files_that_cannot_be_read_do_not_stop_the_rest(office, tmp_path):
    good, odd = tmp_path / "good.eml", os.fsencode(tmp_path) + b"/\xff.eml"
    good.write_bytes(SPAM)
    with open(odd, "wb") as file:
        file.write(HAM)
    (tmp_path / "picture").write_bytes(b"\x89PNG")
    names = [b"none.eml", os.fsencode(tmp_path), os.fsencode(tmp_path / "picture"), b"a\0b", odd, os.fsencode(good)]
    out, said = deliver("filter", office / "nb.deciban", "-b", data=b"\n".join(names), code=3)
    assert [line.split(b"\t")[-1] for line in out.splitlines()] == [odd, os.fsencode(good)]
    assert said.count("deciban: ") == 4
    for words in ("none.eml: No such file", "Is a directory", "does not begin with a header", "null byte"):
        assert words in said
    deliver("filter", office / "nb.deciban", os.fsdecode(odd), code=1)
    result = json.loads(deliver("filter", office / "nb.deciban", os.fsdecode(odd), "--json", code=1)[0])
    assert os.fsencode(result["file"]) == odd


@pytest.mark.parametrize("line", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_an_mbox_passes_through(line, end, office, tmp_path):
    envelope = b"From me Mon Jan  1 00:00:00 2024\n"
    body = SPAM + b"\nFrom here on it is text\nand on\n>From me\n\n\n"
    mails = [envelope + SPAM, envelope + body, envelope + b"X-Deciban: ham\n" + HAM.rstrip() + b"\n"]
    data = (b"\n".join(mails) + end).replace(b"\n", line)
    out, said = deliver("filter", office / "nb.deciban", "--mbox", data=data)
    assert said == ""
    start = line + envelope.replace(b"\n", line) + b"X-Deciban: "
    labels = [each.split()[0] for each in (line + out).split(start)[1:]]
    assert labels == [b"spam", b"spam", b"ham"]
    assert re.sub(HEADER, b"", out) == data.replace(b"X-Deciban: ham" + line, b"")
    lines, _ = deliver("filter", office / "nb.deciban", "--mbox", "--json", data=data)
    assert [json.loads(each)["class"] for each in lines.splitlines()] == ["spam", "spam", "ham"]
    (tmp_path / "a.mbox").write_bytes(data)
    lines, _ = deliver("filter", office / "nb.deciban", "--mbox", tmp_path / "a.mbox")
    result = [(each.split("\t")[0], each.split("\t")[-1]) for each in lines.decode().splitlines()]
    assert result == [(label, f"{tmp_path}/a.mbox, mail {i}") for i, label in enumerate(["spam", "spam", "ham"], 1)]


def test_an_mbox_with_more_than_mail_in_it(office):
    data = b"no mail\n\nFrom me Mon Jan  1 00:00:00 2024\n" + SPAM
    out, said = deliver("filter", office / "nb.deciban", "--mbox", data=data, code=3)
    assert re.sub(HEADER, b"", out) == data
    assert out.count(b"X-Deciban") == 1
    assert said == "deciban: mail 1: it does not begin with a header, such as 'From: …'\n"
    out, _ = deliver("filter", office / "nb.deciban", "--mbox", "--json", data=data, code=3)
    assert json.loads(out)["class"] == "spam"
    out, said = deliver("filter", office / "nb.deciban", "--mbox", "--pos-label", "nobody", data=data, code=3)
    assert (out, said) == (data, "deciban: --pos-label nobody: the model has only the classes ham, spam\n")


def test_a_model_of_one_class_passes_mail_on(tmp_path):
    deliver("learn", tmp_path / "m.deciban", "--as", "spam", data=SPAM)
    for args in ([], ["--mbox"]):
        out, said = deliver("filter", tmp_path / "m.deciban", *args, data=SPAM, code=3)
        assert out == SPAM
        assert (
            said == "deciban: the model has learned only 'spam' so far: `deciban mail learn` teaches it more classes\n"
        )


# Processes -----------------------------------------------------------------------------------------------------------


def test_whoever_reads_may_go_away(model):
    running = process("mail", "filter", model, stdout=subprocess.PIPE)
    running.stdout.close()
    running.stdout = None
    assert done(running, SPAM + b"x" * 10_000_000, code=3)[1] == b""


def test_streams_that_are_closed_or_full(model):
    shell = f"{sys.executable} -c '{MAIN}' mail filter {model}"
    options = {"shell": True, "input": SPAM, "capture_output": True, "check": False}
    for redirection, code, said in (
        ("> /dev/full", 3, b"deciban: No space left on device\n"),
        (">&-", 3, b"deciban: standard output is closed\n"),
        ("<&-", 3, b"deciban: it is empty\n"),
    ):
        result = subprocess.run(f"{shell} {redirection}", **options)
        assert (result.returncode, result.stdout, result.stderr) == (code, b"", said)
    result = subprocess.run(f"{shell}.no 2>&-", **options)
    assert (result.returncode, result.stdout, result.stderr) == (3, SPAM, b"")  # what is said is no part of a mail


@pytest.mark.parametrize(
    ("patch", "passed"),
    [
        ("class stdin: buffer = type('', (), {'read': slowly})\nsys.stdin = stdin", b""),
        ("from deciban.mail.filter import Filter\nFilter.explain = slowly", SPAM),
    ],
    ids=["reading", "judging"],
)
def test_an_interruption_loses_no_mail(patch, passed, model):
    running = process("mail", "filter", model, program=f"{SLOW}{patch}\n{MAIN}", stdout=subprocess.PIPE)
    running.stdin.write(SPAM)
    running.stdin.close()
    running.stdin = None
    assert running.stderr.readline() == b"now\n"
    running.send_signal(signal.SIGINT)
    assert done(running, code=130) == (passed, b"deciban: interrupted\n")


HEAVY = ("scipy", "pyarrow", "sklearn", "typer", "rich", "pandas", "email")
LIGHT = """
import sys
from deciban.cli import main
for line in sys.argv[1:]:
    sys.argv[1:] = line.split("|")
    try:
        main()
    except SystemExit as exit:
        assert exit.code == 0, line
found = sorted({name.partition(".")[0] for name in sys.modules})
print([name for name in found if name in %r])
"""


def test_nothing_heavy_is_imported(office, model, tmp_path):
    (tmp_path / "spam.eml").write_bytes(SPAM)
    (tmp_path / "many.mbox").write_bytes(b"From me Mon Jan  1 00:00:00 2024\n" + SPAM)
    lines = [["mail", "filter", office / f"{kind}.deciban", tmp_path / "spam.eml"] for kind in ("nb", "ev")]
    lines += [
        ["mail", "filter", model, "--json", tmp_path / "spam.eml"],
        ["mail", "filter", model, "--mbox", tmp_path / "many.mbox"],
    ]
    lines += [
        ["mail", "learn", model, "--as", "spam", tmp_path / "spam.eml"],
        ["mail", "forget", model, "--as=spam", "-"],
    ]
    lines += [["mail", "learn", tmp_path / "new.deciban", "--as", "spam", tmp_path / "spam.eml"]]
    words = ["|".join(map(str, line)) for line in lines]
    out, _ = done(process(*words, program=LIGHT % (HEAVY,), stdout=subprocess.PIPE), SPAM)
    assert out.splitlines()[-1] == b"[]"


def test_the_other_commands_know_these(model):
    """For those who call `app` themselves."""
    assert re.search(r"filter .*Classify mail", run("mail", "--help").stdout)
    passed = run("mail", "filter", model, input=SPAM).stdout
    assert passed.startswith("X-Deciban: spam")
    run("mail", "learn", model, "--as", "spam", input=SPAM)
    assert db.load(model).class_count_.tolist() == [20, 21]
    for words in ("filter", "learn", "forget"):
        assert command("mail", words, "--help").stdout.startswith(f"usage: deciban mail {words}")


# Hostile mail --------------------------------------------------------------------------------------------------------

LIMITED = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
{MAIN}
"""


def nested(depth):
    lines = [b"Subject: prize"]
    for i in range(depth):
        lines += [b"Content-Type: multipart/mixed; boundary=b%d" % i, b"", b"--b%d" % i]
    return b"\n".join([*lines, b"", b"free pills"])


def bomb():
    """Zeros, a gigabyte of them: what is packed once is repeated."""
    packer = zlib.compressobj(9)
    first, again = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    packed = first + 1023 * again
    head = (
        b'Subject: prize\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: application/zip; name="a.zip"'
    )
    return head + b"\nContent-Transfer-Encoding: base64\n\n" + encodebytes(packed) + b"--x--\n"


RANDOM = bytes(zlib.crc32(i.to_bytes(4, "little")) & 255 for i in range(200_000))
HOSTILE = {
    "zip bomb": bomb,
    "a line of 100 MB": lambda: b"Subject: prize\n\n" + b"free " * (20 << 20),
    "a header of 100 MB": lambda: b"Subject: " + b"free " * (20 << 20),
    "a spoof of 20 MB": lambda: b"Subject: prize\nX-Deciban: " + b" ham\n" * (4 << 20) + b"\n",
    "HTML of 20 MB": lambda: b"Subject: prize\nContent-Type: text/html\n\n" + b"<a " * (7 << 20),
    "a million headers": lambda: b"".join(b"X-%d: prize\n" % i for i in range(1_000_000)) + b"\nfree",
    "a million spoofs": lambda: b"Subject: prize\n" + b"X-Deciban: ham\n" * 1_000_000 + b"\nfree",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_in_little_memory(name, model, tmp_path):
    data = HOSTILE[name]()
    (tmp_path / "in.eml").write_bytes(data)
    with (tmp_path / "in.eml").open("rb") as given, (tmp_path / "out.eml").open("wb") as out:
        running = process("mail", "filter", model, program=LIMITED, stdin=given, stdout=out)
        _, said = done(running, code=running.wait(timeout=60))
    assert running.returncode in (0, 1, 2)
    assert said == b""
    expected = b"Subject: prize\n" + data[data.index(b"\n\n") + 1 :] if "spoof" in name else data
    assert without((tmp_path / "out.eml").read_bytes()) == expected


def test_odd_mail_passes_through(office):
    for data in (
        nested(10_000),
        b"Subject: prize\n" + b"Content-Type: message/rfc822\n\n" * 10_000,
        b"Subject: prize\n\n" + RANDOM,
        b"Subject: prize\n\n" + bytes(10 << 20),
        b"Subject: prize\n\n" + "👍🏽👨‍👩‍👧".encode() * 100_000,
        "Subject: פרס\n\n".encode() + "שלום \u202eעולם مرحبا ".encode() * 100_000,
    ):
        out, said = deliver("filter", office / "nb.deciban", "--exit-zero", data=data)
        assert (without(out) == data, said) == (True, "")
    out, said = deliver("filter", office / "nb.deciban", data=RANDOM, code=3)
    assert out == RANDOM
    assert said


def test_a_model_that_is_changed_all_the_time_is_always_whole(model):
    """Who filters meanwhile sees the model before or after, and waits for nobody."""
    programs = f"""
from deciban.mail.filter import Filter
from deciban.persist.storage import locked
for _ in range(25):
    with locked({str(model)!r}):
        Filter.load({str(model)!r}).learn([], "ham").save({str(model)!r})
"""
    running = process(program=programs)
    times = 0
    while running.poll() is None:
        out, _ = deliver("filter", model, data=SPAM)
        times += out.startswith(b"X-Deciban: spam")
        time.sleep(0.001)
    done(running)
    assert times > 3

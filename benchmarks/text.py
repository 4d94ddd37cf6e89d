"""Documents beside scikit-learn's vectorizer and naive Bayes, and fastText; mail beside bogofilter; SMS."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import deciban
from benchmarks import sizes
from benchmarks.data import Floats, Ints
from benchmarks.harness import Bench, gap, job, timed
from benchmarks.sizes import HEAD, Size
from deciban.families import Text

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
EPOCHS = (1, 2, 3, 5, 10, 25)  # of fastText; its default is 5
STARTS = 15  # runs of a short process
CACHE = os.path.join(tempfile.gettempdir(), f"deciban-bench-cache-{os.getpid()}")  # of score tables
TOLERATED = 0.002  # difference of accuracies


def documents(rng: np.random.Generator, size: Size) -> tuple[list[str], Ints]:
    """Words of 2 to 10 letters as frequent as 1/(rank + 3) (Zipf, Mandelbrot); a tenth are informative."""
    words = np.array(["".join(rng.choice(LETTERS, n)) for n in rng.integers(2, 11, size.columns)], dtype=object)
    y = rng.integers(0, size.classes, size.rows)
    weight = 1.0 / (np.arange(size.columns) + 3.0)
    tilt = np.where(rng.random(size.columns) < 0.1, rng.normal(0.0, 0.5, size.columns), 0.0)
    texts = np.empty(size.rows, dtype=object)
    for c in range(size.classes):
        rows = np.flatnonzero(y == c)
        p = weight * np.exp(tilt if c else -tilt)
        drawn = rng.choice(size.columns, (len(rows), sizes.WORDS_PER_DOCUMENT), p=p / p.sum())
        texts[rows] = [" ".join(row) for row in words[drawn]]
    return texts.tolist(), y


@job("text")
def text(bench: Bench) -> None:
    """The peer has a list, which it reads faster than an Arrow column. Words have at least two letters."""
    size = bench.size(sizes.DOCUMENTS)
    texts, y = documents(bench.rng(), size)
    table = pa.table({"text": pa.array(texts)})
    against = "CountVectorizer + MultinomialNB"

    def fitted() -> Any:
        return make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, y)

    def agreement(ours: Any, peer: Any) -> float:
        head = table.slice(0, HEAD) if ours.n_features_in_ and hasattr(ours, "feature_names_in_") else texts[:HEAD]
        return gap(ours.predict_proba(head), peer.predict_proba(texts[:HEAD]))

    count = f"{sizes.short(size.rows)} documents"
    ours, peer = bench.compare(
        f"fit from an Arrow column, {count}",
        against,
        ours=lambda: deciban.NaiveBayes(families=Text()).fit(table, y),
        peer=fitted,
        target=30,
        agreement=agreement,
    )
    bench.compare(
        f"fit from a list, {count}",
        against,
        ours=lambda: deciban.NaiveBayes().fit(texts, y),
        peer=fitted,
        target=8,
        agreement=agreement,
    )
    bench.compare(
        f"predict_proba, {count}",
        against,
        ours=lambda: ours.predict_proba(table),
        peer=lambda: peer.predict_proba(texts),
        target=20,
        agreement=gap,
    )


# fastText ------------------------------------------------------------------------------------------------------------


@job("text-file")
def text_file(bench: Bench) -> None:
    """Both fit from disk; fastText with the fewest epochs that reach our accuracy on held-out rows."""
    program = shutil.which("fasttext")
    if program is None:
        print("  skipped: there is no fasttext (Debian: apt-get install fasttext)")
        return
    size = bench.size(sizes.DOCUMENTS)
    texts, y = documents(bench.rng(), size)
    n_train = int(0.9 * len(texts))
    with _folder() as folder:
        rows, train, test = folder / "rows.tsv", folder / "train.txt", folder / "test.txt"
        labelled = [f"__label__{c} {t}\n" for c, t in zip(y.tolist(), texts, strict=True)]
        train.write_text("".join(labelled[:n_train]))
        test.write_text("".join(labelled[n_train:]))
        rows.write_text(
            "label\ttext\n" + "".join(f"c{c}\t{t}\n" for c, t in zip(y[:n_train].tolist(), texts, strict=False))
        )

        def ours() -> Any:
            return deciban.NaiveBayes(families={"text": Text()}).fit(deciban.scan(rows), "label")

        held_out = pa.table({"text": pa.array(texts[n_train:])})
        labels = np.array([f"c{c}" for c in y[n_train:].tolist()])

        def our_accuracy(model: Any) -> float:
            return float((model.predict(held_out) == labels).mean())

        def peer_accuracy(epochs: int) -> float:
            _train(program, train, folder, epochs)
            printed = _run([program, "test", folder / "peer.bin", test])
            return float(printed.partition("P@1")[2].split()[0])

        target = our_accuracy(ours()) - TOLERATED
        epochs = next((n for n in EPOCHS if peer_accuracy(n) >= target), EPOCHS[-1])
        bench.compare(
            f"fit from text on disk, {sizes.short(n_train)} documents",
            "fastText supervised",
            ours=ours,
            peer=lambda: _train(program, train, folder, epochs),
            target=5,
            agreement=lambda model, _: max(0.0, peer_accuracy(epochs) - our_accuracy(model)),
            within=TOLERATED,
            note=f"{epochs} epochs, accuracy {peer_accuracy(epochs):.3f}; ours {our_accuracy(ours()):.3f}",
        )


def _train(program: str, lines: Path, folder: Path, epochs: int) -> None:
    threads = os.cpu_count() or 1
    _run([program, "supervised", "-input", lines, "-output", folder / "peer", "-epoch", epochs, "-thread", threads])


# Mail ----------------------------------------------------------------------------------------------------------------


@job("mail")
def mail(bench: Bench) -> None:
    """Processes as a mail server starts them, with a model of the mails that are classified."""
    rng = bench.rng()
    n = sizes.MAILS // 10 if bench.quick else sizes.MAILS
    with _folder() as folder:
        names = _mails(rng, folder / "mail", n)
        for kind in ("naive-bayes", "evidence"):
            _run(_deciban("fit", folder / "mail", "--label-from-folder", "--model", kind, "-o", folder / kind))
        _filter_bulk(bench, folder, names)
        one = Path(names[0]).read_bytes()
        numpy = _fastest([sys.executable, "-c", "import numpy"], b"")
        for kind in ("naive-bayes", "evidence"):
            ours = _fastest(_deciban("mail", "filter", folder / kind, "--exit-zero"), one)
            title = f"one mail through filter, {kind}, beside python -c 'import numpy'"
            bench.limit(title, 100 * ours / numpy, 200, "%")


def _filter_bulk(bench: Bench, folder: Path, names: Sequence[str]) -> None:
    program = shutil.which("bogofilter")
    if program is None:
        print("  skipped: there is no bogofilter (Debian: apt-get install bogofilter)")
        return
    home = folder / "bogofilter"
    home.mkdir()
    listed = "\n".join(names).encode()
    for label, option in (("spam", "-s"), ("ham", "-n")):
        of_class = "\n".join(name for name in names if f"/{label}/" in name).encode()
        _run([program, "-d", home, option, "-b"], of_class)
    peer = [program, "-d", home, "-b", "-T"]
    for kind in ("naive-bayes", "evidence"):
        ours = _deciban("mail", "filter", folder / kind, "--bulk")
        first = _fastest(ours, listed, 1)  # leaves score tables in the cache, for all later runs
        fastest = _fastest(peer, listed)
        title = f"the first {len(names):,} mails of a model, {kind}, beside bogofilter -b"
        bench.limit(title, 100 * first / fastest, 400, "%")
        bench.compare(
            f"{len(names):,} mails through filter, {kind}",
            "bogofilter -b",
            ours=partial(_run, ours, listed),
            peer=partial(_run, peer, listed),
            target=1,
            agreement=lambda *_: 0.0,
            note="processes included; after the first run, which keeps score tables",
        )
        ratio = _seconds_per_mail(ours, names) / _seconds_per_mail(peer, names)
        bench.limit(f"each further mail through filter, {kind}, beside bogofilter -b", 100 * ratio, 200, "%")


def _seconds_per_mail(command: Sequence[object], names: Sequence[str]) -> float:
    """Seconds per mail, without the start of the process."""
    one, all_ = (_fastest(command, "\n".join(some).encode(), 7) for some in (names[:1], names))
    return (all_ - one) / (len(names) - 1)


def _mails(rng: np.random.Generator, folder: Path, n: int) -> list[str]:
    """Mails of a few kB, a quarter each: plain, plain and HTML, HTML in base64, with an attachment."""
    texts, y = documents(rng, Size(n, 20_000, 2))
    names = []
    for i, (body, c) in enumerate(zip(texts, y.tolist(), strict=True)):
        label = "spam" if c else "ham"
        lines = "\n".join(body[k : k + 70] for k in range(0, len(body), 70))
        message = EmailMessage()
        message["From"] = f"u{i % 97} <u{i % 97}@{label}.example.org>"
        message["To"], message["Subject"] = "me@example.net", " ".join(body.split()[:6])
        message["Received"] = f"from mx{i % 7}.example.org by mail.example.net; Mon, 1 Jan 2024 10:00:00 +0000"
        html = f"<html><body><p>{lines}</p><a href='http://{label}.example.com/{i}'>here</a></body></html>"
        if i % 4 == 2:
            message.set_content(html, subtype="html", cte="base64")
        else:
            message.set_content(lines)
        if i % 4 == 1:
            message.add_alternative(html, subtype="html")
        if i % 4 == 3:
            message.add_attachment(rng.bytes(1500), maintype="application", subtype="zip", filename=f"{i}.zip")
        path = folder / label / f"{i}.eml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(message.as_bytes())
        names.append(str(path))
    return names


def _deciban(*arguments: object) -> list[object]:
    return [sys.executable, "-c", "from deciban.cli import main; main()", *arguments]


def _run(command: Sequence[object], stdin: bytes = b"") -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["XDG_CACHE_HOME"] = CACHE
    done = subprocess.run([*map(str, command)], input=stdin, capture_output=True, env=environment, check=False)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(done.stderr.decode("utf-8", "replace")[-500:])
    return done.stdout.decode("utf-8", "replace")


def _fastest(command: Sequence[object], stdin: bytes, times: int = STARTS) -> float:
    return min(timed(lambda: _run(command, stdin))[0] for _ in range(times))


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="deciban-bench-") as folder:
        yield Path(folder)
    shutil.rmtree(CACHE, ignore_errors=True)


# SMS -----------------------------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[], Any]] = {
    "counts, MultinomialNB": lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
    "counts, BernoulliNB": lambda: make_pipeline(CountVectorizer(), BernoulliNB()),
    "counts, ComplementNB": lambda: make_pipeline(CountVectorizer(), ComplementNB()),
    "tf-idf of n-grams, MultinomialNB": lambda: make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), MultinomialNB(alpha=0.1)
    ),
    "tf-idf, LogisticRegression": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "tf-idf, LogisticRegression, C=100": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0)),
}
OURS: dict[str, Callable[[], Any]] = {
    "NaiveBayes, multinomial": deciban.NaiveBayes,
    "NaiveBayes, bernoulli": lambda: deciban.NaiveBayes(families=Text("bernoulli")),
    "EvidenceClassifier": deciban.EvidenceClassifier,
}


@job("sms")
def sms(bench: Bench) -> None:
    """Spam among text messages, in five folds: accuracy, log-loss, AUC and calibration error."""
    if not os.environ.get("DECIBAN_DATA"):
        print("  skipped: set DECIBAN_DATA to the folder that holds text/SMSSpamCollection")
        return
    texts, y = messages()
    scores = {name: score(make, texts, y) for name, make in {**OURS, **PEERS}.items()}
    print(f"  {'':<34} {'accuracy':>8} {'log-loss':>8} {'AUC':>8} {'ECE':>8}")
    for name, values in scores.items():
        print(f"  {name:<34} " + " ".join(f"{value:8.4f}" for value in values))
    ours, peers = scores["EvidenceClassifier"], [scores[name] for name in PEERS]
    auc_ratio = (1 - ours[2]) / min(1 - values[2] for values in peers)
    loss_ratio = ours[1] / min(values[1] for values in peers)
    bench.limit("SMS: 1 − AUC of EvidenceClassifier, beside the best peer's", 100 * auc_ratio, 100, "%")
    bench.limit("SMS: log-loss of EvidenceClassifier, beside the best peer's", 100 * loss_ratio, 100, "%")


def messages() -> tuple[list[str], Ints]:
    path = Path(os.environ["DECIBAN_DATA"]) / "text" / "SMSSpamCollection"
    rows = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    return [text for _, text in rows], np.array([int(label == "spam") for label, _ in rows])


def score(make: Callable[[], Any], texts: Sequence[str], y: Ints) -> tuple[float, float, float, float]:
    """Out-of-fold accuracy, log-loss, AUC and calibration error (15 bins of the larger probability)."""
    p = np.zeros(len(y))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        model = make().fit([texts[i] for i in train], y[train])
        p[test] = model.predict_proba([texts[i] for i in test])[:, 1]
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return float(accuracy_score(y, p > 0.5)), float(log_loss(y, p)), float(roc_auc_score(y, p)), _ece(p, y)


def _ece(p: Floats, y: Ints) -> float:
    confidence, correct = np.maximum(p, 1 - p), (p > 0.5) == y
    bins = np.minimum((confidence * 15).astype(int), 14)
    return float(sum(abs(correct[bins == b].sum() - confidence[bins == b].sum()) for b in range(15)) / len(y))

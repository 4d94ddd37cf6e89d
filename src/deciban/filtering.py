"""Filter: a model of mail, as it is used for one mail after another. It judges, learns and forgets.

It needs a model file and nothing heavy: a mail is judged in a process of its own, while somebody waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban import _kernels, storage
from deciban.batch import Batch, Kind
from deciban.codec.codec import Parts
from deciban.codec.parts import read_parts, write_parts
from deciban.contributions import DECIBANS, line_title
from deciban.errors import DecibanError
from deciban.families.text import Text
from deciban.generative import Generative, Settings
from deciban.plans import Plan, read
from deciban.schema import Schema
from deciban.sources.documents import TextFrame
from deciban.sources.mail import COLUMNS
from deciban.storage import FilePath
from deciban.types import FloatArray, IntArray, Level

Texts = Mapping[str, str | None]  # of a mail: see deciban.sources.mail
TERMS = 6  # that are told of a mail
KINDS = ("NaiveBayes", "EvidenceClassifier")


@dataclass(frozen=True)
class Verdict:
    """What a model says of a mail: its class, p(class), and by how many decibans that is above the runner-up."""

    label: Level
    probability: float
    decibans: float
    terms: tuple[tuple[str, float], ...] = ()  # that tell most, in decibans for the class against the runner-up


@dataclass(frozen=True)
class Filter:
    """A model of mails: naive Bayes, or weighed evidence.

    >>> from deciban.sources.mail import parse
    >>> new = Filter.new()
    >>> new = new.learned([parse(b"Subject: cheap pills\\n\\nBuy now").texts], "spam")
    >>> new = new.learned([parse(b"Subject: lunch\\n\\nAt noon?").texts], "ham")
    >>> verdict = new.judged([parse(b"Subject: pills for lunch\\n\\nBuy cheap pills").texts])[0]
    >>> verdict.label, verdict.terms[0][0]
    ('spam', 'subject: lunch')
    """

    parts: Parts

    def __post_init__(self) -> None:
        _require_kind(self.parts.kind)
        names = self.evidence.schema.names
        families = [plan.family for plan in self.evidence.plans if not plan.presence]
        others = [family for family in families if not isinstance(family, Text)]
        if self._reads_documents and others:
            raise DecibanError(
                f"the model reads the column {names[0]!r} as {type(others[-1]).__name__}: fit it on --text"
            )
        lacking = [name for name in names if name not in COLUMNS]
        if lacking and not self._reads_documents:
            raise DecibanError(f"the model reads a column {lacking[0]!r}, which mails do not have: fit one on mail")

    @classmethod
    def load(cls, path: FilePath) -> Filter:
        """From a file that `deciban fit`, `deciban mail learn` or a model's save() wrote."""
        try:
            return cls(read_parts(path))
        except DecibanError:
            tree, _ = storage.read(path)
            if isinstance(tree, dict):  # not every model can be taken into parts
                _require_kind(tree.get("is"))
            raise

    @classmethod
    def new(cls) -> Filter:
        """Naive Bayes over the columns of mail, that has learned nothing yet."""
        families: dict[str, Any] = {name: Text() for name in COLUMNS}
        params = {"families": families, "smoothing": 1.0, "class_prior": "empirical", "missing": "skip"}
        kind: Kind = "category"
        schema = Schema(COLUMNS, (kind,) * len(COLUMNS))
        plans = tuple(Plan(Text(), (j,)) for j in range(len(COLUMNS)))
        nothing = Batch(_frame(COLUMNS, []), np.zeros(0, np.int32), (), None, 0)
        state: dict[str, Any] = {
            "generative_": Generative.observe(nothing, schema, plans, "skip"),
            "_label_dtype": None,
            "_label_name": "folder",
            "_shrinkages": {},
            "_contests": (),
            "_column_evidence": None,
        }
        return cls(Parts("NaiveBayes", params | {"unseen": "skip"}, state))

    def save(self, path: FilePath) -> None:
        write_parts(path, self.parts)

    @property
    def evidence(self) -> Generative:
        found: Generative = self.parts.state["generative_"]
        return found

    @property
    def classes(self) -> tuple[Level, ...]:
        return self.evidence.classes

    # Learning --------------------------------------------------------------------------------------------------------

    def learned(self, mails: Sequence[Texts], label: Level) -> Filter:
        """With more mails of a class."""
        return self._with(self.evidence + self._collected(mails, label))

    def forgotten(self, mails: Sequence[Texts], label: Level) -> Filter:
        """Without mails that were learned as a class, exactly."""
        return self._with(self.evidence - self._collected(mails, label))

    def _with(self, evidence: Generative) -> Filter:
        return Filter(self.parts._replace(state={**self.parts.state, "generative_": evidence}))

    def _collected(self, mails: Sequence[Texts], label: Level) -> Generative:
        evidence = self.evidence
        labels = np.zeros(len(mails), np.int32)
        batch = Batch(self._frame(mails), labels, (self._like(label),), None, 0)
        return Generative.observe(batch, evidence.schema, evidence.plans, evidence.missing)

    def _like(self, label: Level) -> Level:
        """The class of that name: those of a model may be numbers."""
        return next((known for known in self.classes if str(known) == str(label)), label)

    # Judging ---------------------------------------------------------------------------------------------------------

    def judged(self, mails: Sequence[Texts], *, terms: bool = True) -> list[Verdict]:
        """What the model says of each mail, and why."""
        if not mails:
            return []
        if len(self.classes) < 2:
            known = f"only {self.classes[0]!r}" if self.classes else "no mail"
            raise DecibanError(f"the model has learned {known} so far: `deciban mail learn` teaches it more classes")
        frame = self._frame(mails)
        scores = np.empty((frame.rows, len(self.classes)))
        self._scorer.joint(frame, scores)
        p = scores.copy()
        _kernels.normalise(p, self._scorer.log_prior, False)
        best = p.argmax(axis=1)
        rows = np.arange(len(p))
        scores[np.isneginf(scores).all(axis=1)] = self._scorer.log_prior  # no class is possible: see `normalise`
        others = scores.copy()
        others[rows, best] = -np.inf
        next_ = others.argmax(axis=1)
        next_ = np.where(next_ == best, (best + 1) % len(self.classes), next_)  # no other class is possible
        decibans = (scores[rows, best] - scores[rows, next_]) * DECIBANS
        told = self._terms(frame, best, next_) if terms else [()] * len(p)
        found = zip(best.tolist(), p[rows, best].tolist(), decibans.tolist(), told, strict=True)
        return [Verdict(self.classes[c], probability, apart, why) for c, probability, apart, why in found]

    @cached_property
    def _scorer(self) -> Any:
        kind, params, state = self.parts
        evidence = self.evidence
        if kind == "EvidenceClassifier":
            from deciban.weighing.readers import readers_of
            from deciban.weighing.weighed import Weighed

            return Weighed(evidence, readers_of(evidence), state["_weights"], params["class_prior"])
        smoothing = params["smoothing"]
        if smoothing == "auto":
            from deciban.choosing import choose_smoothing

            smoothing = choose_smoothing(evidence, reserve=params["unseen"] == "reserve").value
        return evidence.estimate(Settings(smoothing, params["class_prior"], params["unseen"]))

    def _text_blocks(self) -> Iterator[tuple[Plan, Any, FloatArray | None]]:
        """Blocks of text with their parameters and the weights (K) of what they say; None is as it is."""
        if self.parts.kind == "NaiveBayes":
            for block, params in zip(self.evidence.blocks, self._scorer.params, strict=True):
                if isinstance(block.plan.family, Text):
                    yield block.plan, params, None
            return
        for block, reader, weights in self._scorer.readers:
            if isinstance(block.plan.family, Text):
                yield block.plan, reader.params, weights[0]

    def _terms(self, frame: TextFrame, best: IntArray, next_: IntArray) -> list[tuple[tuple[str, float], ...]]:
        """Of each mail the terms that tell most between two classes."""
        names, places = self.evidence.schema.names, self.evidence.schema.places(frame)
        found: list[dict[tuple[tuple[int, ...], str], float]] = [{} for _ in range(frame.rows)]
        for plan, params, weights in self._text_blocks():
            family: Any = plan.family
            texts = read(plan, frame, places, None, self.evidence.missing)
            rows, nats = family.cells(params, texts)
            row, known = rows.rows, np.flatnonzero(np.bincount(rows.indices))  # np.unique imports more of numpy
            called = dict(zip(known.tolist(), family.names(params.terms, known, texts), strict=True))
            if weights is not None:  # evidence is less its mean over the classes
                nats = (nats - nats.mean(axis=1, keepdims=True)) * weights
            cell = np.arange(len(row))
            ahead, behind = nats[cell, best[row]], nats[cell, next_[row]]
            with np.errstate(invalid="ignore"):  # impossible under both: no evidence between them
                decibans = np.where(np.isneginf(ahead) & np.isneginf(behind), 0.0, ahead - behind) * DECIBANS
            for i, t, value in zip(row.tolist(), rows.indices.tolist(), decibans.tolist(), strict=True):
                key = plan.columns, called[t]
                told = found[i]
                told[key] = told.get(key, 0.0) + value
        out = []
        for told in found:
            most = sorted(told.items(), key=lambda item: (-abs(item[1]), item[0]))[:TERMS]
            out.append(tuple((line_title(columns, names, term), value) for (columns, term), value in most))
        return out

    # Mails -----------------------------------------------------------------------------------------------------------

    def _frame(self, mails: Sequence[Texts]) -> TextFrame:
        names = self.evidence.schema.names
        if self._reads_documents:  # what a mail says
            said = [" \n".join(filter(None, (mail["subject"], mail["body"]))) for mail in mails]
            return TextFrame(names, (said,), self.evidence.schema.kinds[0])
        return _frame(names, mails)

    @property
    def _reads_documents(self) -> bool:
        """One column, that is none of mail."""
        names = self.evidence.schema.names
        return len(names) == 1 and names[0] not in COLUMNS


def _require_kind(kind: Any) -> None:
    if kind not in KINDS:
        what = "calibrated model" if kind == "Calibrated" else kind
        raise DecibanError(f"a {what} reads no mail: fit evidence or naive-bayes, not calibrated")


def _frame(names: Sequence[Any], mails: Sequence[Texts]) -> TextFrame:
    return TextFrame(tuple(names), tuple([mail[name] for mail in mails] for name in names), "category")

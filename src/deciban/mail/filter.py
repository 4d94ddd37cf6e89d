"""Filter: a mail filter. It classifies mails, learns and forgets them.

It needs a model file and no heavy library, since each mail is classified in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from deciban import _kernels
from deciban.contributions import DECIBANS, line_title
from deciban.data.batch import Batch, Kind
from deciban.data.documents import TextFrame
from deciban.data.files.mail_message import COLUMNS
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import DecibanError, require_scores
from deciban.families.text import Text
from deciban.generative.block import Block
from deciban.generative.classifier_state import NaiveBayesSettings, NaiveBayesState
from deciban.generative.estimate import Settings
from deciban.generative.model import Generative
from deciban.generative.plan import Plan
from deciban.persist import storage
from deciban.persist.codec import StoredModel
from deciban.persist.model_file import read_stored, write_stored
from deciban.persist.storage import FilePath
from deciban.types import FloatArray, IntArray, Level

Texts = Mapping[str, str | None]  # of a mail: see deciban.data.files.mail_message
MOST_TERMS = 6  # in a verdict
SMOOTHING = (
    0.1  # of a new filter: with 1 for each of many rare words, a class with few mails gets too many (docs/text.md)
)
NAIVE_BAYES, EVIDENCE = "NaiveBayes", "EvidenceClassifier"  # the estimators that read text


@dataclass(frozen=True)
class Verdict:
    """The class of a mail, its probability, and its decibans against the runner-up class."""

    label: Level
    probability: float
    decibans: float
    terms: tuple[tuple[str, float], ...] = ()  # the most informative, with their decibans against the runner-up


@dataclass(frozen=True)
class Filter:
    """A model that classifies mail: naive Bayes, or weighted evidence.

    >>> from deciban.data.files.mail_message import parse
    >>> model = Filter.new()
    >>> model = model.learn([parse(b"Subject: cheap pills\\n\\nBuy now").texts], "spam")
    >>> model = model.learn([parse(b"Subject: lunch\\n\\nAt noon?").texts], "ham")
    >>> verdict = model.explain([parse(b"Subject: pills for lunch\\n\\nBuy cheap pills").texts])[0]
    >>> verdict.label, verdict.terms[0][0]
    ('spam', 'subject: lunch')
    """

    stored: StoredModel

    def __post_init__(self) -> None:
        _require_kind(self.stored.kind)
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
        """The model in a file that `deciban fit`, `deciban mail learn` or a model's save() wrote."""
        try:
            return cls(read_stored(path))
        except DecibanError:
            tree, _ = storage.read(path)
            if isinstance(tree, dict):  # a model that cannot be read without scikit-learn
                _require_kind(tree.get("is"))
            raise

    @classmethod
    def new(cls) -> Filter:
        """Naive Bayes over the columns of mail, before its first mail."""
        kind: Kind = "category"
        schema = Schema(COLUMNS, (kind,) * len(COLUMNS))
        plans = tuple(Plan(Text(), (j,)) for j in range(len(COLUMNS)))
        no_mail = Batch(_frame(COLUMNS, []), np.zeros(0, np.int32), (), None, 0)
        settings = NaiveBayesSettings({name: Text() for name in COLUMNS}, smoothing=SMOOTHING)
        evidence = Generative.observe(no_mail, schema, plans, settings.missing)
        return cls(StoredModel.of(NAIVE_BAYES, settings, NaiveBayesState(generative_=evidence, _label_name="folder")))

    def save(self, path: FilePath) -> None:
        write_stored(path, self.stored)

    @property
    def evidence(self) -> Generative:
        evidence: Generative = self.stored.state["generative_"]
        return evidence

    @property
    def classes(self) -> tuple[Level, ...]:
        return self.evidence.classes

    # Learning --------------------------------------------------------------------------------------------------------

    def learn(self, mails: Sequence[Texts], label: Level) -> Filter:
        """The filter after learning more mails of a class."""
        return self._with(self.evidence + self._observed(mails, label))

    def forget(self, mails: Sequence[Texts], label: Level) -> Filter:
        """The filter as if it had never learned these mails of a class, exactly."""
        return self._with(self.evidence - self._observed(mails, label))

    def _with(self, evidence: Generative) -> Filter:
        return Filter(self.stored._replace(state={**self.stored.state, "generative_": evidence}))

    def _observed(self, mails: Sequence[Texts], label: Level) -> Generative:
        known = next((known for known in self.classes if str(known) == str(label)), label)  # classes may be numbers
        batch = Batch(self._frame(mails), np.zeros(len(mails), np.int32), (known,), None, 0)
        return Generative.observe(batch, self.evidence.schema, self.evidence.plans, self.evidence.missing)

    # Classifying -----------------------------------------------------------------------------------------------------

    def classify(self, mails: Sequence[Texts]) -> list[Verdict]:
        """The verdict on each mail, without terms."""
        return self._classified(self._frame(mails))[0] if mails else []

    def explain(self, mails: Sequence[Texts]) -> list[Verdict]:
        """The verdict on each mail, with its most informative terms."""
        if not mails:
            return []
        frame = self._frame(mails)
        verdicts, best, runner_up = self._classified(frame)
        terms = self._terms(frame, best, runner_up)
        return [replace(verdict, terms=own) for verdict, own in zip(verdicts, terms, strict=True)]

    def _classified(self, frame: TextFrame) -> tuple[list[Verdict], IntArray, IntArray]:
        """The verdict on each mail; and the positions (n) of its class and of the runner-up class."""
        if len(self.classes) < 2:
            known = f"only {self.classes[0]!r}" if self.classes else "no mail"
            raise DecibanError(f"the model has learned {known} so far: `deciban mail learn` teaches it more classes")
        scores = np.empty((frame.rows, len(self.classes)))
        self._scorer.joint(frame, scores)
        require_scores(scores)
        p = scores.copy()
        _kernels.normalise(p, self._scorer.log_prior, False)
        best, rows = p.argmax(axis=1), np.arange(len(p))
        impossible = np.isneginf(scores).all(axis=1)  # under every class: see `normalise`
        scores[impossible] = self._scorer.log_prior
        runner_up = _runner_up(scores, best)
        decibans = (scores[rows, best] - scores[rows, runner_up]) * DECIBANS
        columns = zip(best.tolist(), p[rows, best].tolist(), decibans.tolist(), strict=True)
        return [Verdict(self.classes[c], *numbers) for c, *numbers in columns], best, runner_up

    @cached_property
    def _scorer(self) -> Any:
        kind, params, state = self.stored
        evidence = self.evidence
        if kind == EVIDENCE:
            from deciban.evidence.evidence_by_block import evidence_by_block
            from deciban.evidence.weighted_evidence import WeightedEvidence

            return WeightedEvidence(evidence, evidence_by_block(evidence), state["_weights"], params["class_prior"])
        settings = NaiveBayesSettings(**params)
        smoothing = settings.smoothing
        if isinstance(smoothing, str):
            from deciban.generative.selection import choose_smoothing

            smoothing = choose_smoothing(evidence, reserve=settings.unseen == "reserve").value
        return evidence.estimate(Settings(smoothing, settings.class_prior, settings.unseen))

    def tables(self) -> bytes | None:
        """The same scores as tables, for `ScoreTables`; None if they are no plain sum over terms of mails."""
        if self._reads_documents or len(self.classes) < 2:
            return None
        from deciban.mail.encoded_tables import encoded_tables

        if self.stored.kind == EVIDENCE:
            from deciban.evidence.evidence_formulas import evidence_formula

            return encoded_tables(evidence_formula(self._scorer))
        from deciban.generative.estimate_formulas import estimate_formula

        return encoded_tables(estimate_formula(self._scorer))

    def _text_blocks(self) -> Iterator[tuple[Block, Any, FloatArray | None]]:
        """Text blocks with their parameters and the weights (K) of their evidence; None for weights of 1."""
        if self.stored.kind == NAIVE_BAYES:
            blocks = zip(self.evidence.blocks, self._scorer.params, strict=True)
            return ((block, params, None) for block, params in blocks if isinstance(block.family, Text))
        sources = (each for each in self._scorer.sources if isinstance(each[0].family, Text))
        return ((block, source.params, weights[0]) for block, source, weights in sources)

    def _terms(self, frame: TextFrame, best: IntArray, runner_up: IntArray) -> list[tuple[tuple[str, float], ...]]:
        """The terms of each mail with most evidence between two classes."""
        names, matched = self.evidence.schema.names, MatchedFrame(self.evidence.schema, frame)
        by_mail: list[dict[tuple[tuple[int, ...], str], float]] = [{} for _ in range(frame.rows)]
        for block, params, weights in self._text_blocks():
            family: Any = block.family
            texts = block.read(matched)
            rows, nats = family.cells(params, texts)
            row, present = rows.rows, np.flatnonzero(np.bincount(rows.indices))  # np.unique imports more of numpy
            term_of = dict(zip(present.tolist(), family.names(params.terms, present, texts), strict=True))
            if weights is not None:  # weighted evidence is centred over the classes
                nats = (nats - nats.mean(axis=1, keepdims=True)) * weights
            cell = np.arange(len(row))
            for_best, for_other = nats[cell, best[row]], nats[cell, runner_up[row]]
            with np.errstate(invalid="ignore"):  # impossible under both: no evidence between them
                both_impossible = np.isneginf(for_best) & np.isneginf(for_other)
                decibans = np.where(both_impossible, 0.0, for_best - for_other) * DECIBANS
            for i, t, value in zip(row.tolist(), rows.indices.tolist(), decibans.tolist(), strict=True):
                key, terms = (block.columns, term_of[t]), by_mail[i]
                terms[key] = terms.get(key, 0.0) + value
        explained = []
        for terms in by_mail:
            first = sorted(terms.items(), key=lambda item: (-abs(item[1]), item[0]))[:MOST_TERMS]
            explained.append(tuple((line_title(columns, names, term), value) for (columns, term), value in first))
        return explained

    # Mails -----------------------------------------------------------------------------------------------------------

    def _frame(self, mails: Sequence[Texts]) -> TextFrame:
        names = self.evidence.schema.names
        if self._reads_documents:
            documents = [" \n".join(filter(None, (mail["subject"], mail["body"]))) for mail in mails]
            return TextFrame(names, (documents,), self.evidence.schema.kinds[0])
        return _frame(names, mails)

    @property
    def _reads_documents(self) -> bool:
        """Whether the model was fitted to documents, a single column that is not one of mail."""
        names = self.evidence.schema.names
        return len(names) == 1 and names[0] not in COLUMNS


def _runner_up(scores: FloatArray, best: IntArray) -> IntArray:
    """(n) the second best class; where no other is possible, the class after the best."""
    others = scores.copy()
    others[np.arange(len(best)), best] = -np.inf
    second = others.argmax(axis=1)
    return np.asarray(np.where(second == best, (best + 1) % scores.shape[1], second))


def _require_kind(kind: Any) -> None:
    if kind not in (NAIVE_BAYES, EVIDENCE):
        title = "calibrated model" if kind == "Calibrated" else kind
        raise DecibanError(f"a {title} reads no mail: fit evidence or naive-bayes, not calibrated")


def _frame(names: Sequence[Any], mails: Sequence[Texts]) -> TextFrame:
    return TextFrame(tuple(names), tuple([mail[name] for mail in mails] for name in names), "category")

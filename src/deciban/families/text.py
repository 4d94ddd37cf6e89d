"""Text: documents, as bags of terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from deciban import _kernels
from deciban.contributions import TermLine
from deciban.data.batch import Texts
from deciban.data.terms import Cut, Terms
from deciban.errors import DecibanError
from deciban.families.family import Context, Fitted, Natural, Reads, Shaped, SmoothedFamily, formulas, padded_table
from deciban.families.labelled_values import LabelledValues
from deciban.families.loo.left_out_terms import LeftOut
from deciban.families.natural import require_finite
from deciban.families.priors import Background, DiscretePrior, Laplace, Virtual, log_frequencies
from deciban.families.term_names import describe_shapes
from deciban.plots.figures import counted
from deciban.statistics.tokens import TermRows, Tokens
from deciban.table import Table
from deciban.types import BoolArray, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

Events = Literal["multinomial", "bernoulli", "complement"]
Range = tuple[int, int]

MOST = 32  # words or characters of an n-gram
SHOWN = 20  # terms in a summary, of each class
MUCH = 1e6  # nats: more than any finite evidence
MOST_CELLS = 1 << 26  # numbers in an explanation
CELLS = 1 << 20  # terms of rows that are left out at a time
ABSENT = "absent words"


@dataclass(frozen=True)
class TextParams:
    terms: Terms  # (V)
    log_p: FloatArray  # (K, V) of a term that occurs; for "bernoulli", minus that of an absent one
    absent: FloatArray  # (K) log p of a document without terms, for "bernoulli"; else 0
    table: FloatArray  # (V, K padded) log_p in the layout of the kernels
    certain: BoolArray  # (K, V) terms that all documents of a class have, or (K, 0) if there are none


@dataclass(frozen=True)
class Text(SmoothedFamily[Tokens, TextParams]):
    """Documents as bags of terms, with a probability of each term in each class.

    log p(x|c) = Σ_t x_t log θ_t, with θ_t = (k_t + α) / (all terms of class c + αV), x_t how often term t occurs

    That is events="multinomial". With "bernoulli" it is Σ_t log(φ_t if t occurs else 1 − φ_t), with
    φ_t = (documents with t + α) / (documents + 2α); with "complement" (Rennie et al. 2003) −Σ_t x_t log θ̃_t, with θ̃
    estimated from all other classes.

    Several columns, given as one key, are one bag of terms; n-grams do not cross columns. A missing document adds
    nothing, and neither does an unseen term.

    Parameters
    ----------
    events : "multinomial", "bernoulli" or "complement", default "multinomial"
        How often terms occur, whether they occur, or how often they occur in other classes.
    words : tuple of int or None, default (1, 1)
        The least and most words of an n-gram; None: no words.
        A word is a run of letters, marks and digits in any script, folded (Straße is strasse), accents kept; with an
        apostrophe between letters or a point between digits. Ideographs, emoji and currency signs are words by
        themselves. Invisible characters (soft hyphens, zero-width ones) are left out, and so are words of more than 128
        bytes. Bytes that are not UTF-8 separate words.
    characters : tuple of int or None, default None
        The least and most characters of an n-gram; None: none. From the folded words, with a space around each; such a
        term begins with ~.
    shapes : bool, default False
        Whether numbers become their shapes (1,500 is 0,000), and links and mail addresses their hosts (url:example.com
        and url:; address:…).
    max_terms : int or None, default None
        Only the most frequent terms of all classes together are used; ties are broken by the order of terms. All are
        counted, and these are selected when parameters are estimated, so the order of rows does not matter.
    hash_bits : int up to 31 or None, default None
        Terms are hashed to 2^hash_bits numbers, which bounds memory; terms with the same hash are one.
    prior : prior of deciban.priors or None, default None
        Pseudo-counts: Laplace, Beta, Dirichlet or Virtual. None: Laplace, with the smoothing of the model.

    Attributes
    ----------
    follows : float or None
        How many pseudo-counts follow the counts of all classes; None if the prior does not say, which makes
        leave-one-out slow.
    cut : tuple
        How a text is cut into terms, as an argument of the kernels.
    title : str
        What is counted: "words", "bernoulli characters", ….

    See Also
    --------
    deciban.families.Multinomial : Counts that are columns already.
    deciban.EvidenceClassifier : Weights the terms.

    Examples
    --------
    >>> import deciban as db
    >>> mails = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"]
    >>> model = db.NaiveBayes(families=db.families.Text()).fit(mails, [0, 1, 0, 1, 1])
    >>> model.predict_proba(["Buy book today"]).round(4).tolist()
    [[0.429, 0.571]]
    """

    events: Events = "multinomial"
    words: Range | None = (1, 1)
    characters: Range | None = None
    shapes: bool = False
    max_terms: int | None = None
    hash_bits: int | None = None
    prior: DiscretePrior | None = None
    reads: ClassVar[Reads] = "texts"
    reads_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.events not in ("multinomial", "bernoulli", "complement"):
            raise DecibanError(f"Text: events must be multinomial, bernoulli or complement, not {self.events!r}")
        for name in ("words", "characters"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _range(name, value))
        if self.words is None and self.characters is None:
            raise DecibanError("Text: words and characters are both None, so there are no terms: give one of them")
        _require_whole("max_terms", self.max_terms, 1, 1 << 31)
        _require_whole("hash_bits", self.hash_bits, 1, 31)
        if not isinstance(self.shapes, bool):
            raise DecibanError(f"Text: shapes must be True or False, not {self.shapes!r}")
        if self.prior is not None and not hasattr(self.prior, "pseudo_counts"):
            raise DecibanError(f"Text: prior must be one of deciban.priors, such as Laplace(1), not {self.prior!r}")

    @property
    def cut(self) -> Cut:
        """How a text is cut into terms, as an argument of the kernels."""
        words, characters = self.words or (1, 0), self.characters or (1, 0)
        return (*words, *characters, self.shapes, self.hash_bits or 0)

    def terms(self, document: str) -> list[str]:
        """The terms of a document, in its order: an analyzer, also for scikit-learn's CountVectorizer.

        Parameters
        ----------
        document : str
            A text.

        Returns
        -------
        list of str
            Words and n-grams, folded.

        Examples
        --------
        >>> from deciban.families import Text
        >>> Text(words=(1, 2)).terms("Don't PAY £1,000!")
        ["don't", 'pay', "don't pay", '£', 'pay £', '1,000', '£ 1,000']
        """
        return _terms(document.encode("utf-8", "surrogatepass"), self._plain)

    @property
    def _plain(self) -> Cut:
        """`cut` without hashing."""
        return (*self.cut[:-1], 0)

    @property
    def title(self) -> str:
        """What is counted: "words", "bernoulli characters", …"""
        units = "words" if self.characters is None else "characters" if self.words is None else "words and characters"
        return units if self.events == "multinomial" else f"{self.events} {units}"

    @property
    def _once(self) -> bool:
        return self.events == "bernoulli"

    def collect(self, values: Texts, labels: Labels, weights: FloatArray | None, classes: int) -> Tokens:
        return Tokens.of(values, self.cut, labels, weights, classes, once=self._once)

    def estimate(self, statistic: Tokens, context: Context) -> TextParams:
        kept = self.used_terms(statistic)
        counts, terms = statistic.counts.value, statistic.terms
        if len(kept) < len(terms):
            counts, terms = counts[:, kept], terms.take(kept)
        absent, certain = np.zeros(len(counts)), np.zeros((len(counts), 0), np.bool_)
        if self._once:
            both = np.stack([statistic.documents.value[:, np.newaxis] - counts, counts], axis=2).transpose(1, 0, 2)
            prior = self.prior_in(context)
            log_p_of_both = log_frequencies(both, prior.pseudo_counts(both, (False, True), context.classes))
            false, true = np.ascontiguousarray(log_p_of_both.transpose(2, 1, 0))
            if np.isneginf(false).any():
                certain = np.isneginf(false)
                false = np.where(certain, 0.0, false)
            log_p, absent = true - false, false.sum(axis=1)
        elif self.events == "complement":
            log_p = -log_frequencies(counts.sum(axis=0) - counts, self._pseudo(counts, terms, context))
            if not np.isfinite(log_p).all():
                raise DecibanError("Text: complement events need smoothing above 0 where only one class has a term")
        else:
            log_p = log_frequencies(counts, self._pseudo(counts, terms, context))
        return TextParams(terms, log_p, absent, padded_table(log_p), certain)

    def _pseudo(self, counts: FloatArray, terms: Terms, context: Context) -> FloatArray:
        prior = self.prior_in(context)
        names = () if isinstance(prior, Laplace) else tuple(terms)  # which does not need them
        return prior.pseudo_counts(counts, names, context.classes)

    def used_terms(self, statistic: Tokens) -> IntArray:
        """The indices of the terms that are used: all, or the max_terms most frequent.

        Parameters
        ----------
        statistic : Tokens
            The counts of all terms.

        Returns
        -------
        array of int
            Ascending.
        """
        total = statistic.counts.value.sum(axis=0)
        if self.max_terms is None or len(total) <= self.max_terms:
            return np.arange(len(total))
        return np.sort(np.argsort(-total, kind="stable")[: self.max_terms])

    def add_log_density(self, params: TextParams, values: Texts, out: FloatArray) -> None:
        if self._once:
            out[values.present] += params.absent
        self._add_terms(params.terms, params.table, values, out)
        if params.certain.any():
            out[self._lacks(params, values, out.shape[1])] = -np.inf

    def _lacks(self, params: TextParams, values: Texts, classes: int) -> BoolArray:
        """(n, K) whether a document lacks a term that all documents of the class have, and so is impossible."""
        present = np.zeros((len(values.places), classes))
        self._add_terms(params.terms, padded_table(params.certain.astype(np.float64)), values, present)
        lacks: BoolArray = values.present[:, np.newaxis] & (present < params.certain.sum(axis=1))
        return lacks

    def _add_terms(self, terms: Terms, table: FloatArray, values: Texts, out: FloatArray) -> None:
        scores = out if out.flags.c_contiguous else np.zeros(out.shape)
        if len(terms):
            _kernels.add_terms(values.buffers, values.places, self.cut, terms.index, table, self._once, scores)
        if scores is not out:
            out += scores

    def leave_one_out(
        self, fitted: Fitted[Tokens, TextParams], rows: LabelledValues, out: FloatArray, middle: FloatArray | float = 0
    ) -> None:
        """Without row i, k_t of its class is smaller by w·x_t, and V by the terms that no other row has.

        With max_terms, or a prior that is neither Laplace nor Virtual nor Background, parameters are estimated for each
        distinct row. `middle` (K) is subtracted from every term (see `centred`).
        """
        statistic, context, values = fitted.statistic, fitted.context, rows.values
        prior = self.prior_in(context)
        alpha = prior.alpha if isinstance(prior, (Laplace, Background)) else 0.0
        follows = prior.m if isinstance(prior, Background) or (isinstance(prior, Virtual) and prior.q is None) else 0.0
        per_class = follows / len(context.classes)
        if self.max_terms is not None or alpha + per_class <= 0 or (per_class and self.events == "complement"):
            super().leave_one_out(fitted, rows, out)
            return
        terms = values if isinstance(values, TermRows) else TermRows.of(values, self.cut, statistic.terms)
        present = values.present if isinstance(values, Texts) else np.ones(len(rows), np.bool_)
        w = np.where(present, 1.0 if rows.weights is None else rows.weights, 0.0)  # a missing document was not counted
        step = max(1, len(rows) * CELLS // max(1, len(terms.data)))
        left = LeftOut(statistic, alpha, per_class, self.events, np.broadcast_to(middle, len(context.classes)))
        for start in range(0, len(rows), step):
            chunk = slice(start, start + step)
            out[chunk][present[chunk]] += left.of(terms[chunk], rows.labels[chunk], w[chunk])[present[chunk]]

    def centred(self, statistic: Tokens, params: TextParams) -> tuple[TextParams, FloatArray]:
        """Parameters minus their mean over the training data.

        The mean of log θ over all terms is subtracted from every term; for "bernoulli", that of log p over all
        documents from every document. Densities of classes with few documents are flat, so without this every term of a
        long text would be evidence for them. The mean is that of all rows, also for a row that is left out.

        Parameters
        ----------
        statistic : Tokens
            The counts of all terms.
        params : TextParams
            What `estimate` returned.

        Returns
        -------
        centred : TextParams
            The parameters less their mean.
        mean : array of shape (K,)
            The mean.
        """
        share = statistic.counts.value.sum(axis=0)
        total = statistic.documents.value.sum() if self._once else share.sum()
        middle = (params.log_p * (share / max(total, 1e-300))).sum(axis=1)  # in an order that no alignment changes
        if self._once:
            return replace(params, absent=-middle), middle + params.absent
        log_p = params.log_p - middle[:, np.newaxis]
        return replace(params, log_p=log_p, table=padded_table(log_p)), middle

    def recall(self, statistic: Tokens) -> LabelledValues | None:
        """Every term as a document, since counts do not say which terms were in the same one."""
        if self.events != "multinomial" or self.max_terms is not None:
            return None
        counts = statistic.counts.value
        labels, terms = np.nonzero(counts)
        rows = TermRows(np.ones(len(terms)), terms, np.arange(len(terms) + 1))
        return LabelledValues(rows, labels.astype(np.int32), counts[labels, terms])

    def cells(self, params: TextParams, values: Texts) -> tuple[TermRows, FloatArray]:
        """The terms of documents, and what each of them adds to the log-density.

        Parameters
        ----------
        params : TextParams
            What `estimate` returned.
        values : Texts
            The documents.

        Returns
        -------
        terms : TermRows
            The m terms of the documents.
        nats : array of shape (m, K)
            What they add.
        """
        rows = TermRows.of(values, self.cut, params.terms)
        times = np.ones(len(rows.data)) if self._once else rows.data
        return rows, times[:, np.newaxis] * params.log_p[:, rows.indices].T

    def lines(self, params: TextParams, values: Texts, classes: int) -> Iterator[TermLine]:
        """The log-density by terms: each that some row has, then all absent ones together."""
        rows, nats = self.cells(params, values)
        known, index = np.unique(rows.indices, return_inverse=True)
        if len(known) * len(rows) * classes > MOST_CELLS:
            raise DecibanError(f"{len(rows)} documents have {len(known)} different terms: explain fewer documents")
        nats_of, times = np.zeros((len(known), len(rows), classes)), np.zeros((len(known), len(rows)), np.intp)
        nats_of[index, rows.rows], times[index, rows.rows] = nats, rows.data
        names = self.names(params.terms, known, values)
        yield from (TermLine(*line) for line in zip(names, nats_of, times, strict=True))
        if self._once:
            absent = np.where(values.present[:, np.newaxis], params.absent, 0.0)
            if params.certain.any():
                absent[self._lacks(params, values, classes)] = -np.inf
            yield TermLine(ABSENT, absent)

    def names(self, terms: Terms, known: IntArray, values: Texts) -> list[str]:
        """The display names of terms; that of a hash is the first term of these documents that has it.

        Parameters
        ----------
        terms : Terms
            All terms.
        known : array of int
            Which of them.
        values : Texts
            The documents.

        Returns
        -------
        list of str
            One for each of `known`.
        """
        names = [terms[i] for i in known.tolist()]
        if not self.hash_bits:
            return [self.display_name(term) for term in names]
        name_of: dict[str, str] = {}
        for i, j in np.ndindex(*values.shape):
            text = values.cell(i, j) or b""
            for hashed, term in zip(_terms(text, self.cut), _terms(text, self._plain), strict=True):
                name_of.setdefault(hashed, self.display_name(term))
        return [name_of[term] for term in names]

    def display_name(self, term: str) -> str:
        """A term as it is displayed; shapes are described.

        Parameters
        ----------
        term : str
            As `terms` returns it.

        Returns
        -------
        str
            For people.
        """
        return describe_shapes(term) if self.shapes else term

    def silent(self, params: TextParams) -> list[int]:
        return [] if len(params.terms) else [0]

    def param_shapes(self, params: TextParams, classes: int, columns: int) -> dict[str, Shaped]:
        terms = len(params.terms)
        return {
            "log_p": (params.log_p, (classes, terms)),
            "absent": (params.absent, (classes,)),
            "table": (params.table, (terms, -(-classes // 4) * 4)),
        }

    def n_parameters(self, params: TextParams) -> int:
        free = params.log_p.shape[1] - (0 if self._once else 1)
        return int(len(params.log_p) * max(0, free))

    def natural(self, params: TextParams, context: Context) -> Natural:
        """log θ_t for T = x_t; for "bernoulli" log φ_t − log(1 − φ_t) for T = 1 if t occurs."""
        log_p = np.full_like(params.log_p, -np.inf) if params.certain.any() else params.log_p
        require_finite(log_p, [0] * len(params.terms), context, self)
        column = " + ".join(map(str, context.columns))
        names, eta = tuple(f"{column}: {term}" for term in params.terms), params.log_p
        if self._once:
            names, eta = (f"{column} is there", *names), np.column_stack([params.absent, eta])
        presence = np.zeros(len(names), np.bool_)
        presence[:1] = self._once
        return Natural(names, (0,) * len(names), eta, presence, np.zeros(len(eta)))

    def sufficient(self, params: TextParams, values: Texts) -> Any:
        from scipy.sparse import csr_array

        rows = TermRows.of(values, self.cut, params.terms)
        if not self._once:
            return csr_array((rows.data, rows.indices, rows.indptr), shape=(len(rows), len(params.terms)))
        present = values.present.astype(np.int64)  # the entry before the terms: 1 unless the document is missing
        starts = rows.indptr[:-1][present > 0]
        indices, indptr = np.insert(rows.indices + 1, starts, 0), rows.indptr + np.append(0, np.cumsum(present))
        return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), 1 + len(params.terms)))

    def formula(self, params: TextParams) -> list[Formula]:
        """A table of terms, and the score of a document without terms."""
        certain = params.certain.T if params.certain.any() else None
        absent = params.absent if self._once else None
        return [formulas.Bag((), params.terms, self.cut, self._once, params.log_p.T, absent, certain)]

    def linear_formula(self, params: TextParams, weights: FloatArray) -> list[Formula]:
        absent = weights[:, 0] if self._once else None
        table = weights[:, 1:] if self._once else weights
        return [formulas.Bag((), params.terms, self.cut, self._once, table.T, absent, owner=(0,))]

    def describe_column(self, params: TextParams, column: int) -> str:
        return f"{self.title}: a probability for each of {counted(len(params.terms), 'term')}, in each class"

    def describe(self, params: TextParams, context: Context) -> list[Table]:
        """For each class, the terms with most evidence for it, weighted by their frequency."""
        log_p, classes = params.log_p, len(context.classes)
        title = f"Text {' + '.join(map(str, context.columns))}"
        if not len(params.terms) or classes < 2:
            return [Table(f"{title}: {len(params.terms)} terms", ("term", *map(str, context.classes)), ())]
        log_p = np.clip(log_p, -MUCH, MUCH)  # impossible terms have infinite evidence
        nats = log_p - (log_p.sum(axis=0) - log_p) / (classes - 1)
        informative = nats if self.events == "complement" else np.exp(np.minimum(log_p, 0.0)) * nats
        decibans = np.where(np.abs(nats) > MUCH / classes, np.copysign(np.inf, nats), nats * 10.0 / np.log(10.0))
        best = [np.argsort(-row, kind="stable")[: SHOWN // classes + 1].tolist() for row in informative]
        rows = [
            (label, self.display_name(params.terms[t]), float(decibans[c, t]))
            for c, label in enumerate(context.classes)
            for t in best[c]
            if decibans[c, t] > 0
        ]
        header = ("class", "term", "decibans for it" if self._once else "decibans for it, each time")
        return [Table(f"{title}: {len(params.terms)} terms, the most informative", header, tuple(rows))]


def _terms(document: bytes, cut: Cut) -> list[str]:
    return _kernels.tokenize(np.frombuffer(document, np.uint8), cut)


def _range(name: str, value: Any) -> Range:
    if not isinstance(value, (tuple, list)) or len(value) != 2 or not all(isinstance(n, Integral) for n in value):
        raise DecibanError(f"Text: {name} must be (least, most) of an n-gram, such as (1, 2), not {value!r}")
    if not 1 <= value[0] <= value[1] <= MOST:
        raise DecibanError(f"Text: {name} must be from 1 to {MOST}, in ascending order, not {value!r}")
    return int(value[0]), int(value[1])


def _require_whole(name: str, value: Any, least: int, most: int) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (whole and least <= value <= most):
        raise DecibanError(f"Text: {name} must be a whole number from {least} to {most}, not {value!r}")

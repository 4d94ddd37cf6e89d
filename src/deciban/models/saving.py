"""Saving and loading: estimators as files. All that they hold below them is the business of `codec/`."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from deciban.codec.codec import Codec, Parts, at
from deciban.codec.estimators import Types
from deciban.codec.parts import read_tree, write_tree
from deciban.codec.registry import HOMES, class_at, named
from deciban.codec.soundness import CHECKS, classes_in_order, hints_of
from deciban.models.calibration import BETAS, Temperature
from deciban.statistics import Histogram, Sum
from deciban.storage import FilePath
from deciban.types import Levels


class Savable:
    """An estimator that can be written to a file. `_kept` names the attributes that hold what it learned, and types."""

    _kept: ClassVar[dict[str, Any]]

    def save(self, path: FilePath) -> None:
        """Writes the model to a file, whole or not at all; `deciban.load` reads it. The usual ending is .deciban.

        The file holds what was learned, not the rows: of a generative model its evidence, so that what is loaded can
        merge, forget and learn on. Nothing in it is code.
        """
        self._require_fitted()
        write_tree(path, self, ESTIMATORS)

    def _require_fitted(self) -> None:
        raise NotImplementedError

    def _complete(self) -> None:
        """Makes what is kept and was put off, before it is written."""

    def _restored(self) -> None:
        """Makes what follows from the attributes that were kept, and sees that they go together."""
        raise NotImplementedError


def load(path: FilePath) -> Any:
    """The model that `model.save(path)` wrote: it predicts, explains, merges and forgets as that one does, bit for bit.

    A file from anybody may be loaded: it runs no code, and what is damaged or makes no model is a DecibanError.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["red", 1.0], ["blue", 2.0], ["red", 4.0]], ["no", "no", "yes"])
    >>> path = Path(tempfile.mkdtemp()) / "colours.deciban"
    >>> model.save(path)
    >>> db.load(path).partial_fit([["blue", 5.0]], ["yes"]).predict([["red", 1.5], ["blue", 4.5]]).tolist()
    ['no', 'yes']
    """
    return read_tree(path, ESTIMATORS)


def kept_of(model: Savable) -> dict[str, Any]:
    """What an estimator has learned; nothing before fit."""
    model._complete()
    return {name: vars(model)[name] for name in model._kept if name in vars(model)}


# Soundness -----------------------------------------------------------------------------------------------------------


def _temperature(slopes: Sum) -> None:
    slopes.check("slopes", BETAS.shape)


def _isotonic(classes: Levels, temperature: Temperature, odds: Histogram) -> None:
    classes_in_order(classes)
    odds.check(len(classes), len(classes))


# The codec -----------------------------------------------------------------------------------------------------------


class EstimatorCodec(Codec):
    """Of estimators, and all that they hold."""

    homes = (
        HOMES
        | {"Calibrated": ("deciban.models.calibrated", "CalibratedClassifier")}
        | named("", "deciban.models.calibration", "Temperature", "Isotonic")
        | named("", "deciban.models.evidence", "EvidenceClassifier")
        | named("", "deciban.models.gaussian_discriminant", "GaussianDiscriminant")
        | named("", "deciban.models.glm", "GeneralizedLinearModel")
        | named("", "deciban.models.halfspace", "Halfspace")
        | named("", "deciban.models.logistic", "LogisticRegression", "SoftmaxRegression")
        | named("", "deciban.models.naive_bayes", "NaiveBayes")
    )
    checks = CHECKS | {"Temperature": _temperature, "Isotonic": _isotonic}

    @cached_property
    def kinds(self) -> dict[str, type]:
        """Every class that a file may hold, by its name there."""
        return {name: class_at(home) for name, home in self.homes.items()}

    def types_of(self, name: str) -> Types | None:
        kind: Any = self.kinds.get(name)
        if kind is None or not issubclass(kind, Savable):
            return None
        hints = hints_of(kind.__init__)
        return Types({param: hints[param] for param in kind._get_param_names()}, kind._kept)

    def taken_apart(self, value: Any) -> Parts | None:
        name = self.name_of(type(value)) if isinstance(value, Savable) else None
        return None if name is None else Parts(name, value.get_params(deep=False), kept_of(value))

    def put_together(self, parts: Parts, path: str) -> Any:
        model: Any = self.kinds[parts.kind](**parts.params)
        if parts.state:
            vars(model).update(parts.state)
            with at(path):
                model._restored()
        return model


ESTIMATORS = EstimatorCodec()
encode, decode = ESTIMATORS.encode, ESTIMATORS.decode


def registry() -> dict[str, type]:
    return ESTIMATORS.kinds

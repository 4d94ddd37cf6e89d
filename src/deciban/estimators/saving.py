"""Saving and loading estimators; `persist/` encodes what they hold."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from deciban.persist.codec import Codec, StoredModel
from deciban.persist.estimator_state import Types, field_types, required_fields
from deciban.persist.model_file import read_model, write_model
from deciban.persist.registry import HOMES, class_at, named
from deciban.persist.storage import FilePath
from deciban.persist.validation import error_at, hints_of


class Savable:
    """An estimator that can be written to a file. The fields of `_state`, a dataclass, are what it has learned."""

    _state: ClassVar[type]

    def save(self, path: FilePath) -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it.

        The file holds the evidence, not the rows, so that a generative model that is loaded can merge, forget and learn
        more. It holds no code.

        Parameters
        ----------
        path : str, or path-like
            Where to; the usual suffix is .deciban. An existing file is replaced.

        Raises
        ------
        NotFittedError
            If the model is not fitted.

        See Also
        --------
        deciban.load : Reads the file.
        """
        self._require_fitted()
        write_model(path, self, ESTIMATORS)

    def _require_fitted(self) -> None:
        raise NotImplementedError

    def _complete(self) -> None:
        """Computes state that was deferred, before it is written."""

    def _restored(self) -> None:
        """Computes what follows from the loaded state, and checks that it fits together."""
        raise NotImplementedError


def load(path: FilePath) -> Any:
    """Load a model that `model.save(path)` wrote: it predicts, explains, merges and forgets as that one, bit for bit.

    A file from anybody may be loaded: it runs no code.

    Parameters
    ----------
    path : str, or path-like
        The file.

    Returns
    -------
    estimator
        A fitted model, of the class that was saved.

    Raises
    ------
    DecibanError
        If the file is damaged, or holds no model.
    OSError
        If it cannot be read.

    See Also
    --------
    deciban.NaiveBayes.save : Every model has it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["red", 1.0], ["blue", 2.0], ["red", 4.0]], ["no", "no", "yes"])
    >>> path = Path(tempfile.mkdtemp()) / "colours.deciban"
    >>> model.save(path)
    >>> db.load(path).partial_fit([["blue", 5.0]], ["yes"]).predict([["red", 1.5], ["blue", 4.5]]).tolist()
    ['no', 'yes']
    """
    return read_model(path, ESTIMATORS)


def kept_of(model: Savable) -> dict[str, Any]:
    """The state of an estimator; empty before fit."""
    model._complete()
    return {name: vars(model)[name] for name in field_types(model._state) if name in vars(model)}


# The codec -----------------------------------------------------------------------------------------------------------


class EstimatorCodec(Codec):
    """Encodes and decodes estimators, and all that they hold."""

    homes = (
        HOMES
        | {"Calibrated": ("deciban.estimators.calibrated", "CalibratedClassifier")}
        | named("", "deciban.estimators.calibration_maps", "Temperature", "Isotonic")
        | named("", "deciban.estimators.evidence_classifier", "EvidenceClassifier")
        | named("", "deciban.estimators.gaussian_discriminant", "GaussianDiscriminant")
        | named("", "deciban.estimators.glm", "GeneralizedLinearModel")
        | named("", "deciban.estimators.halfspace", "Halfspace")
        | named("", "deciban.estimators.logistic", "LogisticRegression", "SoftmaxRegression")
        | named("", "deciban.estimators.naive_bayes", "NaiveBayes")
    )

    @cached_property
    def kinds(self) -> dict[str, type]:
        """Every class that a file may hold, by its name there."""
        return {name: class_at(home) for name, home in self.homes.items()}

    def types_of(self, name: str) -> Types | None:
        kind: Any = self.kinds.get(name)
        if kind is None or not issubclass(kind, Savable):
            return None
        hints = hints_of(kind.__init__)
        settings = {param: hints[param] for param in kind._get_param_names()}
        return Types(settings, field_types(kind._state), required_fields(kind._state))

    def to_stored(self, value: Any) -> StoredModel | None:
        name = self.name_of(type(value)) if isinstance(value, Savable) else None
        return None if name is None else StoredModel(name, value.get_params(deep=False), kept_of(value))

    def from_stored(self, stored: StoredModel, path: str) -> Any:
        model: Any = self.kinds[stored.kind](**stored.params)
        if stored.state:
            vars(model).update(stored.state)
            with error_at(path):
                model._restored()
        return model


ESTIMATORS = EstimatorCodec()
encode, decode = ESTIMATORS.encode, ESTIMATORS.decode


def registry() -> dict[str, type]:
    return ESTIMATORS.kinds

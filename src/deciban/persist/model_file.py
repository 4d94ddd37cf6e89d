"""Model files: read and written as estimators, or as stored models, which score rows without scikit-learn."""

from __future__ import annotations

from typing import Any

from deciban.errors import DecibanError, require
from deciban.persist.codec import Codec, StoredModel
from deciban.persist.packing import Arrays
from deciban.persist.storage import FilePath, problem_of, read, write
from deciban.persist.validation import describe


def read_stored(path: FilePath) -> StoredModel:
    """The name, settings and state of the generative model in a file, checked as `load` does.

    Only what the file names is imported: neither scikit-learn, nor scipy, nor pyarrow. A NaiveBayes is scored by
    state["generative_"].estimate(Settings(…)), an EvidenceClassifier by WeightedEvidence(state["generative_"], …).

    >>> import tempfile
    >>> from pathlib import Path
    >>> import deciban as db
    >>> path = Path(tempfile.mkdtemp()) / "colours.deciban"
    >>> db.NaiveBayes(smoothing=0.5).fit([["red"], ["blue"]], ["no", "yes"]).save(path)
    >>> kind, params, state = read_stored(path)
    >>> kind, params["smoothing"], state["generative_"].classes
    ('NaiveBayes', 0.5, ('no', 'yes'))
    """
    stored: StoredModel = read_model(path, Codec())
    return stored


def write_stored(path: FilePath, stored: StoredModel) -> None:
    """Writes the file that the estimator would save, to the last bit."""
    write_model(path, stored, Codec())


def read_model(path: FilePath, codec: Codec) -> Any:
    """The model in a file; a file that is damaged or holds no model raises a DecibanError."""
    tree, arrays = read(path)
    try:
        model = codec.decode(tree, "model", arrays)
        stored = codec.to_stored(model)
        require(stored is not None and stored.state, f"it holds {describe(model)}, and no fitted model")
        require(not arrays, f"nothing refers to the array {min(arrays, default=None)!r}")
    except Exception as error:
        raise DecibanError(f"{path} is damaged: {problem_of(error)}") from error
    return model


def write_model(path: FilePath, model: Any, codec: Codec) -> None:
    """Writes a file, if it can be read again."""
    arrays: Arrays = {}
    try:
        tree = codec.encode(model, "model", arrays)
        codec.decode(tree, "model", dict(arrays))  # what could not be loaded is not written
    except RecursionError:
        raise DecibanError("the model cannot be saved: its settings contain themselves") from None
    except Exception as error:
        raise DecibanError(f"the model cannot be saved: {problem_of(error)}") from error
    write(path, tree, arrays)

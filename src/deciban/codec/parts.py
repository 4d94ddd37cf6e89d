"""Parts: what a model file holds, without the estimator's class. They are enough to score rows, and to save again."""

from __future__ import annotations

from typing import Any

from deciban.codec.codec import Codec, Parts, describe
from deciban.errors import DecibanError
from deciban.packing import Arrays
from deciban.storage import FilePath, read, write


def read_parts(path: FilePath) -> Parts:
    """The name, the settings and the learned attributes of the generative model in a file, checked as `load` does.

    Nothing but what the file names is imported: no scikit-learn, and neither scipy nor pyarrow. A NaiveBayes scores by
    state["generative_"].estimate(Settings(…)), an EvidenceClassifier by Weighed(state["generative_"], …).

    >>> import tempfile
    >>> from pathlib import Path
    >>> import deciban as db
    >>> path = Path(tempfile.mkdtemp()) / "colours.deciban"
    >>> db.NaiveBayes(smoothing=0.5).fit([["red"], ["blue"]], ["no", "yes"]).save(path)
    >>> kind, params, state = read_parts(path)
    >>> kind, params["smoothing"], state["generative_"].classes
    ('NaiveBayes', 0.5, ('no', 'yes'))
    """
    parts: Parts = read_tree(path, Codec())
    return parts


def write_parts(path: FilePath, parts: Parts) -> None:
    """The file that the estimator with these parts would save, to the last bit."""
    write_tree(path, parts, Codec())


def read_tree(path: FilePath, codec: Codec) -> Any:
    """What a file holds. What is damaged or makes no model is a DecibanError."""
    tree, arrays = read(path)
    try:
        return _only_model(tree, arrays, codec)
    except Exception as error:
        raise DecibanError(f"{path} is damaged: {_problem(error)}") from error


def _only_model(tree: Any, arrays: Arrays, codec: Codec) -> Any:
    found = codec.decode(tree, "model", arrays)
    parts = codec.taken_apart(found)
    if parts is None or not parts.state:
        raise DecibanError(f"it holds {describe(found)}, and no fitted model")
    if arrays:
        raise DecibanError(f"nothing refers to the array {min(arrays)!r}")
    return found


def write_tree(path: FilePath, value: Any, codec: Codec) -> None:
    """Writes a file, if it can be read again."""
    arrays: Arrays = {}
    try:
        tree = codec.encode(value, "model", arrays)
        codec.decode(tree, "model", dict(arrays))  # what could not be loaded is not written
    except RecursionError:
        raise DecibanError("the model cannot be saved: its settings hold themselves") from None
    except Exception as error:
        raise DecibanError(f"the model cannot be saved: {_problem(error)}") from error
    write(path, tree, arrays)


def _problem(error: Exception) -> str:
    return str(error) if isinstance(error, DecibanError) else f"{type(error).__name__}: {error}"

"""Hints for unknown keyword arguments: those of other libraries have another name here, others are misspelt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from deciban.errors import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

SELECTED = ("max_weight_rows", "leave it out, since held-out rows select the strength of the penalties")

# keyword: (our parameter, what to do); the first whose parameter the function has applies, "" always does
HINTS: dict[str, tuple[tuple[str, str], ...]] = {
    "alpha": (("smoothing", "use smoothing=alpha"), ("l2", "use l2=alpha"), SELECTED),
    "base_estimator": (("model", "use model=base_estimator"),),
    "C": (("l2", "use l2=1/C"), SELECTED),
    "class_weight": (
        (
            "",
            "leave it out and choose a threshold for the rare class, as evaluation.at(0.05, label) does, "
            "or pass sample_weight to fit, one weight for each row, which shifts the probabilities",
        ),
    ),
    "distribution": (("family", "use family=distribution"),),
    "estimator": (("model", "use model=estimator"),),
    "fit_intercept": (("l2", "leave it out, since an intercept is always fitted"),),
    "fit_prior": (("class_prior", "use class_prior='uniform' for fit_prior=False"),),
    "folds": (("cv", "use cv=folds"),),
    "l2": (SELECTED,),
    "lambda_": (("l2", "use l2=lambda_"), SELECTED),
    "n_estimators": (("trees", "use trees=n_estimators"),),
    "n_iter": (("max_iter", "use max_iter=n_iter"),),
    "n_jobs": (("", "leave it out, since there are no worker processes"),),
    "n_splits": (("cv", "use cv=n_splits"),),
    "penalty": (("l2", "use l2, the strength of the penalty (0 for none)"), SELECTED),
    "priors": (("class_prior", "use class_prior=priors"),),
    "reg_alpha": (("l2", "use l2, the only penalty"), SELECTED),
    "reg_lambda": (("l2", "use l2=reg_lambda"), SELECTED),
    "reg_param": (("shrinkage", "use shrinkage=reg_param"),),
    "seed": (("random_state", "use random_state=seed"),),
    "smoothing": (SELECTED,),
    "train_sizes": (("sizes", "use sizes=train_sizes"),),
    "var_smoothing": (
        ("families", "leave it out, since a variance is never below 1e-9 of the column's own variance"),
        SELECTED,
    ),
    "weights": (("sample_weight", "use sample_weight=weights"),),
}


def hint_keywords(function: F) -> F:
    """Decorate a function so that the TypeError for an unknown keyword says what to do.

    >>> @hint_keywords
    ... def fit(l2=0.0):
    ...     pass
    >>> fit(C=2.0)
    Traceback (most recent call last):
    TypeError: fit() got an unexpected keyword argument 'C': use l2=1/C
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword not in known:
                name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}{_hint(keyword, known)}")
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def _hint(keyword: str, known: Iterable[str]) -> str:
    """What to write instead of a keyword of another library, the nearest keyword, or all of them."""
    hints = [hint for parameter, hint in HINTS.get(keyword, ()) if not parameter or parameter in known]
    if hints:
        return f": {hints[0]}"
    return did_you_mean(keyword, among=known) or f": it takes {', '.join(known)}"

"""Hints for keyword arguments of other libraries that have another name here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# keyword: (our parameter, what to write); the first whose parameter the function has applies, "" always does
HINTS: dict[str, tuple[tuple[str, str], ...]] = {
    "alpha": (("smoothing", "smoothing=alpha"), ("l2", "l2=alpha")),
    "base_estimator": (("model", "model=base_estimator"),),
    "C": (("l2", "l2=1/C"),),
    "class_weight": (("", "sample_weight in fit, one weight for each row"),),
    "distribution": (("family", "family=distribution"),),
    "estimator": (("model", "model=estimator"),),
    "fit_intercept": (("l2", "nothing: an intercept is always fitted"),),
    "fit_prior": (("class_prior", "class_prior='uniform' for fit_prior=False"),),
    "folds": (("cv", "cv=folds"),),
    "lambda_": (("l2", "l2=lambda_"),),
    "n_estimators": (("trees", "trees=n_estimators"),),
    "n_iter": (("max_iter", "max_iter=n_iter"),),
    "n_jobs": (("", "nothing: there are no worker processes"),),
    "n_splits": (("cv", "cv=n_splits"),),
    "penalty": (("l2", "l2, the strength of the penalty (0 for none)"),),
    "priors": (("class_prior", "class_prior=priors"),),
    "reg_param": (("shrinkage", "shrinkage=reg_param"),),
    "seed": (("random_state", "random_state=seed"),),
    "train_sizes": (("sizes", "sizes=train_sizes"),),
    "weights": (("sample_weight", "sample_weight=weights"),),
}


def hint_keywords(function: F) -> F:
    """Decorate a function so that the TypeError for an unknown keyword says which one to use.

    >>> @hint_keywords
    ... def fit(l2=0.0):
    ...     pass
    >>> fit(C=2.0)
    Traceback (most recent call last):
    TypeError: fit() got an unexpected keyword argument 'C': use l2=1/C
    """
    known = {name for name in inspect.signature(function).parameters if name != "self"}

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs.keys() - known:
            hints = [hint for parameter, hint in HINTS.get(keyword, ()) if not parameter or parameter in known]
            if hints:
                name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}: use {hints[0]}")
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]

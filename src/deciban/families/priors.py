"""Priors: pseudo-counts and posterior modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import require
from deciban.types import FloatArray, Level, Levels


class DiscretePrior(Protocol):
    """A prior on the probabilities of V values, by pseudo-counts.

    With an attribute `follows`, leave-one-out has a closed form; without it, it estimates once for each distinct row.
    `follows` is the number of virtual rows, over all classes, that are spread as all rows together are: 0 for
    pseudo-counts that do not depend on counts.
    """

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """(…, K, V) what to add to the counts (…, K, V)."""


def log_frequencies(counts: FloatArray, pseudo: FloatArray) -> FloatArray:
    """log (k + a) / Σ(k + a) for each class of (…, K, V); a class without evidence has those of all together.

    >>> np.exp(log_frequencies(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]))).round(3)
    array([[0.667, 0.333]])
    """
    weight = counts + pseudo
    require((weight >= 0).all(), "the prior subtracts more than was counted: its parameters must be 1 or more")
    pooled = weight.sum(axis=-2, keepdims=True)
    pooled = np.where(pooled.sum(axis=-1, keepdims=True) > 0, pooled, 1.0)
    weight = np.where(weight.sum(axis=-1, keepdims=True) > 0, weight, pooled)
    total = weight.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(weight) - np.log(total)
    return result


@dataclass(frozen=True)
class Laplace:
    """Laplace's smoothing: α imaginary rows for every value.

    (k + α) / (n + αV); α = 0 is maximum likelihood

    Parameters
    ----------
    alpha : float, default 1.0
        0 or more.

    Attributes
    ----------
    follows : float
        0: pseudo-counts do not depend on the counts.

    Raises
    ------
    DecibanError
        If alpha is negative.

    See Also
    --------
    deciban.priors.Dirichlet : Another number for each value.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import Laplace
    >>> Laplace(1.0).pseudo_counts(np.array([[3.0, 0.0]]), ("a", "b"), ("yes",))
    array([[1., 1.]])
    """

    alpha: float = 1.0
    follows: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.alpha < inf, f"Laplace: alpha must be 0 or more, not {self.alpha}")

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """What to add to the counts: α everywhere.

        Parameters
        ----------
        counts : array of shape (…, K, V)
            How often each class has each value.
        levels : tuple
            The values (V).
        classes : tuple
            The classes (K).

        Returns
        -------
        array of shape (…, K, V)
            What to add to the counts.
        """
        return np.full(counts.shape, float(self.alpha))


@dataclass(frozen=True)
class Beta:
    """A Beta prior on the probability of true. Beta(2, 2) is Laplace(1).

    (k + h − 1) / (n + h + t − 2): the mode of Beta(k + h, n − k + t)

    Parameters
    ----------
    heads : float
        h, 1 or more: h − 1 imaginary rows are true.
    tails : float
        t, 1 or more: t − 1 imaginary rows are false.

    Attributes
    ----------
    follows : float
        0: pseudo-counts do not depend on the counts.

    Raises
    ------
    DecibanError
        If a parameter is below 1, where there is no mode.

    See Also
    --------
    deciban.families.Bernoulli : Takes it as `prior`.
    deciban.priors.Dirichlet : More than two values.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import Beta
    >>> Beta(2, 2).pseudo_counts(np.array([[1.0, 3.0]]), (False, True), ("yes",))
    array([[1., 1.]])
    """

    heads: float
    tails: float
    follows: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        both = 1 <= self.heads < inf and 1 <= self.tails < inf
        require(both, "Beta: both parameters must be 1 or more, for a mode to exist")

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """What to add to the counts: t − 1 to false, h − 1 to true.

        Parameters
        ----------
        counts : array of shape (…, K, V)
            How often each class has each value.
        levels : tuple
            The values (V).
        classes : tuple
            The classes (K).

        Returns
        -------
        array of shape (…, K, V)
            What to add to the counts.

        Raises
        ------
        DecibanError
            If there are not two values.
        """
        require(len(levels) == 2, f"Beta is for two values; this column has {len(levels)}: use Dirichlet")
        return np.broadcast_to([self.tails - 1.0, self.heads - 1.0], counts.shape).copy()


@dataclass(frozen=True)
class Dirichlet:
    """A Dirichlet prior on the probabilities of values.

    (k_v + a_v − 1) / (n + Σa − V): the posterior mode

    Parameters
    ----------
    concentration : float, list of float or dict
        a, 1 or more: one number for all values, or one for each (in order, or by name).

    Attributes
    ----------
    follows : float
        0: pseudo-counts do not depend on the counts.

    See Also
    --------
    deciban.families.Categorical : Takes it as `prior`.
    deciban.priors.Beta : Two values.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import Dirichlet
    >>> Dirichlet({"a": 3, "b": 1}).pseudo_counts(np.array([[5.0, 0.0]]), ("a", "b"), ("yes",))
    array([[2., 0.]])
    """

    concentration: float | Sequence[float] | Mapping[Level, float]
    follows: ClassVar[float] = 0.0

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """What to add to the counts: a_v − 1.

        Parameters
        ----------
        counts : array of shape (…, K, V)
            How often each class has each value.
        levels : tuple
            The values (V).
        classes : tuple
            The classes (K).

        Returns
        -------
        array of shape (…, K, V)
            What to add to the counts.

        Raises
        ------
        DecibanError
            If a value has no concentration, or one below 1.
        """
        a = self.concentration
        if isinstance(a, Mapping):
            lacking = [v for v in levels if v not in a]
            require(not lacking, f"Dirichlet: no concentration given for {lacking}")
            values = np.array([float(a[v]) for v in levels])
        else:
            values = np.asarray(a, dtype=np.float64)
            require(
                values.ndim == 0 or values.shape == (len(levels),),
                f"Dirichlet: {values.size} concentrations for {len(levels)} values {list(levels)}",
            )
        finite = ((values >= 1) & (values < inf)).all()
        require(finite, "Dirichlet: concentrations must be 1 or more, for a mode to exist")
        return np.broadcast_to(values - 1.0, counts.shape).copy()


@dataclass(frozen=True)
class Virtual:
    """m virtual examples, drawn from a distribution Q of values and classes.

    (k_v + m·Q(v, c)) / (n_c + m·Q(c))

    For a mean (Poisson, Exponential) the virtual examples lie at the mean of all classes.

    Parameters
    ----------
    m : float
        How many, 0 or more.
    q : array-like of shape (K, V) or None, default None
        Joint probabilities in the order of classes and values. None: Q(v, c) = Q(v)/K, with Q(v) the frequency of v in
        all classes together.

    Attributes
    ----------
    follows : float
        How many virtual rows are spread as the rows of all classes are: m, or 0 if Q is given.

    Raises
    ------
    DecibanError
        If m is negative.

    See Also
    --------
    deciban.priors.Laplace : Equally many for every value.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import Virtual
    >>> Virtual(2.0).pseudo_counts(np.array([[3.0, 0.0], [0.0, 1.0]]), ("a", "b"), ("no", "yes"))
    array([[0.75, 0.25],
           [0.75, 0.25]])
    """

    m: float
    q: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.q is not None:
            object.__setattr__(self, "q", _as_tuples("Virtual: q", self.q))
        require(0 <= self.m < inf, f"Virtual: m must be 0 or more, not {self.m}")

    @property
    def follows(self) -> float:
        """How many virtual rows are spread as the rows of all classes are: all, or none if Q is given."""
        return self.m if self.q is None else 0.0

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """What to add to the counts: m·Q(v, c).

        Parameters
        ----------
        counts : array of shape (…, K, V)
            How often each class has each value.
        levels : tuple
            The values (V).
        classes : tuple
            The classes (K).

        Returns
        -------
        array of shape (…, K, V)
            What to add to the counts.

        Raises
        ------
        DecibanError
            If Q has another shape, or does not sum to 1.
        """
        if self.q is None:
            classes_in, values = counts.shape[-2:]
            pooled = counts.sum(axis=-2, keepdims=True)
            pooled = np.where(pooled.sum(axis=-1, keepdims=True) > 0, pooled, 1.0 / max(values, 1))
            share = pooled / pooled.sum(axis=-1, keepdims=True)
            return np.broadcast_to(self.m * share / classes_in, counts.shape).copy()
        q = np.asarray(self.q, dtype=np.float64)
        require(q.shape == counts.shape[-2:], f"Virtual: Q has shape {q.shape}, the counts {counts.shape}")
        require((q >= 0).all() and abs(q.sum() - 1) < 1e-9, "Virtual: Q must be probabilities that sum to 1")
        return np.broadcast_to(self.m * q, counts.shape).copy()


@dataclass(frozen=True)
class Background:
    """(k_v + α + m·Q(v)/K) / Σ: Laplace's α beside m virtual examples, spread as those of all classes together are.

    >>> Background(2.0, 0.5).pseudo_counts(np.array([[3.0, 0.0], [0.0, 1.0]]), ("a", "b"), ("no", "yes"))
    array([[1.25, 0.75],
           [1.25, 0.75]])
    """

    m: float
    alpha: float

    def __post_init__(self) -> None:
        both = 0 <= self.m < inf and 0 <= self.alpha < inf
        require(both, f"Background: m and alpha must be 0 or more, not {self}")

    def pseudo_counts(self, counts: FloatArray, levels: Levels, classes: Levels) -> FloatArray:
        """(…, K, V) what to add to the counts: α + m·Q(v)/K."""
        return Virtual(self.m).pseudo_counts(counts, levels, classes) + self.alpha


@dataclass(frozen=True)
class Normal:
    """A normal prior on the mean of a Gaussian.

    (Σx/σ² + η/λ²) / (n/σ² + 1/λ²), σ² being the estimated variance

    Parameters
    ----------
    mean : float
        η, where the mean is expected.
    sd : float
        λ, above 0: the standard deviation of the prior.

    Raises
    ------
    DecibanError
        If sd is not above 0.

    See Also
    --------
    deciban.families.Gaussian : Takes it as `mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import Normal
    >>> float(Normal(0.0, 1.0).mode(np.array(2.0), np.array(10.0), np.array(1.0)))
    3.3333333333333335
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        require(isfinite(self.mean), f"Normal: mean must be a number, not {self.mean}")
        require(0 < self.sd < inf, f"Normal: sd must be above 0, not {self.sd}")

    def mode(self, count: FloatArray, total: FloatArray, variance: FloatArray) -> FloatArray:
        """The mean, from n, Σx and σ².

        Parameters
        ----------
        count : array
            n.
        total : array
            Σx.
        variance : array
            σ².

        Returns
        -------
        array
            The posterior mode.
        """
        precision = 1.0 / self.sd**2
        return (total / variance + self.mean * precision) / (count / variance + precision)


@dataclass(frozen=True)
class InverseGamma:
    """An inverse-gamma prior on the variance of a Gaussian.

    (b + ½Σ(x − mean)²) / (a + n/2 + 1): the posterior mode

    Parameters
    ----------
    shape : float
        a, above 0: the larger, the more the prior counts.
    scale : float
        b, above 0: without rows the variance is b/(a + 1).

    Raises
    ------
    DecibanError
        If a parameter is not above 0.

    See Also
    --------
    deciban.families.Gaussian : Takes it as `variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import InverseGamma
    >>> float(InverseGamma(1.0, 2.0).mode(np.array(4.0), np.array(8.0)))
    1.5
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        both = 0 < self.shape < inf and 0 < self.scale < inf
        require(both, "InverseGamma: shape and scale must be above 0")

    def mode(self, count: FloatArray, squares: FloatArray) -> FloatArray:
        """The variance, from n and Σ(x − mean)².

        Parameters
        ----------
        count : array
            n.
        squares : array
            Σ(x − mean)².

        Returns
        -------
        array
            The posterior mode.
        """
        return (self.scale + 0.5 * squares) / (self.shape + 0.5 * count + 1.0)


@dataclass(frozen=True)
class InverseWishart:
    """An inverse-Wishart prior on a covariance.

    (Ψ + S) / (ν + n + d + 1): the posterior mode, S the scatter about the mean

    Parameters
    ----------
    dof : float
        ν, above d − 1: the larger, the more the prior counts.
    scale : float, or array-like of shape (d, d)
        Ψ: a matrix, or one number for that times the identity. Without rows the covariance is Ψ/(ν + d + 1).

    See Also
    --------
    deciban.GaussianDiscriminant : Takes it as `prior`.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.priors import InverseWishart
    >>> InverseWishart(3.0, 1.0).mode(np.array(4.0), np.eye(2))
    array([[0.2, 0. ],
           [0. , 0.2]])
    """

    dof: float
    scale: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _as_tuples("InverseWishart: scale", self.scale))
        require(isfinite(self.dof), f"InverseWishart: dof must be a number, not {self.dof}")

    def mode(self, count: FloatArray, scatter: FloatArray) -> FloatArray:
        """The covariance, from n and S.

        Parameters
        ----------
        count : array
            n.
        scatter : array of shape (…, d, d)
            S.

        Returns
        -------
        array of shape (…, d, d)
            The posterior mode.

        Raises
        ------
        DecibanError
            If ν is too small, or Ψ has another shape.
        """
        d = scatter.shape[-1]
        require(self.dof > d - 1, f"InverseWishart: dof must be above {d - 1} for {d} columns")
        scale = np.asarray(self.scale, dtype=np.float64)
        psi = scale * np.eye(d) if scale.ndim == 0 else scale
        require(psi.shape == (d, d), f"InverseWishart: scale has shape {psi.shape}, the block has {d} columns")
        mode: FloatArray = (psi + scatter) / (self.dof + np.asarray(count)[..., np.newaxis, np.newaxis] + d + 1.0)
        return mode.reshape(scatter.shape)


def _as_tuples(name: str, table: ArrayLike) -> ArrayLike:
    """Arrays do not compare as one value; tuples do, and priors must."""
    try:
        numbers = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    require(numbers.ndim in (0, 2) and np.isfinite(numbers).all(), f"{name} must be a number or a matrix of numbers")
    return tuple(map(tuple, numbers.tolist())) if numbers.ndim else table

r"""Calibrated probabilities that two rows belong together, from distances of held-out pairs, and suspicious answers.

A non-negative logistic model: with the distances :math:`d_1, \ldots, d_K` of a pair in K spaces,

.. math::
    P(\text{same}) = \sigma\Bigl(a - \sum_k b_k d_k\Bigr), \qquad b_k \ge 0,

fitted to held-out pairs by maximum likelihood with the penalty :math:`(b_k s_k)^2 / 2`, :math:`s_k` the standard
deviation of :math:`d_k`; a is free. No slope can be negative, so a longer pair is never the more probable one, and
where distances do not separate the two kinds all slopes are 0 and the probability is the share of must-links.

Answers need not be about random pairs: often as many must-links are asked for as cannot-links, whatever the number of
groups. Such a model says "same" too often of two random rows. :func:`base_rate` estimates the share :math:`\pi` of
pairs that belong together among random ones by the distances of these (Saerens et al. 2002 [1]_), and
:meth:`PairModel.at_base_rate` moves the model there: only a changes. Few answers leave the model uncertain:
:meth:`PairModel.cautious` is the probability when the logarithmic odds are lowered by their standard error.

The model above is one of *answers*. To say which of them are wrong takes a model of what is true, and one of mistakes:

.. math::
    P(\text{truly same}) = x + (1 - 2 x)\, \sigma\Bigl(a - \sum_k b_k d_k\Bigr), \qquad
    P(\text{said same}) = e + (1 - 2 e)\, P(\text{truly same}),

e the share of wrong answers, which is learned (:func:`fit_with_mistakes`), and x = 0.02 the share of exceptions: pairs
that belong together although they look different, or the other way round. Without exceptions a single right answer
about two odd rows would be taken for a mistake with near certainty. Given an answer, Bayes' rule says how probable it
is that the answer is wrong (:func:`probability_wrong`).

In a view (:class:`PairProbability`) :math:`d_k` is the distance of a pair in the first k directions, k = 1, 2, 4, ...
up to all, and the model is moderated; docs/probabilities.md says for which pairs and rows it holds.

References
----------
.. [1] M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities: a
   simple procedure", Neural Computation 14, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from pairlens._optional import require
from pairlens.engines import Float64, IntArray, one_blas_thread
from pairlens.exceptions import ArgumentError
from pairlens.judging.held_out import HeldOutDistances, distance_columns, pair_weights

MISTAKES = np.array([0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4])
"""Shares of wrong answers that are tried."""
MISTAKES_PRIOR = 10.0
"""The share has the prior density (1 - e) to this power: without evidence, mistakes are rare."""
MISTAKES_PENALTY = 0.1
EXCEPTIONS = 0.02
BASE_RATE_ANSWERS = 2.0
"""Answers that the share of must-links among all of them counts as, where the base rate is estimated."""
TOLERANCE = 1e-11
POLISH_STEPS = 5
CALIBRATION_FOLDS = 3
FEWEST_OF_A_KIND = 3
"""Pairs of a kind below which nothing is calibrated."""
STANDS_OUT = 0.6
ONE_VIEW_STANDS_OUT = 0.4
"""Suspicions beyond which an answer stands out, by several spaces and by one view: about 1 % of right answers do."""
ONE_VIEW_PENALTY = 1.0
"""One view of few directions says less about what is true than the spaces of PairMap together."""


@dataclass(frozen=True)
class PairModel:
    r"""The model :math:`P(\text{same}) = x + (1 - 2 x) \sigma(a - \sum_k b_k d_k)`, with no negative slope.

    `exceptions` is x: pairs that belong together however far they are apart, or do not however near. `centre` is the
    mean of the distances that the model was fitted to, `covariance` that of the logarithmic odds there and of the
    slopes; slopes that are 0 are taken as known.
    """

    intercept: float
    slopes: Float64
    exceptions: float = 0.0
    centre: Float64 | None = None
    covariance: Float64 | None = None

    def __call__(self, distances: Float64) -> Float64:
        """Return probabilities of pairs whose distances in each space are the columns."""
        sharp = expit(self.intercept - distances @ self.slopes)
        return np.asarray(self.exceptions + (1 - 2 * self.exceptions) * sharp)

    def cautious(self, distances: Float64) -> Float64:
        """Return probabilities at logarithmic odds that are one standard error lower.

        They are near those of the model where many answers agree, and low where the answers are few or the distances
        unlike those of all answered pairs. Only models of :func:`fit_pair_model` know their errors.
        """
        error = np.sqrt(self.log_odds_variance(distances))
        return np.asarray(expit(self.intercept - distances @ self.slopes - error))

    def log_odds_variance(self, distances: Float64) -> Float64:
        """Return the variance of the logarithmic odds. Only models of :func:`fit_pair_model` know it."""
        assert self.centre is not None
        assert self.covariance is not None
        design = np.column_stack([np.ones(len(distances)), self.centre - distances])
        return np.maximum(np.einsum("ij,ij->i", design @ self.covariance, design), 0.0)

    def at_base_rate(self, share: float, rate: float) -> PairModel:
        """Return the model for pairs that belong together at another rate than the share among the answers."""
        return replace(self, intercept=self.intercept + float(logit(rate) - logit(share)))


def base_rate(model: PairModel, distances: Float64, share: float, n_answers: float) -> float:
    r"""Return the share of pairs that belong together among random pairs, from their distances alone.

    With :math:`q_i(\pi)` the probability of pair i at the base rate :math:`\pi`, by a model without exceptions, it is
    the solution of

    .. math::
        \pi = \frac{m\, \overline{q(\pi)} + 2 s}{m + 2},

    the fixed point of the EM algorithm of Saerens et al. with a prior: the share s of must-links among the m answers
    counts as two answers, which decides where distances cannot. Random pairs are many, but what is known of their kind
    is from m answers, so together they count as m.

    >>> model = PairModel(3.0, np.array([4.0]))
    >>> far = np.array([[0.1], [1.4], [1.5], [1.6], [1.7]])
    >>> round(base_rate(model, far, 0.5, 100), 2)
    0.16
    """
    ratio = model.intercept - distances @ model.slopes - logit(share)

    def gap(rate: float) -> float:
        together = float(expit(ratio + logit(rate)).mean())
        return n_answers * (together - rate) + BASE_RATE_ANSWERS * (share - rate)

    # The penalised likelihood is concave in the rate: there is one solution, and the gap changes its sign there.
    return float(brentq(gap, 0.0, 1.0, xtol=1e-15, rtol=1e-14))


def fit_pair_model(distances: Float64, same: NDArray[np.bool_], weight: Float64) -> PairModel:
    """Fit the model to weighted pairs that took no part in learning the spaces.

    With pairs of one kind only, or none, all slopes are 0 and the probability is (same + 1) / (all + 2).
    """
    model = _fit(distances, same, weight, odd=0.0, penalty=1.0)[0]
    return _with_errors(model, distances, weight) if len(distances) else model


def fit_moderated_model(distances: Float64, same: NDArray[np.bool_], weight: Float64) -> PairModel:
    r"""Fit the model for prediction: its slopes are lowered by what the answers leave unknown of them.

    The best model of few answers is too sure of itself. Averaged over all models that the answers allow, a probability
    :math:`\sigma(z)` is about :math:`\sigma(\kappa z)`, :math:`\kappa = (1 + \pi v / 8)^{-1/2}`, v the variance of z
    (MacKay 1992 [1]_). Here v is the mean over the answered pairs, so a longer pair is still never the more probable
    one, and a is such that the mean probability of the answered pairs stays the share of must-links.

    Parameters are those of :func:`fit_pair_model`.

    References
    ----------
    .. [1] D. J. C. MacKay, "The evidence framework applied to classification networks", Neural Computation 4, 1992.
    """
    model = fit_pair_model(distances, same, weight)
    if not model.slopes.any():
        return model
    slopes = model.slopes / np.sqrt(1 + np.pi / 8 * np.average(model.log_odds_variance(distances), weights=weight))
    lowered, share = distances @ slopes, np.average(same, weights=weight)
    # All probabilities are below the share at one end, and above it at the other.
    ends = logit(share) + lowered.min() - 1, logit(share) + lowered.max() + 1
    intercept = brentq(lambda a: np.average(expit(a - lowered), weights=weight) - share, *ends, xtol=1e-14)
    return PairModel(float(intercept), slopes)


def fit_with_mistakes(
    distances: Float64, same: NDArray[np.bool_], weight: Float64, *, penalty: float = MISTAKES_PENALTY
) -> tuple[tuple[PairModel, ...], Float64]:
    """Fit the model of what is true for each of several shares of wrong answers, and say how probable each share is.

    The prior of the share has the density :math:`11 (1 - e)^{10}` as after ten answers known to be right. The penalty
    of the slopes is by default a tenth of that of :func:`fit_pair_model`: by several spaces together, truth is told
    apart more sharply than answers are. There is a model for each share of :data:`MISTAKES`, and their posterior
    probabilities.
    """
    models, log_posterior = [], np.log(np.gradient(MISTAKES)) + MISTAKES_PRIOR * np.log1p(-MISTAKES)
    start = None
    for number, share in enumerate(MISTAKES):
        # Exceptions and mistakes look alike from outside.
        odd = float(share + EXCEPTIONS - 2 * share * EXCEPTIONS)
        model, loss, start = _fit(distances, same, weight, odd=odd, penalty=penalty, start=start)
        models.append(PairModel(model.intercept, model.slopes, EXCEPTIONS))
        log_posterior[number] -= loss
    probable = np.exp(log_posterior - log_posterior.max())
    return tuple(models), probable / probable.sum()


def probability_wrong(together: Float64, same: NDArray[np.bool_], mistakes: float) -> Float64:
    r"""Return how probable it is that an answer is wrong, given what was answered.

    With the probability p that what was answered is true, by a model that did not see the answer, and the share e of
    wrong answers, it is :math:`e (1 - p) / (e (1 - p) + (1 - e) p)`.

    >>> probability_wrong(np.array([0.5, 0.01]), np.array([True, True]), 0.1).round(2)
    array([0.1 , 0.92])
    """
    right = np.where(same, together, 1 - together)
    wrong = mistakes * (1 - right)
    return np.asarray(wrong / (wrong + (1 - mistakes) * right))


@dataclass(frozen=True)
class PairProbability:
    """Turn distances in a view, by the total variance of its first directions, into probabilities."""

    model: PairModel
    variance: Float64
    share: float

    @classmethod
    def of(cls, held_out: HeldOutDistances, variance: Float64) -> PairProbability:
        """Fit the model to held-out pairs; `variance` is that of each direction of the view that measures new pairs."""
        n_dims = min(held_out.must.shape[1], len(variance))
        squared = np.concatenate([held_out.must, held_out.cannot])[:, :n_dims]
        same = np.repeat([True, False], [len(held_out.must), len(held_out.cannot)])
        weight = pair_weights(held_out.known)
        model = fit_moderated_model(distance_columns(squared), same, weight)
        total = np.cumsum(variance[:n_dims], dtype=np.float64)
        return cls(model, np.where(total > 0, total, 1.0), float(np.average(same, weights=weight)))

    def __call__(self, left: Float64, right: Float64, base_rate: float | None = None) -> Float64:
        """Return the probabilities of pairs of embedded rows."""
        n_dims = len(self.variance)
        squared = np.cumsum((left[:, :n_dims] - right[:, :n_dims]) ** 2, axis=1) / (2 * self.variance)
        model = self.model if base_rate is None else self.model.at_base_rate(self.share, checked_rate(base_rate))
        return model(distance_columns(squared))


def checked_rate(base_rate: float) -> float:
    """Return the base rate; ArgumentError if it is not a share."""
    if not 0 < base_rate < 1:
        reason = "must be above 0 and below 1, the share of pairs that belong together among those to be judged"
        raise ArgumentError("base_rate", base_rate, reason)
    return float(base_rate)


def _with_errors(model: PairModel, distances: Float64, weight: Float64) -> PairModel:
    """Return the model with the covariance of its parameters: the inverse Hessian of the penalised loss."""
    centre, spread = distances.mean(axis=0), distances.var(axis=0)
    free = np.flatnonzero(np.concatenate([[True], model.slopes > 0]))
    design = np.column_stack([np.ones(len(distances)), centre - distances])[:, free]
    together = model(distances)
    curvature = (design * (weight * together * (1 - together))[:, None]).T @ design
    curvature += np.diag(np.concatenate([[0.0], spread])[free])
    covariance = np.zeros((len(centre) + 1, len(centre) + 1))
    covariance[np.ix_(free, free)] = np.linalg.pinv(curvature, hermitian=True)
    return replace(model, centre=centre, covariance=covariance)


def _fit(
    distances: Float64,
    same: NDArray[np.bool_],
    weight: Float64,
    *,
    odd: float,
    penalty: float,
    start: Float64 | None = None,
) -> tuple[PairModel, float, Float64 | None]:
    """Return the model, its penalised loss, and the solution as a start for a similar problem.

    A share `odd` of the pairs is of the other kind than the model says.
    """
    n_spaces = distances.shape[1]
    if same.all() or not same.any():
        share = (np.count_nonzero(same) + 1) / (len(same) + 2)
        return PairModel(float(logit(share)), np.zeros(n_spaces)), 0.0, None
    mean, deviation = distances.mean(axis=0), distances.std(axis=0)
    # A space in which all pairs are equally long, up to rounding, is not used.
    varies = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    unit = np.where(varies, deviation, np.inf)
    standard = (distances - mean) / unit
    sign = np.where(same, 1.0, -1.0)

    def loss(theta: Float64) -> tuple[float, Float64]:
        a, b = theta[0], theta[1:]
        margin = sign * (a - standard @ b)
        right = expit(margin)
        likely = odd + (1 - 2 * odd) * right
        value = -weight @ (np.log(likely) if odd else -np.logaddexp(0.0, -margin)) + penalty * (b @ b) / 2
        slope = expit(-margin) if odd == 0 else (1 - 2 * odd) * right * expit(-margin) / likely
        pull = -weight * slope * sign
        return float(value), np.concatenate([[pull.sum()], -standard.T @ pull + penalty * b])

    if start is None:
        share = np.average(same, weights=weight)
        start = np.concatenate([[logit(share)], np.zeros(n_spaces)])
    bounds = [(None, None)] + [(0.0, None) if free else (0.0, 0.0) for free in varies]
    options = {"maxiter": 1000, "ftol": 0.0, "gtol": TOLERANCE}
    # The solver factorises matrices of a few rows: threads that wait for each other took 17 times as long.
    with one_blas_thread():
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        # Without odd pairs the problem is convex, and its solution does not depend on the processor.
        theta = found.x if odd else _polished(found.x, standard, same, weight, penalty)
    slopes = theta[1:] / unit
    return PairModel(float(theta[0] + slopes @ mean), slopes), float(found.fun), theta


def _polished(theta: Float64, standard: Float64, same: NDArray[np.bool_], weight: Float64, penalty: float) -> Float64:
    """Take a few Newton steps in the slopes that are not at their bound: all digits, where L-BFGS gives half."""
    free = np.concatenate([[True], theta[1:] > 0])
    design = np.column_stack([np.ones(len(standard)), -standard])[:, free]
    ridge = penalty * np.diag(np.concatenate([[0.0], np.ones(free.sum() - 1)]))
    x = theta[free]
    for _ in range(POLISH_STEPS):
        together = expit(design @ x)
        gradient = design.T @ (weight * (together - same)) + ridge @ x
        curvature = (design * (weight * together * (1 - together))[:, None]).T @ design + ridge
        x = x - np.linalg.solve(curvature, gradient)
    result = theta.copy()
    # A slope that was all but zero may end below it.
    result[free] = np.concatenate([x[:1], np.maximum(x[1:], 0.0)])
    return result


@dataclass(frozen=True)
class SuspiciousPairs:
    """Pairs in order of suspicion, the most suspicious first.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    link : int array of shape (n_pairs,)
        +1 for a must-link, -1 for a cannot-link.
    suspicion : array of shape (n_pairs,)
        Estimated probability that the answer is wrong, from models that did not see it.
    together : array of shape (n_pairs,)
        Estimated probability that the rows belong together, from models that did not see the answer.
    threshold : float
        Suspicion beyond which an answer stands out. About 1 % of right answers do.
    fold : int array of shape (n_pairs,) or None
        Pairs with the same number were judged by the same model; None if a pair was judged by several.
    """

    pairs: NDArray[np.int64]
    link: NDArray[np.int64]
    suspicion: NDArray[np.float64]
    together: NDArray[np.float64]
    threshold: float
    fold: NDArray[np.int64] | None = None

    @classmethod
    def ranked(
        cls,
        pairs: NDArray[np.int64],
        same: NDArray[np.bool_],
        suspicion: NDArray[np.float64],
        together: NDArray[np.float64],
        threshold: float,
        fold: NDArray[np.int64] | None = None,
    ) -> SuspiciousPairs:
        """Return pairs, of which `same` were said to belong together, in order of suspicion."""
        order = np.argsort(-suspicion, kind="stable")
        link = np.where(same, 1, -1)
        fold = None if fold is None else fold[order]
        return cls(pairs[order], link[order], suspicion[order], together[order], threshold, fold)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def standing_out(self) -> SuspiciousPairs:
        """The pairs with a suspicion above the threshold. Often there are none."""
        out = slice(int(np.count_nonzero(self.suspicion > self.threshold)))
        return replace(
            self,
            pairs=self.pairs[out],
            link=self.link[out],
            suspicion=self.suspicion[out],
            together=self.together[out],
            fold=None if self.fold is None else self.fold[out],
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns a, b, link and suspicion."""
        pandas = require("pandas", extra="io", purpose="SuspiciousPairs.to_frame")
        return pandas.DataFrame(
            {
                "a": self.pairs[:, 0],
                "b": self.pairs[:, 1],
                "link": np.where(self.link > 0, "must", "cannot"),
                "suspicion": self.suspicion,
            }
        )


def suspicion_of(
    distances: NDArray[np.float64],
    same: NDArray[np.bool_],
    weight: NDArray[np.float64],
    fold: IntArray,
    penalty: float = MISTAKES_PENALTY,
) -> NDArray[np.float64]:
    """Return how probable it is that each answer is wrong, by models fitted to the answers of other folds.

    The distances are those in spaces that did not see the pairs, and `penalty` that of the slopes of the models.
    """
    probable = fit_with_mistakes(distances, same, weight, penalty=penalty)[1]
    wrong = np.zeros(len(distances))
    for number in np.unique(fold):
        inside = fold == number
        models = fit_with_mistakes(distances[~inside], same[~inside], weight[~inside], penalty=penalty)[0]
        for share, chance, truth in zip(MISTAKES, probable, models):
            wrong[inside] += chance * probability_wrong(truth(distances[inside]), same[inside], float(share))
    return wrong


def suspicious_pairs(held_out: HeldOutDistances, n_dims: int | None = None) -> SuspiciousPairs:
    """Rank pairs by how probable it is that their answers are wrong, given distances in views that did not see them.

    The models of what is true and of mistakes are those of this module; each answer is judged
    by models fitted to other answers.

    Parameters
    ----------
    held_out : HeldOutDistances
    n_dims : int, optional
        Number of directions of the view; all that were measured by default.
    """
    if not isinstance(held_out, HeldOutDistances):
        raise TypeError(
            f"held_out must be HeldOutDistances, as held_out_distances gives them, got {type(held_out).__name__}; "
            "PairLens, LinearPairLens and PairMap have a method suspicious_pairs() of their own."
        )
    squared = np.concatenate([held_out.must, held_out.cannot])[:, :n_dims]
    same = np.repeat([True, False], [len(held_out.must), len(held_out.cannot)])
    fold = np.random.default_rng(0).permutation(len(same)) % CALIBRATION_FOLDS
    columns, weight = np.sqrt(distance_columns(squared)), pair_weights(held_out.known)
    wrong = suspicion_of(columns, same, weight, fold, ONE_VIEW_PENALTY)
    # One slope: the order of the pairs stays that of their distances.
    whole = np.sqrt(squared[:, -1:])
    together = fit_pair_model(whole, same, weight)(whole)
    pairs = np.concatenate([held_out.known.must_link, held_out.known.cannot_link])
    return SuspiciousPairs.ranked(pairs, same, wrong, together, ONE_VIEW_STANDS_OUT)

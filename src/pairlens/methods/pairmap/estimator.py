"""PairMap, the estimator."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._optional import require
from pairlens._sklearn import Interval, check_is_fitted, fit_context, validate_data
from pairlens._threads import threads_for
from pairlens._warnings import warn_user
from pairlens.engines.blocks import IntArray, Rows
from pairlens.engines.neighbors import neighbors
from pairlens.exceptions import SupervisionWarning
from pairlens.methods._base import DTYPES, PairView
from pairlens.methods._held_out import auc, auc_error
from pairlens.methods._supervision import combine
from pairlens.methods._suspicion import SuspiciousPairs
from pairlens.methods.pairmap.affinities import joined, long_range, neighbor_affinities, random_partners
from pairlens.methods.pairmap.evidence import Evidence, evidence_of
from pairlens.methods.pairmap.layout import align, lay_out, parted, principal_start
from pairlens.methods.pairmap.placement import local_scale, nearest_known, place
from pairlens.methods.pairmap.probability import FEWEST_OF_A_KIND, Judgement, enough_pairs, judged, pair_distances
from pairlens.methods.pairmap.spaces import Spaces, fit_learned, fit_raw
from pairlens.spectral.pairproblem import near_graph
from pairlens.supervision import Constraints
from pairlens.supervision._sampling import as_generator

__all__ = ["PairMap"]

Float64 = NDArray[np.float64]

N_NEIGHBORS = 10
EXAGGERATION = 12.0
EARLY_MOMENTUM, MOMENTUM = 0.5, 0.8
WARM_SHARE = 0.2
"""Iterations of a warm start, as a share of those after the exaggeration."""


class PairMap(PairView):
    r"""A neighbour map in two dimensions that answers improve.

    A t-SNE of the rows in a metric that pairs have shaped, with a second, long-range attraction: rows that probably
    belong together attract each other at any distance. The affinities are

    .. math::
        \frac{Q + \lambda L / \sum L}{1 + \lambda}, \qquad L_{ij} = \max(0, 2 P_{ij} - 1),

    Q those of t-SNE and P the calibrated probability that two rows belong together, from held-out pairs. The strength
    :math:`\lambda \le 3` vanishes where the pairs cannot tell.

    Choose it for a picture: islands that correspond to groups, and neighbours that stay neighbours. For directions to
    compute with, or more than two, take :class:`PairLens`.

    Parameters
    ----------
    n_components : {1, 2}, default=2
        Dimensions of the map.
    perplexity : float, default=30
        Neighbours that a row attracts, about; at most (n_samples - 1) / 3 - 1.
    n_iter : int, default=500
        Iterations after the early exaggeration.
    early_exaggeration_iter : int, default=250
        Iterations before, in which attraction is 12 times as strong and groups form.
    init : array of shape (n_samples, n_components), PairMap or None, default=None
        A former map to start from: the rows stay near where they were, without early exaggeration and with a fifth of
        `n_iter`. Of a fitted PairMap, the places that it gives to the rows; one that is not fitted, as
        :func:`sklearn.base.clone` leaves it, is no start.
    n_jobs : int or None, default=1
        Threads of the layout. With one, the map is the same every time.
    verbose : int, default=0
        Whether to report progress, to standard error.
    random_state : int, RandomState, Generator or None, default=None
        Makes the map repeatable: folds, partners and the start.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The map.
    long_range_ : float
        What the answers weighed: the share of all attraction that is long-range, from 0 to 0.75.
    auc_, auc_error_ : float
        AUC with which P tells held-out pairs apart, and its standard error; NaN with fewer than three pairs of a kind.
    mistakes_ : float
        Estimated share of wrong answers; NaN where `auc_` is.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    PairLens : A view by eigenvectors, in any number of dimensions.

    Notes
    -----
    Needs openTSNE for :meth:`fit` (``pip install 'pairlens[map]'``), and nothing for :meth:`transform`. A new row takes
    a place among its 15 nearest training rows; one that coincides with a training row takes its place, and of several
    that are equal the first one's.

    The layout depends on the last digits: another processor may draw another map of the same groups.

    References
    ----------
    .. [1] The method is this library's own: docs/maps.md defines it and shows how it stands.
    .. [2] L. van der Maaten, G. Hinton, "Visualizing Data using t-SNE", JMLR 9, 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, PairMap
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> PairMap(random_state=0).fit(X, constraints=pairs).embedding_.shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, 2, closed="both")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "early_exaggeration_iter": [Interval(Integral, 0, None, closed="left")],
        "init": ["array-like", PairView, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30,
        n_iter: int = 500,
        early_exaggeration_iter: int = 250,
        init: Any = None,
        n_jobs: int | None = 1,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_iter = n_iter
        self.early_exaggeration_iter = early_exaggeration_iter
        self.init = init
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            All rows, those about which nothing is known too; at least three.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. All pairs of labelled rows become constraints.
        constraints : Constraints, optional
            Pairs of rows that belong together or do not. Adds to what `y` says.

        Returns
        -------
        self : object
        """
        require("openTSNE", extra="map", purpose="PairMap")
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", ensure_min_samples=3)
        known = combine(y, constraints, rows.shape[0])
        former = self._former(X, rows.shape[0])
        rng = as_generator(self.random_state)
        if known.n_pairs == 0:
            warn_user(
                "PairMap: no pairs were given, so the map shows the rows alone. Give must-links and cannot-links by "
                "constraints=, or labels by y.",
                SupervisionWarning,
            )
        with threads_for(rows.shape):
            self._draw(self._learn(rows, known, rng), former, rng)
        self.embedding_ = self._map.astype(rows.dtype)
        return self

    def _former(self, X: ArrayLike, n: int) -> Float64 | None:
        """The former map's place for each row."""
        if self.init is None or (isinstance(self.init, PairView) and not hasattr(self.init, "embedding_")):
            return None
        start = np.asarray(self.init.transform(X) if isinstance(self.init, PairView) else self.init, dtype=np.float64)
        if start.shape != (n, self.n_components):
            raise ValueError(
                f"init has the shape {start.shape}, and a start of this map has ({n}, {self.n_components}): one place "
                "for each row of X."
            )
        if not np.isfinite(start).all():
            raise ValueError("init holds NaN or infinity; every row needs a place to start from.")
        return start

    def _learn(self, rows: Rows, known: Constraints, rng: np.random.Generator) -> tuple[Float64, ...]:
        """Learn the spaces and the probability that two rows belong together; gives the rows in the spaces."""
        seed = int(rng.integers(2**31))
        raw = fit_raw(rows)
        scores = raw.scores(rows)
        plain = raw(rows)

        def learn(pairs: Constraints) -> tuple[Spaces, tuple[Float64, ...], Evidence]:
            learned = fit_learned(rows, scores, pairs, varies=raw.varies, kernel=enough_pairs(known), seed=seed)
            seen = (plain, *learned(rows, scores))
            walk = near_graph(local_metric(seen), N_NEIGHBORS).walk
            return Spaces(raw, learned), seen, evidence_of(walk, pairs)

        def measure(train: Constraints, pairs: IntArray) -> Float64:
            _, seen, evidence = learn(train)
            return _measured(seen, evidence, pairs)

        self._report("learning spaces")
        self._spaces, seen, self._evidence = learn(known)
        self._rows = local_metric(seen)
        self._report("judging held-out pairs")
        self._judgement: Judgement | None = judged(known, measure, rng)
        self._prior = (known.n_must_link + 1) / (known.n_pairs + 2)
        self.auc_ = self.auc_error_ = self.mistakes_ = float("nan")
        if self._judgement is not None:
            together, same = self._judgement.together, self._judgement.same
            self.auc_ = auc(-together[same], -together[~same])
            self.auc_error_ = auc_error(int(same.sum()), int((~same).sum()))
            self.mistakes_ = self._judgement.mistakes
        return seen

    def _draw(self, seen: tuple[Float64, ...], former: Float64 | None, rng: np.random.Generator) -> None:
        """Affinities and layout."""
        V = self._rows
        n = len(V)
        perplexity = max(1.0, min(float(self.perplexity), (n - 1) / 3 - 1))
        found = neighbors(V, n_nearest=min(n - 1, max(1, int(3 * perplexity))))
        assert found.nearest is not None
        assert found.nearest_distance is not None
        near = neighbor_affinities(found.nearest, found.nearest_distance, perplexity)
        far = None
        if self._judgement is not None:
            pairs = random_partners(n, rng)
            together = self._judgement.model(_measured(seen, self._evidence, pairs))
            far = long_range(pairs, together, self._judgement.prior, n)
        self.long_range_ = 0.0 if far is None else far.share
        affinities = joined(near, far)
        if former is None:
            start = principal_start(V, self.n_components, rng)
            phases = [
                (self.early_exaggeration_iter, EXAGGERATION, EARLY_MOMENTUM),
                (self.n_iter, 1.0, MOMENTUM),
            ]
        else:
            start = parted(former, former.std() or 1.0, rng)
            phases = [(round(WARM_SHARE * self.n_iter), 1.0, MOMENTUM)]
        self.n_iter_ = sum(count for count, _, _ in phases)
        moved = lay_out(
            affinities, start, phases, n_jobs=self.n_jobs, progress=self._progress if self.verbose else None
        )
        self._map = moved if former is None else align(moved, former)
        self._scale = local_scale(self._map)

    def _report(self, what: str) -> None:
        if self.verbose:
            print(f"PairMap: {what}", file=sys.stderr, flush=True)

    def _progress(self, iteration: int) -> None:
        self._report(f"iteration {iteration} of {self.n_iter_}")

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None
    ) -> NDArray[Any]:
        """Draw the map and give the places of the rows.

        Parameters
        ----------
        X, y, constraints
            As for :meth:`fit`.

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            :attr:`embedding_`.
        """
        return self.fit(X, y, constraints=constraints).embedding_

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Give rows a place in the map, those of :meth:`fit` or new ones. The map stays as it is.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", reset=False)
        found, weights = self._near(self._spaces(rows))
        return place(found, weights, self._map, self._scale).astype(rows.dtype, copy=False)

    def _near(self, seen: tuple[Float64, ...]) -> tuple[IntArray, Float64]:
        return nearest_known(local_metric(seen), self._rows)

    def pair_proba(self, A: ArrayLike, B: ArrayLike) -> Float64:
        """Probability that rows belong together, pair by pair.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            The rows of the pairs, those of :meth:`fit` or new ones. What answers say about a new row is what they say
            about its nearest training rows.

        Returns
        -------
        together : array of shape (n_pairs,)
            With too few pairs to hold any out it is the same for all: (must-links + 1) / (pairs + 2).
        """
        check_is_fitted(self)
        left: Rows = validate_data(self, A, dtype=DTYPES, accept_sparse="csr", reset=False)
        right: Rows = validate_data(self, B, dtype=DTYPES, accept_sparse="csr", reset=False)
        if left.shape[0] != right.shape[0]:
            raise ValueError(
                f"A has {left.shape[0]} rows and B {right.shape[0]}: row i of A and row i of B are one pair, so both "
                "need the same number."
            )
        if self._judgement is None:
            return np.full(left.shape[0], self._prior)
        seen, reach = zip(*(self._reached(rows) for rows in (left, right)))
        return self._judgement.model(pair_distances(*seen, self._evidence(*reach)))

    def _reached(self, rows: Rows) -> tuple[tuple[Float64, ...], Float64]:
        """Rows in the spaces, and what answers say about them."""
        seen = self._spaces(rows)
        found, weights = self._near(seen)
        return seen, np.einsum("ij,ijk->ik", weights, self._evidence.reach[found])

    def suspicious_pairs(self) -> SuspiciousPairs:
        """The pairs of :meth:`fit`, those that look most like wrong answers first.

        Each pair is judged by spaces and probabilities that did not see it. Its suspicion is the probability that the
        answer is wrong, given the answer and the share of wrong answers that all of them suggest (:attr:`mistakes_`).

        Returns
        -------
        SuspiciousPairs
            With the arrays ``pairs``, ``link`` (+1 or -1) and ``suspicion``, and ``to_frame()``.
        """
        check_is_fitted(self)
        if self._judgement is None:
            raise ValueError(
                f"suspicious_pairs needs at least {FEWEST_OF_A_KIND} must-links and {FEWEST_OF_A_KIND} cannot-links in "
                "fit: with fewer, none can be held out and judged by the others."
            )
        order = np.argsort(-self._judgement.wrong, kind="stable")
        link = np.where(self._judgement.same, 1, -1)
        return SuspiciousPairs(self._judgement.pairs[order], link[order], self._judgement.wrong[order])

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


def local_metric(seen: tuple[Float64, ...]) -> Float64:
    """V: the rows as they are beside the spaces of LinearPairLens and PairLens."""
    return np.hstack(seen[:3])


def _measured(seen: tuple[Float64, ...], evidence: Evidence, pairs: IntArray) -> Float64:
    """Distances of pairs of training rows."""
    left, right = (tuple(space[pairs[:, end]] for space in seen) for end in (0, 1))
    return pair_distances(left, right, evidence.of_pairs(pairs))

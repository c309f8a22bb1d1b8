"""PairMap, the estimator."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pairlens import engines
from pairlens._optional import require
from pairlens._sklearn import COUNT, SEED, Interval, StrOptions, as_generator, estimator, parameter
from pairlens.engines import EngineRows, Float64, IntArray, Placement, Rows
from pairlens.graphs.nearest import SEARCHES, near_graph, nearest_rows
from pairlens.judging import SuspiciousPairs, auc, auc_standard_error
from pairlens.judging.probability import FEWEST_OF_A_KIND, STANDS_OUT, checked_rate
from pairlens.judging.views import check_paired
from pairlens.learning import spaces
from pairlens.learning.spaces import Fold, PreparedRows, RawSpace, Stack, TaughtSpaces
from pairlens.methods.base import PairTransformer, checked_standardiser, warn_without_pairs
from pairlens.methods.lenses import JudgedByHeldOutPairs
from pairlens.methods.pairmap import attraction, device, layout
from pairlens.methods.pairmap.attraction import Evidence, Judgement
from pairlens.supervision import Constraints

N_NEIGHBORS = 10
ITERATIONS = Interval(Integral, 0, None, closed="left")
WIDEST = 1e7
"""Places of a start beyond which no force between rows is left in double precision."""
WARM_SHARE = 0.1
"""Iterations of a warm start, as a share of those after the exaggeration."""


@dataclass(frozen=True)
class MapSpaces:
    """Metric of a map: the rows as they are and the taught spaces, side by side with their shares of the variance.

    Rows that are all equal have taught nothing.
    """

    raw: RawSpace
    taught: TaughtSpaces | None
    shares: Float64

    def __call__(self, X: Rows) -> tuple[Float64, ...]:
        """Return rows in each of the spaces."""
        rows = X.astype(np.float64, copy=False)
        return (self.raw(rows),) if self.taught is None else (self.raw(rows), *self.taught(rows))

    def metric(self, X: Rows) -> Float64:
        """Return rows in the metric."""
        return spaces.side_by_side(self(X), self.shares)


@estimator
class PairMap(JudgedByHeldOutPairs):
    r"""A neighbour map in two dimensions whose notion of "same" is that of the answers.

    A t-SNE of the rows in a metric that is stacked from four spaces: the rows as they are, and the three that answers
    have taught (:class:`PairLens`). Held-out answers decide how much each counts. A second, long-range attraction joins
    rows that probably belong together at any distance. The affinities are

    .. math::
        \frac{Q + \lambda L / \sum L}{1 + \lambda}, \qquad L_{ij} = \max(0, 2 P^-_{ij} - 1),

    Q those of t-SNE and :math:`P^-` a lower bound, by one standard error, of the calibrated probability that two rows
    belong together, from held-out pairs and at the base rate of random pairs of rows. The strength
    :math:`\lambda \le 3` vanishes where the pairs cannot tell.

    Choose it for a picture: islands that correspond to groups, and neighbours that stay neighbours. For directions to
    compute with, or more than two, take :class:`PairLens`.

    Parameters
    ----------
    n_components : {1, 2}, default=2
        Dimensions of the map.
    perplexity : float, default=30
        Neighbours that a row attracts, about; at most (n_samples - 1) / 3 - 1.
    max_iter : int, default=500
        Iterations after the early exaggeration.
    early_exaggeration_iter : int, default=250
        Iterations before, in which attraction is 12 times as strong and groups form.
    init : array of shape (n_samples, n_components), PairMap or None, default=None
        A former map to start from: the rows stay near where they were, without early exaggeration and with a tenth of
        `max_iter`. Of a fitted PairMap, the places that it gives to the rows; if it was fitted to the same rows, what
        depends on them alone is not computed again. One that is not fitted, as :func:`sklearn.base.clone` leaves it,
        is not used.
    n_landmarks : int, default=10000
        Number of rows that are laid out where there are more: those in pairs, and others drawn evenly. The rest are
        placed among them, and then all move a little. Fewer are faster; groups stay as they are, and where they are
        small and many, some rows get another nearest neighbour (docs/maps.md). Of a tensor, spaces and probabilities
        are learned from the landmarks, and all rows are laid out.
    n_jobs : int or None, default=1
        Threads of the folds and of the layout; -1 for all cores. With more than one, the folds hold BLAS to one thread;
        the map does not depend on their number if BLAS has one thread in any case.
    verbose : int, default=0
        Whether to report progress, to standard error.
    random_state : int, RandomState, Generator or None, default=None
        Makes the map repeatable: folds, partners and the start.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The map, on the device of a tensor; of a large dask array that of the landmarks, and :meth:`transform` places
        all rows.
    space_weights_ : dict of dict
        For each space ("rows", "linear", "kernel", "diffusion") its `weight`, the share of the metric's variance that
        it brings in, and the `auc` with which distance in it tells held-out pairs apart. One minus the weight of the
        rows is what the answers decide.
    long_range_ : float
        The share of all attraction that is long-range, from 0 to 0.75.
    auc_, auc_error_ : float
        AUC with which P tells held-out pairs apart, and its standard error; NaN with fewer than three pairs of a kind.
    mistakes_ : float
        Estimated share of wrong answers; NaN where `auc_` is.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    PairLens : A view by eigenvectors, in any number of dimensions.

    Notes
    -----
    Needs openTSNE for :meth:`fit` (``pip install 'pairlens[map]'``) unless the rows are a tensor, which is laid out by
    torch where it is, and nothing for :meth:`transform`. Files and pickles hold arrays in place of tensors. A new row
    takes a place among its 15 nearest training rows; one that coincides with a training row takes its place, and of
    several that are equal the first one's.

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

    n_components: int = parameter(Interval(Integral, 1, 2, closed="both"), default=2, kw_only=False)
    perplexity: float = parameter(Interval(Real, 1, None, closed="left"), default=30)
    max_iter: int = parameter(ITERATIONS, default=layout.MAX_ITER)
    early_exaggeration_iter: int = parameter(ITERATIONS, default=layout.EARLY_ITER)
    init: Any = parameter("array-like", PairTransformer, None, default=None)
    n_landmarks: int = parameter(Interval(Integral, 3, None, closed="left"), default=spaces.LANDMARKS)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")
    standardize: bool = parameter("boolean", default=True)
    n_jobs: int | None = parameter(COUNT, Interval(Integral, None, -1, closed="right"), None, default=1)
    verbose: int = parameter("verbose", default=0)
    random_state: Any = parameter(*SEED, default=None)

    _fewest_rows: ClassVar = 3
    _fewest_judged = FEWEST_OF_A_KIND
    _rows_may_be: ClassVar = Placement.DEVICE
    _rows: Any = field(init=False)
    _map: Any = field(init=False)

    def _check_n_components(self, rows: Rows) -> None:
        """Accept any rows: a map has one or two dimensions, however few features there are."""

    @np.errstate(under="ignore")
    def _learn(self, rows: Rows, known: Constraints) -> None:
        rows, known, self._sample = self._within_reach(rows, known)
        if isinstance(rows, EngineRows):
            self._learn_on_device(rows, known)
            return
        require("openTSNE", extra="map", purpose="PairMap")
        same_rows = self._same_rows(rows)
        former = self._former(rows, same_rows)
        rng = as_generator(self.random_state)
        warn_without_pairs(self, known)
        landmarks = self._landmarks = spaces.chosen_landmarks(rows.shape[0], known.rows, rng, self.n_landmarks)
        if landmarks is None:
            seen, found = self._understand(rows, known, same_rows, rng)
            self._map = self._draw(self._rows, self._attraction(seen, found, rng), former, rng)
        else:
            learned = rows[landmarks], known[landmarks]
            seen, found = self._understand(*learned, same_rows, rng, stand_for=rows.shape[0])
            affinities = self._attraction(seen, found, rng)
            drawn = self._draw(self._rows, affinities, None if former is None else former[landmarks], rng)
            self._report("placing all rows")
            V = self._spaces.metric(rows)
            self._map = layout.with_placed(V, landmarks, drawn, affinities, n_jobs=self.n_jobs, search=self.neighbors)
            self._rows = V
            layout.ready_to_place(V, search=self.neighbors)
        if former is not None:
            self._map = layout.align(self._map, former)
        self._scale = layout.local_scale(self._map)
        self.embedding_ = self._map.astype(rows.dtype)

    def _former(self, rows: Rows, same_rows: bool) -> Float64 | None:
        """Return the place of each row in the former map."""
        if self.init is None or (isinstance(self.init, PairTransformer) and not hasattr(self.init, "embedding_")):
            return None
        if same_rows:
            start = self.init._map
        else:
            given: Any = getattr(rows, "tensor", rows)
            start = self.init.transform(given) if isinstance(self.init, PairTransformer) else self.init
            start = engines.as_numpy(start)
        start, wanted = np.asarray(start, dtype=np.float64), (rows.shape[0], self.n_components)
        if start.shape != wanted:
            raise ValueError(
                f"init has the shape {start.shape}, and a start of this map has {wanted}: one place for each row of X."
            )
        if not np.isfinite(start).all():
            raise ValueError("init holds NaN or infinity; every row needs a place to start from.")
        if np.abs(start).max(initial=0.0) > WIDEST:
            raise ValueError(
                f"init holds places up to {np.abs(start).max():.2g}, from which rows do not find back to each "
                "other. Give a former map, or other places divided by their size: a map is some ten to a hundred wide."
            )
        return start

    def _same_rows(self, rows: Rows) -> bool:
        """Return whether the map to start from is one of these very rows."""
        model = self.init
        if not isinstance(model, PairMap) or not hasattr(model, "embedding_"):
            return False
        if model.n_features_in_ != rows.shape[1] or len(model._rows) != rows.shape[0]:
            return False
        shares = model._spaces.shares
        plain = spaces.side_by_side([model._spaces.raw(rows.astype(np.float64, copy=False))], shares[:1])
        return model.standardize == self.standardize and np.array_equal(plain, model._rows[:, : plain.shape[1]])

    def _understand(
        self, rows: Rows, known: Constraints, same_rows: bool, rng: np.random.Generator, *, stand_for: int = 0
    ) -> tuple[tuple[Rows, ...], tuple[IntArray, Float64] | None]:
        """Learn the spaces and the probability that two rows belong together.

        Return the rows in the spaces, and of rows in memory the nearest in the local metric with their distances.
        """
        self._report("learning spaces")
        X = rows.astype(np.float64)
        standardiser = checked_standardiser(self, X)
        raw = RawSpace.of(X, standardiser)
        plain: Rows = raw(X)
        former = self.init._spaces.taught if same_rows else None
        prepared = PreparedRows.of(
            X,
            standardiser,
            anchors=known.rows,
            search=self.neighbors,
            stand_for=stand_for,
            features=None if former is None else former.kernel,
        )
        n_threads = layout.threads(self.n_jobs)
        stack = None if prepared is None else Stack.of(prepared, plain, known, rng, n_threads=n_threads)
        seen: tuple[Rows, ...] = (plain,)
        if stack is None:
            self._spaces = MapSpaces(raw, None, np.ones(1))
            self.space_weights_ = {
                name: {"weight": float(name == "rows"), "auc": float("nan")} for name in spaces.SPACES
            }
        else:
            self._spaces = MapSpaces(raw, stack.spaces, stack.shares)
            self.space_weights_ = stack.described()
            seen = plain, *stack.seen.spaces
        self._rows = self._metric(seen)
        found = None
        if not isinstance(rows, EngineRows):
            # One search serves the evidence and the affinities.
            n, perplexity = rows.shape[0], float(self.perplexity)
            k = min(n - 1, max(attraction.attracted(n, perplexity)[0], N_NEIGHBORS))
            found = nearest_rows(self._rows, k, search=self.neighbors)
        self._evidence = self._carried(self._rows, known, found=found)
        self._report("judging held-out pairs")
        folds = () if stack is None else stack.folds

        def measured(fold: Fold) -> Float64:
            ends, places = np.unique(fold.pairs, return_inverse=True)
            evidence = self._carried(self._metric((plain, *fold.seen.spaces)), fold.train, rows=ends)
            return attraction.with_evidence(fold.lengths(plain), evidence.of_pairs(places.reshape(-1, 2)))

        distances = engines.in_threads(measured, folds, n_threads)
        self._judgement: Judgement | None = attraction.judged(known, folds, distances)
        self._prior = (known.n_must_link + 1) / (known.n_pairs + 2)
        self.auc_ = self.auc_error_ = float("nan")
        if self._judgement is not None:
            same, together = self._judgement.together()
            self.auc_ = auc(-together[same], -together[~same])
            self.auc_error_ = auc_standard_error(self.auc_, int(same.sum()), int((~same).sum()))
        return seen, found

    def _attraction(
        self, seen: tuple[Float64, ...], found: tuple[IntArray, Float64] | None, rng: np.random.Generator
    ) -> sparse.csr_matrix:
        """Return the affinities of rows in the spaces."""
        far, n = None, len(self._rows)
        if self._judgement is not None:
            partners = attraction.random_partners(n, rng)
            random = attraction.with_evidence(spaces.listed_lengths(seen, partners), self._evidence.of_pairs(partners))
            self._judgement = self._judgement.of_random_pairs(random)
            far = attraction.long_range(partners, self._judgement.model.cautious(random), self._judgement.share, n)
        self.long_range_ = 0.0 if far is None else far.share
        return attraction.joined(attraction.tsne_affinities(self._rows, float(self.perplexity), found=found), far)

    def _learn_on_device(self, rows: Any, known: Constraints) -> None:
        """Learn from landmarks, and lay out all rows where they are."""
        former = self._former(rows, False)
        rng = as_generator(self.random_state)
        warn_without_pairs(self, known)
        n = rows.shape[0]
        landmarks = spaces.chosen_landmarks(n, known.rows, rng, self.n_landmarks)
        self._landmarks = np.arange(n) if landmarks is None else landmarks
        self._understand(
            rows if landmarks is None else rows[landmarks],
            known if landmarks is None else known[landmarks],
            False,
            rng,
            stand_for=0 if landmarks is None else n,
        )
        seed = int(rng.integers(2**31))
        seen = device.seen_in(self._spaces, rows)
        V = device.side_by_side(seen, self._spaces.shares)
        far, strength = None, 0.0
        if self._judgement is not None:
            self._report("joining rows that belong together")
            told = device.Told.of(self._evidence, V[rows.place(self._landmarks)], V)
            pairs = device.random_partners(n, seed, V.device)
            some = [end[:: max(1, len(end) // device.RATE_SAMPLE)] for end in pairs]
            sample = device.pair_distances(seen, told, *some).cpu().numpy()
            self._judgement = self._judgement.of_random_pairs(sample)
            far, strength = device.long_range(seen, told, pairs, self._judgement.model, self._judgement.share)
            del told, pairs
        self.long_range_ = strength / (1 + strength)
        self._report("finding neighbours")
        pull = device.affinities(V, float(self.perplexity), far, strength)
        if former is None:
            start = device.principal_start(V, self.n_components, seed)
        else:
            start = device.parted(rows.like(former).tensor, float(former.std()) or 1.0, seed)
        self._rows, self._map = V, device.lay_out(pull, start, **self._course(former))
        if former is not None:
            self._map = rows.like(layout.align(engines.as_numpy(self._map), former)).tensor
        self._scale = device.local_scale(self._map)
        self.embedding_ = self._map.to(rows.tensor.dtype)

    def _metric(self, seen: tuple[Rows, ...]) -> Rows:
        """Return rows in the local metric, from their places in the spaces."""
        if not isinstance(seen[0], EngineRows):
            return spaces.side_by_side(seen, self._spaces.shares)
        return device.TensorRows(device.side_by_side([space.tensor for space in seen], self._spaces.shares))

    def _carried(
        self,
        V: Rows,
        pairs: Constraints,
        *,
        found: tuple[IntArray, Float64] | None = None,
        rows: IntArray | None = None,
    ) -> Evidence:
        """Carry pairs to all rows along the graph of a metric."""
        graph = near_graph(V, N_NEIGHBORS, search=self.neighbors, found=found)
        return attraction.evidence_of(graph, pairs, rows)

    def _draw(
        self, V: Float64, affinities: sparse.csr_matrix, former: Float64 | None, rng: np.random.Generator
    ) -> Float64:
        """Lay out rows in the local metric."""
        if former is None:
            start = layout.principal_start(V, self.n_components, rng)
        else:
            start = layout.parted(former, former.std() or 1.0, rng)
        return layout.lay_out(affinities, start, n_jobs=self.n_jobs, **self._course(former))

    def _course(self, former: Float64 | None) -> dict[str, Any]:
        """Return the phases of the layout, and who is told of its progress."""
        phases = layout.phases_of(self.early_exaggeration_iter, self.max_iter)
        if former is not None:
            phases = [(round(WARM_SHARE * self.max_iter), 1.0, layout.MOMENTUM)]
        self.n_iter_ = sum(count for count, _, _ in phases)
        return {"phases": phases, "progress": self._progress if self.verbose else None}

    def _report(self, what: str) -> None:
        if self.verbose:
            print(f"PairMap: {what}", file=sys.stderr, flush=True)

    def _progress(self, iteration: int) -> None:
        self._report(f"iteration {iteration} of {self.n_iter_}")

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None
    ) -> NDArray[Any]:
        """Draw the map and return the places of the rows.

        Parameters
        ----------
        X, y, constraints
            As for :meth:`fit`.

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            :attr:`embedding_`; for a dask array or a tensor what :meth:`transform` gives.
        """
        fitted = self.fit(X, y, constraints=constraints)
        return fitted.embedding_ if engines.engine_rows(X, fitting=False) is None else fitted.transform(X)

    @np.errstate(under="ignore")
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Give rows a place in the map, those of :meth:`fit` or new ones. The map stays as it is.

        Parameters
        ----------
        X : array-like, CSR matrix, torch tensor or dask array of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            A tensor on the device of X for a tensor, and a dask array, not computed yet, for a dask array or data
            frame.
        """
        check_is_fitted(self)
        return engines.map_rows(self._read(X, fitting=False), self._placed, self._n_features_out)

    def _placed(self, rows: Rows) -> Any:
        if isinstance(rows, EngineRows) and engines.is_tensor(self._map):
            metric = device.side_by_side(device.seen_in(self._spaces, rows), self._spaces.shares)
            known, drawn = (part.to(metric.device) for part in (self._rows, self._map))
            return device.place(*device.nearest_known(known, metric), drawn, self._scale)
        metric = self._spaces.metric(engines.rows_in_memory(rows))
        found, weights = layout.nearest_known(metric, engines.as_numpy(self._rows), search=self.neighbors)
        return layout.place(found, weights, engines.as_numpy(self._map), self._scale)

    @np.errstate(under="ignore")
    def pair_proba(self, A: ArrayLike, B: ArrayLike, *, base_rate: float | None = None) -> Float64:
        """Return the probability that rows belong together, pair by pair.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            The rows of the pairs, those of :meth:`fit` or new ones. What answers say about a new row is what they say
            about its nearest training rows. Tensors give a tensor if the map was fitted to one.
        base_rate : float in (0, 1), optional
            Share of pairs that belong together among those to be judged; by default that of must-links among the
            answers. The map itself takes random pairs at a base rate estimated from the rows.

        Returns
        -------
        together : array of shape (n_pairs,)
            With too few pairs to hold any out it is (must-links + 1) / (pairs + 2) for all.
        """
        check_is_fitted(self)
        on_device = engines.is_tensor(A) and engines.is_tensor(B) and engines.is_tensor(self._map)
        left, right = (engines.checked_rows(self, rows, fitting=False, in_memory=not on_device) for rows in (A, B))
        check_paired(left, right)
        if self._judgement is None:
            return left.place(np.full(left.shape[0], self._prior)) if on_device else np.full(left.shape[0], self._prior)
        if on_device:
            known = self._rows[left.place(self._landmarks)].to(left.tensor.device)
            seen = [device.seen_in(self._spaces, rows) for rows in (left, right)]
            told = [
                device.Told.of(self._evidence, known, device.side_by_side(each, self._spaces.shares)) for each in seen
            ]
            own = left.place(np.arange(left.shape[0]))
            found = device.pair_distances(seen[0], told[0], own, own, seen[1], told[1]).cpu().numpy()
            return left.place(self._judgement.pair_proba(found, None if base_rate is None else checked_rate(base_rate)))
        near, far = self._reached(left), self._reached(right)
        distances = attraction.with_evidence(spaces.pair_lengths(near[0], far[0]), self._evidence(near[1], far[1]))
        return self._judgement.pair_proba(distances, None if base_rate is None else checked_rate(base_rate))

    def calibrate(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Return the map as it is: :meth:`fit` has calibrated it, if there were at least three pairs of each kind.

        Parameters
        ----------
        X, y, constraints
            Not used.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        return self

    @property
    def is_calibrated(self) -> bool:
        """Return whether :meth:`pair_proba` has learned from held-out pairs, of which there were enough."""
        return self._judgement is not None

    def _reached(self, rows: Rows) -> tuple[tuple[Float64, ...], Float64]:
        """Return rows in the spaces, and what answers say about them."""
        seen = self._spaces(rows)
        known = (
            engines.as_numpy(self._rows) if self._landmarks is None else engines.as_numpy(self._rows)[self._landmarks]
        )
        found, weights = layout.nearest_known(
            spaces.side_by_side(seen, self._spaces.shares), known, search=self.neighbors
        )
        return seen, np.einsum("ij,ijk->ik", weights, self._evidence.reach[found])

    def __getstate__(self) -> dict[str, Any]:
        """Return the model with arrays in place of tensors, so that it can be read where the device is not."""
        state = dict(super().__getstate__())
        return {name: engines.as_numpy(value) if engines.is_tensor(value) else value for name, value in state.items()}

    def _ranked_pairs(self) -> SuspiciousPairs | None:
        if self._judgement is None:
            return None
        found, same, wrong = self._judgement.suspicion()
        pairs, (_, together) = np.asarray(found, dtype=np.int64), self._judgement.together()
        return SuspiciousPairs.ranked(pairs, same.astype(bool), wrong, together, STANDS_OUT, self._judgement.fold())

    @property
    def mistakes_(self) -> float:
        """Estimated share of wrong answers; computed when it is asked for, for a map does not need it."""
        check_is_fitted(self)
        return float("nan") if self._judgement is None else self._judgement.mistakes()

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

"""LinearPairLens and PairLens: the pair learner in principal components of the rows, and in all spaces it can see."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pairlens._sklearn import AUTO, COUNT, SEED, StrOptions, as_generator, estimator, fit_context, parameter
from pairlens._warnings import warn_fewer, warn_user
from pairlens.engines import Float64, Placement, Rows, map_rows, rows_in_memory
from pairlens.exceptions import ArgumentError, ConflictWarning, InputError, SupervisionWarning
from pairlens.graphs.nearest import SEARCHES
from pairlens.judging.held_out import CHANCE, HeldOutDistances, measured_distances
from pairlens.judging.probability import FEWEST_OF_A_KIND, PairProbability, SuspiciousPairs, suspicious_pairs
from pairlens.judging.views import in_memory
from pairlens.learning import spaces
from pairlens.learning.learner import FEWEST_FOR_FOLDS, N_COLUMNS, PRIORS, PairLearner, Prior, choose_prior, weighted
from pairlens.learning.spaces import Fold, PreparedRows, RawSpace, Stack
from pairlens.methods.base import LinearPairTransformer, PairTransformer, checked_standardiser, warn_without_pairs
from pairlens.spectral import rowspace
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace
from pairlens.spectral.scatters import Space
from pairlens.supervision import Constraints, Triplets
from pairlens.supervision.combined import combine, over_rows

SHAPES = ("near", "rows", "local", "iso", "white")
TAUGHT = spaces.SPACES[1:]


class JudgedByHeldOutPairs(PairTransformer):
    """Judge a view by the pairs that are held out in fit: AUC, probabilities, suspicion, and a warning.

    Attributes
    ----------
    auc_, auc_error_ : float
        AUC with which distance in the view tells held-out pairs apart, and its standard error; NaN without both kinds.
    """

    n_components_: int
    _held_out: HeldOutDistances | None
    _fewest_judged: ClassVar[int]
    """Pairs of a kind below which none is held out."""

    def suspicious_pairs(self) -> SuspiciousPairs:
        """Return the pairs of :meth:`fit`, those that look most like wrong answers first.

        Each pair is judged by views and by models that did not see it. Its suspicion is the probability that the
        answer is wrong, given the answer and the share of wrong answers that all of them suggest.

        Returns
        -------
        SuspiciousPairs
            With the arrays ``pairs``, ``link`` (+1 or -1), ``suspicion`` and ``together``, ``to_frame()``, and those
            that stand out, ``standing_out``.
        """
        check_is_fitted(self)
        found = self._ranked_pairs()
        if found is None:
            raise InputError(
                f"suspicious_pairs needs at least {self._fewest_judged} must-links and {self._fewest_judged} "
                "cannot-links in fit: with fewer, none can be held out and judged by the others",
                argument="constraints",
            )
        # Of many rows some are learned from: their numbers among all are meant.
        for numbers in (getattr(self, "_landmarks", None), getattr(self, "_sample", None)):
            if numbers is not None:
                found = replace(found, pairs=numbers[found.pairs])
        return found

    def _ranked_pairs(self) -> SuspiciousPairs | None:
        """Return the pairs by their suspicion, with the numbers of the rows that were learned from; None of too few."""
        return None if self._held_out is None else suspicious_pairs(self._held_out, self.n_components_)

    def _judge(self, held_out: HeldOutDistances | None, n_dims: int) -> None:
        """Keep the AUC of held-out pairs and its standard error."""
        self._held_out = held_out
        self.auc_ = self.auc_error_ = float("nan")
        if held_out is not None:
            self.auc_ = held_out.auc(min(n_dims, held_out.must.shape[1]))
            self.auc_error_ = held_out.standard_error(self.auc_)

    def _calibrate_by_held_out(self, held_out: HeldOutDistances | None, variance: Float64) -> None:
        """Learn probabilities from pairs that were held out; `variance` is that of each direction of the view."""
        self._probability = None
        if held_out is not None and min(len(held_out.must), len(held_out.cannot)) >= FEWEST_OF_A_KIND:
            self._probability = PairProbability.of(held_out, variance)

    def _why_no_probability(self) -> str:
        fewest = max(self._fewest_judged, FEWEST_OF_A_KIND)
        return (
            f"pair_proba needs at least {fewest} must-links and {fewest} cannot-links in fit: without both kinds, none "
            "can be held out to learn which distances mean the same"
        )

    def _warn_of_contradiction(self, of_rows: float) -> None:
        """Warn if pairs are told apart worse than by chance, by more than the noise of few pairs.

        Answers that are all wrong look like noise to a view that follows the answers, so the AUC of the rows as they
        are counts too, unless the view tells held-out pairs apart.
        """
        if self._held_out is None:
            return
        noise = 2 * self._held_out.margin
        if self.auc_ < CHANCE + noise and min(self.auc_, of_rows) < CHANCE - noise:
            warn_user(
                f"{type(self).__name__}: must-links are longer than cannot-links (AUC {of_rows:.2f} among the rows as "
                f"they are, and {self.auc_:.2f} in the view for held-out pairs, where chance is 0.50). Many answers "
                "are wrong, or must_link and cannot_link are swapped; suspicious_pairs() lists them.",
                SupervisionWarning,
            )


@estimator
class LinearPairLens(JudgedByHeldOutPairs, LinearPairTransformer):
    r"""A linear view from few and noisy pairs.

    In whitened principal components of the rows, where no direction is favoured, must-links are weighed against a prior
    of what differs inside a group, and cannot-links against the total scatter,

    .. math::
        W = \frac{n_M S_M + c p W_0}{n_M + c p}, \qquad B = \frac{n_C S_C + p\, b I}{n_C + p},

    and the directions maximise :math:`\mu = w' B w / w' W w`, each scaled by :math:`\sqrt{1 - 1 / \mu}` (see
    :mod:`pairlens.learning.learner`). The shape of the prior, its strength c, and whether pairs spread to the
    neighbours of their rows are chosen by held-out pairs.

    Choose it when the view must be linear, has to be explained by feature weights, or rows are many. It needs no
    tuning.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the fewest whose AUC of held-out pairs is within one standard error of the
        best.
    prior : {"auto", "near", "rows", "local", "iso", "white"}, default="auto"
        What differs inside a group: what near rows differ in ("local"), the same in all directions of the rows ("iso"),
        the same two with a strength that is measured along the rows ("near", "rows"), or everything in proportion
        ("white"). With "auto" it is "near" unless held-out pairs clearly ask for "local" or "iso". With "white" the
        probabilities of pairs do not depend on any invertible linear map of the features. It needs at
        least two rows more than there are independent features; with fewer, all rows are equally far apart.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, as weights of the raw features.
    eigenvalues_ : array of shape (n_components,)
        The ratio :math:`\mu` of each direction, largest first.
    n_components_ : int
        Number of directions.
    prior_ : Prior
        The prior that was used: its `shape`, `spread` and `strength`.
    purity_ : float
        Estimated share of must-links that behave like must-links; 0.6 if there are fewer than 8 pairs of a kind.

    See Also
    --------
    PairLens : A non-linear view that starts from this one.

    Notes
    -----
    Triplets of classes, read as pairs, add to few pairs. Where answers follow a graded likeness rather than groups,
    :class:`LMCA` and :class:`SCML` are better with triplets.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md and docs/notions.md show how it
       stands.
    """

    n_components: int | str = parameter(COUNT, AUTO, default=2, kw_only=False)
    prior: str = parameter(StrOptions({"auto", *SHAPES}), default="auto")
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")
    standardize: bool = parameter("boolean", default=True)
    random_state: Any = parameter(*SEED, default=None)

    _rows_may_be: ClassVar = Placement.DEVICE
    _needs: ClassVar = ""
    __metadata_request__fit: ClassVar = {"constraints": True, "triplets": True}
    _fewest_judged = FEWEST_FOR_FOLDS

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        triplets: Triplets | None = None,
    ) -> Self:
        """Learn the view.

        Parameters
        ----------
        X, y, constraints
            As for :class:`PairLens`.
        triplets : Triplets, optional
            Read as pairs that add to the others: a triplet attracts its near pair and repels its far one; see
            :meth:`Triplets.to_constraints`.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        n_samples = rows.shape[0]
        if triplets is None:
            return self._fit(rows, combine(y, constraints, n_samples))
        pairs = over_rows(triplets, Triplets, n_samples).to_constraints()
        if constraints is not None:
            # Comparisons are relative: that their pairs contradict others is not a mistake.
            with warnings.catch_warnings(action="ignore", category=ConflictWarning):
                pairs = over_rows(constraints, Constraints, n_samples).merge(pairs, on_conflict="warn")
        return self._fit(rows, combine(y, pairs, n_samples))

    @property
    def _n_wanted(self) -> int:
        return self.n_components_

    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        super()._learn(rows, pairs)
        del self._learner

    def _coordinates(self, rows: Rows, pairs: Constraints) -> tuple[RowSpace, Constraints]:
        standardiser = checked_standardiser(self, rows)
        self.mean_ = standardiser.mean
        wanted = N_COLUMNS if self.n_components == "auto" else int(self.n_components)
        at_most = max(rowspace.MOST_COORDINATES, wanted)
        space, values = rowspace.whitened_rows(rows, standardiser, at_most=at_most, anchors=pairs.rows)
        self.n_components_ = min(wanted, max(1, space.dim)) if self.n_components == "auto" else wanted
        if self.prior == "white" and 1 < space.dim == rows.shape[0] - 1:
            warn_user(
                f"LinearPairLens: with prior='white' all {rows.shape[0]} rows are equally far from one another, "
                f"because their features span {space.dim} dimensions. The pairs say nothing about other rows, and "
                "directions are not determined. Give prior='auto', or more rows.",
                SupervisionWarning,
            )
        near = self.prior in ("auto", "near", "local")
        self._learner = PairLearner.of(space.rows, values, near=near, search=self.neighbors)
        return space, pairs

    def _directions(self, space: RowSpace, pairs: Constraints) -> Pencil:
        warn_without_pairs(self, pairs)
        self._choose(pairs)
        return super()._directions(space, pairs)

    def _choose(self, pairs: Constraints) -> None:
        """Choose the prior and the number of directions by held-out pairs."""
        learner = self._learner
        priors = PRIORS if self.prior == "auto" else tuple(Prior(self.prior, 0.0, c) for c in (3.0, 1.0))
        choice = choose_prior(learner, pairs, self.random_state, priors=priors)
        self.prior_, self.purity_ = choice.prior, choice.purity
        held_out = None if choice.folds is None else learner.held_out(choice.folds, self.prior_, self.n_components_)
        if self.n_components == "auto":
            self.n_components_ = min(2, learner.dim) if held_out is None else held_out.smallest_good_dimension()
        self._judge(held_out, self.n_components_)
        if choice.folds is not None:
            self._warn_of_contradiction(learner.plain_auc(choice.folds.known))

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        return self._learner.matrices(pairs, self.prior_)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return weighted(attract, repel, k)

    def _keep(self, space: Space, directions: Matrix, dtype: np.dtype[Any]) -> None:
        self.n_components_ = directions.shape[1]
        self._calibrate_by_held_out(self._held_out, np.var(self._learner.along(directions), axis=0))
        super()._keep(space, directions, dtype)


@estimator
class PairLens(JudgedByHeldOutPairs):
    r"""A non-linear view from few and noisy pairs, without tuning.

    Pairs teach one learner three spaces of the rows: a linear one (:class:`LinearPairLens` with 15 directions), one in
    kernel principal components, and one in diffusion coordinates of the linear one. Held-out pairs say how well
    distance in each of them tells "same" from "different", and so its share :math:`s_k` (:mod:`pairlens.learning`). The
    view is made of the leading principal components of the three spaces side by side,

    .. math::
        \left[\sqrt{s_1} Y_1, \sqrt{s_2} Y_2, \sqrt{s_3} Y_3\right], \qquad s_1 + s_2 + s_3 = 1,

    each :math:`Y_k` being centred and of total variance 1.

    Choose it first, unless the view has to be linear.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the number that :class:`LinearPairLens` finds from held-out pairs.

    Attributes
    ----------
    n_components_ : int
        Number of directions.
    space_weights_ : dict of dict
        For each space ("linear", "kernel", "diffusion") its `weight`, the share of the view's variance that it brings
        in, and the `auc` with which distance in it tells held-out pairs apart.
    auc_, auc_error_ : float
        AUC with which distance in the view tells held-out pairs apart, and its standard error; NaN with fewer than
        three pairs of a kind.
    eigenvalues_ : array of shape (n_components,)
        Variance of each direction.

    See Also
    --------
    LinearPairLens : The linear space alone.
    PairMap : A t-SNE of the same spaces and of the rows as they are.

    Notes
    -----
    In the diffusion space a new row takes the weighted mean of its ten nearest training rows; one that coincides with
    training rows takes their place, so :meth:`transform` of the training rows is what :meth:`fit_transform` gives.

    Of more than 10,000 rows it learns from that many landmarks: those in pairs, and others evenly spaced.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md and docs/notions.md show how it
       stands.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, PairLens
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> PairLens(n_components=2, random_state=0).fit(X, constraints=pairs).transform(X).shape
    (178, 2)
    """

    n_components: int | str = parameter(COUNT, AUTO, default=2, kw_only=False)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")
    standardize: bool = parameter("boolean", default=True)
    random_state: Any = parameter(*SEED, default=None)

    _fewest_judged = FEWEST_OF_A_KIND
    _rows_may_be: ClassVar = Placement.DEVICE

    def _check_n_components(self, rows: Rows) -> None:
        if self.n_components != "auto" and self.n_components > rows.shape[0] - 1:
            reason = f"must be less than the number of rows, {rows.shape[0]}"
            raise ArgumentError("n_components", self.n_components, reason)

    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        warn_without_pairs(self, pairs)
        rows, pairs, self._landmarks = self._within_reach(rows, pairs)
        n_rows = rows.shape[0]
        rng = as_generator(self.random_state)
        landmarks = spaces.chosen_landmarks(n_rows, pairs.rows, rng)
        rows = rows_in_memory(rows, landmarks)
        if landmarks is not None:
            pairs = pairs[landmarks]
            self._landmarks = landmarks if self._landmarks is None else self._landmarks[landmarks]
        rows = rows.astype(np.float64, copy=False)
        standardiser = checked_standardiser(self, rows)
        prepared = PreparedRows.of(
            rows,
            standardiser,
            anchors=pairs.rows,
            search=self.neighbors,
            stand_for=0 if landmarks is None else n_rows,
        )
        rowspace.check_variation(0 if prepared is None else prepared.space.dim)
        assert prepared is not None
        self.n_components_ = self._choose_dimension(prepared, pairs)
        plain = RawSpace.of(rows, standardiser)(rows)
        stack = Stack.of(prepared, plain, pairs, rng, kernel_columns=max(2, self.n_components_))
        self._spaces, shares = stack.spaces, stack.shares
        self.space_weights_ = stack.described(TAUGHT)
        self._shares = shares[1:] / shares[1:].sum()
        together = spaces.side_by_side(stack.seen.spaces, self._shares)
        self.eigenvalues_, self._turn = spaces.principal(together, self.n_components_)
        view = together @ self._turn
        self._turn = np.where(np.einsum("ij,ij->j", view, rowspace.fix_signs(view.T).T) < 0, -self._turn, self._turn)

        def as_new(taught: Stack | Fold) -> Float64:
            found = spaces.side_by_side(taught.spaces.seen_as_new(taught.seen), self._shares)
            return found @ (self._turn if taught is stack else spaces.principal(found, self.n_components_)[1])

        held_out = None if stack.drawn is None else measured_distances(stack.drawn, (as_new(fold) for fold in stack))
        self._judge(held_out, self.n_components_)
        self._calibrate_by_held_out(held_out, np.var(as_new(stack), axis=0))
        self._warn_of_contradiction(float(stack.aucs[0]))
        if len(self.eigenvalues_) < self.n_components_:
            warn_fewer(self, len(self.eigenvalues_), self.n_components_, "the rows given determine no more")

    def _choose_dimension(self, prepared: PreparedRows, pairs: Constraints) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        choice = choose_prior(prepared.linear, pairs, self.random_state)
        if choice.folds is None:
            return min(2, prepared.space.n_rows - 1)
        return prepared.linear.held_out(choice.folds, choice.prior, N_COLUMNS).smallest_good_dimension()

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return map_rows(self._read(X, fitting=False), self._embedded, self._n_features_out)

    def _embedded(self, rows: Rows, *, as_new: bool = False) -> Float64:
        return spaces.side_by_side(self._spaces(rows, as_new=as_new), self._shares) @ self._turn

    def _seen_as_new(self, X: ArrayLike) -> NDArray[np.float64]:
        rows = self._read(X, fitting=False)
        return in_memory(map_rows(rows, lambda part: self._embedded(part, as_new=True), self._n_features_out))

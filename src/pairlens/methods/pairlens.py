"""PairLens: the principal components of all that answers have taught."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, as_generator, check_is_fitted
from pairlens._warnings import warn_fewer
from pairlens.engines import Float64, Placement, Rows, map_rows, rows_in_memory
from pairlens.graphs.nearest import SEARCHES
from pairlens.judging.held_out import measured_distances
from pairlens.judging.probability import JudgedByHeldOutPairs, in_memory
from pairlens.learning.learner import N_COLUMNS, choose_prior
from pairlens.learning.spaces import PreparedRows, RawSpace, chosen_landmarks
from pairlens.learning.stack import FEWEST_OF_A_KIND, SPACES, Fold, Stack, side_by_side
from pairlens.methods.base import ScaleAware
from pairlens.spectral.eigen import fix_signs, symmetric
from pairlens.spectral.rowspace import check_variation
from pairlens.supervision import Constraints

TAUGHT = SPACES[1:]


class PairLens(JudgedByHeldOutPairs, ScaleAware):
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
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds over the pairs repeatable.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "neighbors": [StrOptions(set(SEARCHES))],
        **ScaleAware._scale_constraints,
        "random_state": ["random_state", np.random.Generator],
    }

    _fewest_judged = FEWEST_OF_A_KIND
    _rows_may_be: ClassVar = Placement.DEVICE

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        neighbors: str = "auto",
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.neighbors = neighbors
        self.standardize = standardize
        self.random_state = random_state

    def _check_n_components(self, X: Rows) -> None:
        if self.n_components != "auto" and self.n_components > X.shape[0] - 1:
            raise ValueError(f"n_components={self.n_components} must be less than the number of rows, {X.shape[0]}.")

    def _learn(self, rows: Rows, known: Constraints) -> None:
        self._warn_without_pairs(known)
        rows, known, self._landmarks = self._within_reach(rows, known)
        n_rows = rows.shape[0]
        rng = as_generator(self.random_state)
        landmarks = chosen_landmarks(n_rows, known.rows, rng)
        rows = rows_in_memory(rows, landmarks)
        if landmarks is not None:
            known = known[landmarks]
            self._landmarks = landmarks if self._landmarks is None else self._landmarks[landmarks]
        rows = rows.astype(np.float64, copy=False)
        standardiser = self._standardiser(rows)
        prepared = PreparedRows.of(
            rows,
            standardiser,
            anchors=known.rows,
            search=self.neighbors,
            stand_for=0 if landmarks is None else n_rows,
        )
        check_variation(0 if prepared is None else prepared.space.dim)
        assert prepared is not None
        self.n_components_ = self._choose_dimension(prepared, known)
        plain = RawSpace.of(rows, standardiser)(rows)
        stack = Stack.of(prepared, plain, known, rng, kernel_columns=max(2, self.n_components_))
        self._spaces, shares = stack.spaces, stack.shares
        self.space_weights_ = stack.described(TAUGHT)
        self._shares = shares[1:] / shares[1:].sum()
        together = side_by_side(stack.seen.spaces, self._shares)
        self.eigenvalues_, self._turn = principal(together, self.n_components_)
        view = together @ self._turn
        self._turn = np.where(np.einsum("ij,ij->j", view, fix_signs(view.T).T) < 0, -self._turn, self._turn)

        def as_new(taught: Stack | Fold) -> Float64:
            found = side_by_side(taught.spaces.seen_as_new(taught.seen), self._shares)
            turn = self._turn if taught is stack else principal(found, self.n_components_)[1]
            return found @ turn

        held_out = None if stack.drawn is None else measured_distances(stack.drawn, (as_new(fold) for fold in stack))
        self._judge(held_out, self.n_components_)
        self._calibrate_by_held_out(held_out, np.var(as_new(stack), axis=0))
        self._warn_of_contradiction(float(stack.aucs[0]))
        if len(self.eigenvalues_) < self.n_components_:
            warn_fewer(self, len(self.eigenvalues_), self.n_components_, "the rows given determine no more")

    def _choose_dimension(self, prepared: PreparedRows, known: Constraints) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        choice = choose_prior(prepared.linear, known, self.random_state)
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
        return side_by_side(self._spaces(rows, as_new=as_new), self._shares) @ self._turn

    def _seen_as_new(self, X: ArrayLike) -> NDArray[np.float64]:
        rows = self._read(X, fitting=False)
        return in_memory(map_rows(rows, lambda part: self._embedded(part, as_new=True), self._n_features_out))


def principal(rows: Float64, k: int) -> tuple[Float64, Float64]:
    """Return the variances of the leading principal components of centred rows, and their directions in columns."""
    values, vectors = symmetric(rows.T @ rows / len(rows), k)
    kept = values > 1e-12 * values.max(initial=0.0)
    return values[kept], vectors[:, kept]

"""PairLens: two stages and a guard, one choice that needs no choosing."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, check_is_fitted
from pairlens._warnings import warn_fewer
from pairlens.engines import Placement, Rows, along, evenly_spaced, map_rows, rows_in_memory
from pairlens.graphs.nearest import SEARCHES, searches_approximately
from pairlens.judging import HeldOutDistances, PairFolds
from pairlens.judging.held_out import measured_distances
from pairlens.judging.probability import JudgedByHeldOutPairs, in_memory
from pairlens.methods.base import ScaleAware
from pairlens.methods.bwdr import WBDR
from pairlens.methods.kernel_bwdr import KernelBWDR, KernelWBDR
from pairlens.methods.pairlens.guard import FEWEST_FOR_GUARD, GUARD_FOLDS, LinearRival, Rival
from pairlens.methods.pairlens.linear import LARGEST_AUTO
from pairlens.methods.pairlens.problem import FirstFit, FirstStage
from pairlens.methods.pairlens.second_stage import SecondStage, SecondView
from pairlens.spectral.rowspace import Standardiser, check_variation, exact_means, principal_rows
from pairlens.supervision import Constraints

FIRST_STAGE_COLUMNS = 15
_TAGS: dict[type, str] = {KernelBWDR: "kernel-bwdr", KernelWBDR: "kernel-wbdr", WBDR: "wbdr"}
JUDGED_ROWS = 25_000
"""Rows, besides those in pairs, by which the guard judges where neighbours are looked for in an index."""


class PairLens(JudgedByHeldOutPairs, ScaleAware):
    r"""A non-linear view from few and noisy pairs, without tuning.

    First a :class:`LinearPairLens` with 15 directions, then a second pair problem in non-linear coordinates of its
    result: two directions come from diffusion coordinates :math:`\lambda_j^4 \psi_j` of the neighbour graph, other
    numbers from 50 kernel principal components (RBF, median width). A guard compares the view with that of a shrunk
    :class:`KernelBWDR` on held-out pairs and takes that if it is better by more than the standard error: classes that
    ignore the local structure of the rows need it. Near rows of a :class:`TableEncoder` share their words whether these
    say anything or not, so there it is the other way round: the view is that of :class:`KernelWBDR` or :class:`WBDR`,
    whichever tells held-out pairs apart the better, unless the two stages are better still, those of two directions by
    more than the standard error.

    Choose it first, unless the view has to be linear.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the number that :class:`LinearPairLens` finds from held-out pairs.
    guard : bool, default=True
        Whether to compare with :class:`KernelBWDR`, or with :class:`KernelWBDR` and :class:`WBDR`.
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds over the pairs repeatable.

    Attributes
    ----------
    chosen_ : {"diffusion", "kernel", "kernel-bwdr", "kernel-wbdr", "wbdr"}
        The second stage, or what the guard took instead.
    n_components_ : int
        Number of directions.
    purity_ : float
        Estimated share of must-links that behave like must-links.
    prior_strength_ : float
        Strength of the local prior.
    auc_, auc_error_ : float
        AUC with which distance tells held-out pairs apart, and its standard error; NaN with fewer than five pairs of a
        kind.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction.

    See Also
    --------
    LinearPairLens : The first stage.

    Notes
    -----
    A new row of the diffusion form takes the weighted mean of its ten nearest training rows; one that coincides with
    training rows takes their place, so :meth:`transform` of the training rows is what :meth:`fit_transform` gives.

    The diffusion form needs the neighbours and the eigenvectors of a graph of all rows; kernel principal components are
    exact up to 2,000 rows and those of 2,000 evenly spaced anchors beyond (Nystroem). Comparing on held-out pairs fits
    both views three times more.

    Limits: with no pairs at all the view already profits from local structure, and 20 pairs add little; up
    to 60 pairs with a fifth of them wrong add next to nothing; for 1-NN all features stay the best space.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md shows how it stands.

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
        "guard": ["boolean"],
        "neighbors": [StrOptions(set(SEARCHES))],
        **ScaleAware._scale_constraints,
        "random_state": ["random_state", np.random.Generator],
    }

    _fewest_judged = FEWEST_FOR_GUARD
    _rows_may_be: ClassVar = Placement.DEVICE

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        guard: bool = True,
        neighbors: str = "auto",
        standardize: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.guard = guard
        self.neighbors = neighbors
        self.standardize = standardize
        self.random_state = random_state

    def _check_n_components(self, X: Rows) -> None:
        if self.n_components != "auto" and self.n_components > X.shape[0] - 1:
            raise ValueError(f"n_components={self.n_components} must be less than the number of rows, {X.shape[0]}.")

    def _learn(self, rows: Rows, known: Constraints) -> None:
        """Both stages, and the guard."""
        self._warn_without_pairs(known)
        rows, known, self._landmarks = self._within_reach(rows, known)
        self._mean = exact_means(rows)
        space = principal_rows(rows, self._mean, standardize=self.standardized_, anchors=known.rows)
        check_variation(space.dim)
        first = FirstStage.of(space.rows, search=self.neighbors).fit(known, random_state=self.random_state)
        self.purity_, self.prior_strength_ = first.purity, first.strength
        self.n_components_ = self._choose_dimension(first, space.n_rows)
        directions = first.directions(FIRST_STAGE_COLUMNS)[1]
        self._first_components = space.lift(directions)
        self._second, _, as_new = self._second_stage(first.stage.problem.along(directions), known)
        self.chosen_ = "diffusion" if self.n_components_ == 2 else "kernel"
        self.eigenvalues_ = self._second.eigenvalues
        self._other: KernelBWDR | WBDR | None = None
        held_out = self._ask_the_guard(rows, space.rows, first)
        view = as_new if self._other is None else self._embedded(rows)
        self._calibrate_by_held_out(held_out, np.var(view, axis=0))
        self._warn_of_contradiction()
        if len(self.eigenvalues_) < self.n_components_:
            warn_fewer(self, len(self.eigenvalues_), self.n_components_, "the rows given determine no more")

    def _choose_dimension(self, first: FirstFit, n_rows: int) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        held_out = first.held_out(LARGEST_AUTO)
        return min(2, n_rows - 1) if held_out is None else held_out.smallest_good_dimension()

    def _second_stage(self, Z: Rows, known: Constraints) -> tuple[SecondView, NDArray[np.float64], NDArray[np.float64]]:
        """The second stage on the columns of the first: the view, the rows in it, and where they were if new."""
        second = SecondStage.of(Z, diffuse=self.n_components_ == 2, search=self.neighbors)
        view, embedded = second.fit(known, strength=self.prior_strength_, n_components=self.n_components_)
        return view, embedded, second.rows_as_new(view, embedded)

    def _ask_the_guard(self, rows: Rows, principal: Rows, first: FirstFit) -> HeldOutDistances | None:
        """Judge the view by held-out pairs, and take the rival if that is clearly better, or has the first word.

        Of many rows an even choice, with all that are in pairs, is enough to judge by. Gives the distances of held-out
        pairs whose rows are where they would be if they were new.
        """
        known = first.known
        if rows.shape[0] > JUDGED_ROWS and searches_approximately(rows, self.neighbors):
            some = np.union1d(known.rows, evenly_spaced(rows.shape[0], JUDGED_ROWS))
            rows, known = rows[some], known[some]
            stage = FirstStage.of(principal[some], search=self.neighbors)
            first = replace(first, stage=stage, known=known)
            self._landmarks = some if self._landmarks is None else self._landmarks[some]

        def both_stages(train: Constraints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            return self._second_stage(first.columns(FIRST_STAGE_COLUMNS, train), train)[1:]

        fewest = min(known.n_must_link, known.n_cannot_link)
        judged = fewest >= FEWEST_FOR_GUARD
        folds = PairFolds.draw(known, GUARD_FOLDS, self.random_state) if judged else None
        ours = as_new = None
        if folds is not None:
            kinds = zip(*(both_stages(train) for train, _ in folds))
            ours, as_new = (measured_distances(folds, views) for views in kinds)
        self._judge(ours, self.n_components_)
        if not self.guard or not (judged or (self._of_encoder and fewest)):
            return as_new
        standardised = Standardiser.of(rows, self._mean, standardize=self.standardized_)
        rivals = self._rivals(standardised(rows), judged=folds is not None)
        rival, held_out = rivals[0], None
        if folds is not None:
            found = [(one, one.held_out(folds)) for one in rivals]
            rival, held_out = max(found, key=lambda one: self._auc_of(one[1]))
            if self._stages_win(self._auc_of(held_out), held_out.margin):
                return as_new
        self._other, self._standardised = rival.fit(known), standardised
        self.chosen_, self.eigenvalues_ = _TAGS[rival.method], self._other.eigenvalues_
        self._judge(held_out, self.n_components_)
        return held_out

    def _rivals(self, Z: Rows, *, judged: bool) -> list[Rival | LinearRival]:
        """Who is compared with the two stages; the first has the say where no pairs can be held out."""
        n_components = min(self.n_components_, Z.shape[0] - 1)
        if not self._of_encoder:
            return [Rival.of(Z, n_components)]
        kernel = Rival.of(Z, n_components, method=KernelWBDR)
        return [kernel, LinearRival(Z, n_components)] if judged and n_components <= Z.shape[1] else [kernel]

    def _auc_of(self, held_out: HeldOutDistances) -> float:
        return held_out.auc(min(self.n_components_, held_out.must.shape[1]))

    def _stages_win(self, theirs: float, margin: float) -> bool:
        """Whether the two stages stay, given the AUC of the best rival.

        Whoever has the first word keeps it unless the other is clearly better. Behind an encoder that is the rival, and
        kernel components need only be better: it is the graph of the diffusion form that words spoil.
        """
        if not self._of_encoder:
            return theirs <= self.auc_ + margin
        return self.auc_ > theirs + (margin if self.chosen_ == "diffusion" else 0.0)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return map_rows(self._read(X, fitting=False), self._embedded, self._n_features_out)

    def _embedded(self, rows: Rows) -> Any:
        """The view of rows on one machine: an array or a tensor."""
        if self._other is not None:
            return self._other.transform(rows_in_memory(self._standardised(rows)))
        return self._second.embed(along(rows, self._first_components.T, origin=self._mean))

    def _seen_as_new(self, X: ArrayLike) -> NDArray[np.float64]:
        if self._other is not None:
            return super()._seen_as_new(X)

        def place(rows: Rows) -> Any:
            return self._second.embed_as_new(along(rows, self._first_components.T, origin=self._mean))

        return in_memory(map_rows(self._read(X, fitting=False), place, self._n_features_out))

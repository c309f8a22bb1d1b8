"""The view in which rows are grouped, and P(same) in it: what the pair learner has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairlens.engines import Float64, IntArray, Placement, Rows, map_rows, rows_in_memory, rows_to_learn_from
from pairlens.judging.held_out import HeldOutDistances, distance_columns, measured_distances, pair_weights
from pairlens.judging.probability import MISTAKES, PairModel, fit_with_mistakes
from pairlens.learning.spaces import LANDMARKS, PreparedRows, RawSpace, TaughtSpaces, chosen_landmarks
from pairlens.learning.stack import Stack, side_by_side
from pairlens.spectral.rowspace import Standardiser, symmetric
from pairlens.supervision import Constraints

__all__ = ["ClusterView", "Learned", "SamePairs", "learn"]

N_COLUMNS = 10
"""Directions of the view. With as many as groups less one, which nobody knows, groups are no better."""
FIRST_MISTAKES = 0.05
"""Share of wrong answers where it cannot be estimated."""
MISTAKES_LIMITS = (0.005, 0.3)
BLOCK = 20_000
"""Rows that are placed at once."""
UNLIKELY = 1e-3
"""Shares of wrong answers that are less probable than this are left out."""


@dataclass(frozen=True)
class ClusterView:
    """Leading principal components of the taught spaces side by side, as :class:`~pairlens.PairLens` has them."""

    spaces: TaughtSpaces
    shares: Float64
    turn: Float64

    def __call__(self, X: Rows) -> Float64:
        """Return rows, wherever they are, in the view, in memory."""

        def embed(rows: Rows) -> Float64:
            return side_by_side(self.spaces(rows), self.shares) @ self.turn

        if not (isinstance(X, np.ndarray) or sparse.issparse(X)):
            return as_array(map_rows(X, embed, self.turn.shape[1]))
        # Kernel features of a million rows at once would fill the memory.
        return np.concatenate([embed(X[start : start + BLOCK]) for start in range(0, X.shape[0], BLOCK)])


@dataclass(frozen=True)
class SamePairs:
    """P(same) of rows in a view, and the share of wrong answers, by a model of what is true and one of mistakes.

    There is a model for each share of wrong answers that is probable; `variance` is the total one of the first columns.
    """

    models: tuple[PairModel, ...]
    probable: Float64
    variance: Float64
    mistakes: float

    @classmethod
    def of(cls, held_out: HeldOutDistances, variance: Float64) -> SamePairs:
        """Learn from distances in views that did not see the pairs, and from the variance of the view's columns."""
        n_dims = min(held_out.must.shape[1], len(variance))
        squared = np.concatenate([held_out.must, held_out.cannot])[:, :n_dims]
        same = np.repeat([True, False], [len(held_out.must), len(held_out.cannot)])
        models, probable = fit_with_mistakes(distance_columns(squared), same, pair_weights(held_out.known))
        kept = np.flatnonzero(probable > UNLIKELY)
        total = np.cumsum(variance[:n_dims])
        mistakes = float(np.clip(probable @ MISTAKES, *MISTAKES_LIMITS))
        share = probable[kept] / probable[kept].sum()
        return cls(tuple(models[at] for at in kept), share, np.where(total > 0, total, 1.0), mistakes)

    def among(self, Z: Float64) -> Float64:
        """Return P(same) of all pairs of rows, of shape (n_rows, n_rows)."""
        n_dims = len(self.variance)
        upper = np.triu_indices(len(Z), 1)
        squared = np.cumsum((Z[upper[0], :n_dims] - Z[upper[1], :n_dims]) ** 2, axis=1) / (2 * self.variance)
        columns = distance_columns(squared)
        found = np.eye(len(Z))
        found[upper] = sum(share * model(columns) for share, model in zip(self.probable, self.models))
        found.T[upper] = found[upper]
        return found


@dataclass(frozen=True)
class Learned:
    """Findings of the learner about the rows to learn from.

    These are the rows in the view, where it would place them if they were new (P(same) holds there), and as they are,
    scaled; `landmarks` are their numbers if they are not all rows. `same` is None with fewer than three pairs of a
    kind.
    """

    view: ClusterView
    rows: Float64
    as_new: Float64
    plain: Float64
    known: Constraints
    landmarks: IntArray | None
    same: SamePairs | None

    @property
    def mistakes(self) -> float:
        """Estimated share of wrong answers."""
        return FIRST_MISTAKES if self.same is None else self.same.mistakes


def learn(
    rows: Rows,
    known: Constraints,
    rng: np.random.Generator,
    *,
    standardize: bool,
    search: str,
    who: str,
) -> Learned | None:
    """Learn the view from checked rows, for the estimator `who`; None if all rows are equal."""
    rows, chosen = rows_to_learn_from(rows, Placement.DEVICE, needed=known.rows, who=who)
    known = known if chosen is None else known[chosen]
    n_rows = rows.shape[0]
    landmarks = chosen_landmarks(n_rows, known.rows, rng, LANDMARKS)
    rows = rows_in_memory(rows, landmarks).astype(np.float64, copy=False)
    if landmarks is not None:
        known = known[landmarks]
        chosen = landmarks if chosen is None else chosen[landmarks]
    standardiser = Standardiser.of(rows, standardize=standardize)
    stand_for = 0 if landmarks is None else n_rows
    prepared = PreparedRows.of(rows, standardiser, anchors=known.rows, search=search, stand_for=stand_for)
    if prepared is None:
        return None
    plain = RawSpace.of(rows, standardiser)(rows)
    stack = Stack.of(prepared, plain, known, rng, kernel_columns=N_COLUMNS)
    shares = stack.shares[1:] / stack.shares[1:].sum()
    together = side_by_side(stack.seen.spaces, shares)
    turn = _principal(together)
    new = side_by_side(stack.spaces.seen_as_new(stack.seen), shares) @ turn
    same = None
    if stack.drawn is not None:
        found = (side_by_side(fold.spaces.seen_as_new(fold.seen), shares) for fold in stack)
        held_out = measured_distances(stack.drawn, (fold @ _principal(fold) for fold in found))
        same = SamePairs.of(held_out, new.var(axis=0))
    return Learned(ClusterView(stack.spaces, shares, turn), together @ turn, new, plain, known, chosen, same)


def _principal(rows: Float64) -> Float64:
    """Return the directions of the leading principal components of centred rows."""
    values, vectors = symmetric(rows.T @ rows / len(rows), min(N_COLUMNS, rows.shape[1]))
    return vectors[:, values > 1e-12 * values.max(initial=0.0)]


def as_array(view: Any) -> Float64:
    """Return an embedding as an array, whatever it came as."""
    return np.asarray(view.cpu() if hasattr(view, "cpu") else view, dtype=np.float64)

"""Spaces in which rows are measured: as they are, and as answers have taught the pair learner to see them.

There are four: the rows as they are, scaled column by column; a *linear* space, the pair learner in principal
components of the rows; a *kernel* space, the same learner in kernel principal components, for groups that no plane
separates; and a *diffusion* space, the same learner in diffusion coordinates of the linear space, for groups that are
chains of neighbours. Each is centred on the training rows and has total variance 1 there, so that distances can be
compared and added.

What depends on the rows alone is prepared once (:class:`PreparedRows`) and serves the pairs of all folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pairlens.engines import (
    EngineRows,
    Float64,
    IntArray,
    Rows,
    along,
    column_means,
    rescaled,
    rows_in_memory,
    weighted_scatter,
)
from pairlens.graphs.nearest import Diffusion, diffusion, near_graph
from pairlens.kernels import KernelFeatures, kernel_features
from pairlens.learning.learner import CAUTIOUS, N_COLUMNS, N_NEIGHBORS, PairLearner, Prior, choose_prior, whitened
from pairlens.spectral.rowspace import RowSpace, Standardiser, whitened_rows
from pairlens.supervision import Constraints

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

KERNEL_RANK = 150
DIFFUSION_COLUMNS = 2
IN_KERNEL, IN_DIFFUSION = Prior("rows"), CAUTIOUS
WIDEST_SPARSE = 2000
"""Columns up to which sparse rows are made dense; wider ones are reduced to their leading principal components."""
SPARSE_COMPONENTS = 200
LANDMARKS = 10_000
"""Rows that are learned from unless told otherwise; of more, that many stand for all."""


def chosen_landmarks(
    n: int, constrained: IntArray, rng: np.random.Generator, wanted: int = LANDMARKS
) -> IntArray | None:
    """Return the numbers of the landmarks: the rows in pairs, or as many as are wanted, and others drawn evenly.

    None if all rows are learned from.
    """
    if n <= wanted:
        return None
    if len(constrained) >= wanted:
        return np.sort(rng.choice(constrained, wanted, replace=False))
    others = np.setdiff1d(np.arange(n), constrained, assume_unique=True)
    drawn = rng.choice(others, wanted - len(constrained), replace=False)
    return np.sort(np.concatenate([constrained, drawn]))


@dataclass(frozen=True)
class Unit:
    """Centre rows and scale them by one number, so that the training rows have total variance 1."""

    mean: Float64
    size: float

    @classmethod
    def of(cls, rows: Rows) -> Unit:
        if isinstance(rows, EngineRows):
            mean = column_means(rows)
            scatter = weighted_scatter(rows, offset=mean, is_mean=True)
            return cls(mean, float(np.sqrt(np.trace(scatter) / rows.shape[0])) or float("inf"))
        mean = rows.mean(axis=0)
        centred = rows - mean
        size = float(np.sqrt(np.einsum("ij,ij->", centred, centred) / len(rows)))
        # Rows that are equal up to rounding stay equal.
        return cls(mean, size if size > 1e-12 * float(np.abs(mean).max(initial=0.0)) else float("inf"))

    def __call__(self, rows: Rows) -> Rows:
        return rescaled(rows, offset=self.mean, scale=self.size)


@dataclass(frozen=True)
class RawSpace:
    """The rows as they are, scaled column by column; wide sparse rows in their leading principal components."""

    standardiser: Standardiser
    principal: PCA | None
    unit: Unit

    @classmethod
    def of(cls, X: Rows, standardiser: Standardiser) -> RawSpace:
        """Prepare rows in memory, whose standardiser is given."""
        scores = standardiser(X)
        principal = None
        if sparse.issparse(X) and X.shape[1] > WIDEST_SPARSE:
            from sklearn.decomposition import PCA

            kept = min(SPARSE_COMPONENTS, X.shape[0] - 1)
            principal = PCA(kept, svd_solver="arpack", random_state=0).fit(scores)
        return cls(standardiser, principal, Unit.of(_dense(scores, principal)))

    def __call__(self, X: Rows) -> Rows:
        return self.unit(_dense(self.standardiser(X), self.principal))


def _dense(scores: Rows, principal: PCA | None) -> Rows:
    if isinstance(scores, EngineRows):
        return scores
    if principal is not None:
        return np.asarray(principal.transform(scores))
    return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)


@dataclass(frozen=True)
class Seen:
    """Training rows in the linear, kernel and diffusion space, and the nearest others of each in the linear one."""

    spaces: tuple[Rows, Rows, Rows]
    near: IntArray


@dataclass(frozen=True)
class TaughtSpaces:
    """The three spaces that pairs have taught, as maps of any rows, with their units and priors.

    `components` are the directions of the linear space in the features, `turned` those of the kernel space in kernel
    principal components of the scaled rows, and `carried` those of the diffusion space in diffusion coordinates of the
    linear space. Held-out pairs chose the first prior.
    """

    standardiser: Standardiser
    components: Float64
    kernel: KernelFeatures
    turned: Float64
    walk: Diffusion
    carried: Float64
    units: tuple[Unit, Unit, Unit]
    priors: tuple[Prior, Prior, Prior]

    def __call__(self, X: Rows, *, as_new: bool = False) -> tuple[Float64, Float64, Float64]:
        """Return rows in the three spaces, in memory; `as_new` places training rows as if they were new."""
        linear = self.linear(X)
        kernel = rows_in_memory(self.kernel.along(self.turned)(self.standardiser(X)))
        carried = (self.walk.as_new(linear) if as_new else self.walk(linear)) @ self.carried
        return linear, self.units[1](np.asarray(kernel)), self.units[2](carried)

    def linear(self, X: Rows) -> Float64:
        """Return rows in the linear space."""
        return self.units[0](np.asarray(rows_in_memory(along(X, self.components.T, origin=self.standardiser.mean))))

    def seen_as_new(self, seen: Seen) -> tuple[Float64, Float64, Float64]:
        """Return the training rows where they would be if they were new: in the diffusion space they are not."""
        linear, kernel, _ = seen.spaces
        return linear, kernel, self.units[2](self.walk.of_others(seen.near) @ self.carried)


@dataclass(frozen=True)
class PreparedRows:
    """The part of the spaces that depends on the rows alone.

    `space` has the whitened coordinates of the linear space, `featured` the rows in kernel principal components, and
    ``featured @ kernel_basis`` the coordinates of the kernel space, each with its learner. `stand_for` is the number of
    rows of which these are landmarks, or 0.
    """

    standardiser: Standardiser
    space: RowSpace
    linear: PairLearner
    features: KernelFeatures
    kernel: PairLearner
    kernel_basis: Float64
    featured: Rows
    search: str
    stand_for: int

    @classmethod
    def of(
        cls,
        X: Rows,
        standardiser: Standardiser,
        *,
        anchors: IntArray,
        search: str = "auto",
        stand_for: int = 0,
        features: KernelFeatures | None = None,
    ) -> PreparedRows | None:
        """Prepare rows in memory or on a device, in float64; None if they are all equal.

        The anchors, rows in pairs, are spanned where not all rows can be. `features` are those of the same rows, where
        they are known.
        """
        space, values = whitened_rows(X, standardiser, anchors=anchors)
        if not space.dim:
            return None
        scaled = standardiser(X)
        if features is None:
            features = kernel_features(scaled, kernel="rbf", gamma="auto", rank=KERNEL_RANK, center=True)
        featured = features(scaled)
        linear = PairLearner.of(space.rows, values, near=True, search=search)
        kernel, basis = whitened(featured, None)
        return cls(standardiser, space, linear, features, kernel, basis, featured, search, stand_for)

    def teach(
        self, known: Constraints, random_state: Any, *, kernel_columns: int = 2, repeats: int = 1
    ) -> tuple[TaughtSpaces, Seen]:
        """Learn the spaces from pairs; folds that choose the prior of the linear space are drawn `repeats` times."""
        choice = choose_prior(self.linear, known, random_state, repeats=repeats)
        directions = self.linear.directions(known, choice.prior, N_COLUMNS)[1]
        linear = along(self.linear.rows, directions)
        units = [Unit.of(linear)]
        linear = units[0](linear)
        for_kernel = choice.trusted(self.kernel, known, IN_KERNEL, kernel_columns)
        in_kernel = self.kernel.directions(known, for_kernel, kernel_columns)[1]
        turned = self.kernel_basis @ in_kernel
        graph = near_graph(linear, N_NEIGHBORS, search=self.search)
        walk = diffusion(rows_in_memory(linear), graph, search=self.search, n_queries=self.stand_for)
        values: Rows = getattr(linear, "like", np.asarray)(walk.values)
        learner, basis = whitened(values, graph)
        for_diffusion = choice.trusted(learner, known, IN_DIFFUSION, DIFFUSION_COLUMNS)
        carried = basis @ learner.directions(known, for_diffusion, DIFFUSION_COLUMNS)[1]
        others = along(self.featured, turned), along(values, carried)
        units += [Unit.of(rows) for rows in others]
        spaces = TaughtSpaces(
            self.standardiser,
            self.space.lift(directions),
            self.features,
            turned,
            walk,
            carried,
            (units[0], units[1], units[2]),
            (choice.prior, for_kernel, for_diffusion),
        )
        kernel, diffused = (unit(rows) for unit, rows in zip(units[1:], others))
        return spaces, Seen((linear, kernel, diffused), graph.indices)

r"""Spaces in which rows are measured: as they are, and as answers have taught the pair learner to see them.

There are four: the rows as they are, scaled column by column; a *linear* space, the pair learner in principal
components of the rows; a *kernel* space, the same learner in kernel principal components, for groups that no plane
separates; and a *diffusion* space, the same learner in diffusion coordinates of the linear space, for groups that are
chains of neighbours. Each is centred on the training rows and has total variance 1 there, so that distances can be
compared and added.

What depends on the rows alone is prepared once (:class:`PreparedRows`) and serves the pairs of all folds. Held-out
answers say how much each space counts (:class:`Stack`); docs/pairlens.md defines the weights. Without answers the rows
as they are count half, and this default counts as 30 answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens import engines
from pairlens.engines import EngineRows, Float64, IntArray, Rows
from pairlens.graphs.nearest import Diffusion, diffusion, near_graph
from pairlens.judging.held_out import PairFolds, auc
from pairlens.judging.probability import FEWEST_OF_A_KIND, fit_pair_model
from pairlens.kernels import KernelFeatures, kernel_features
from pairlens.learning import learner
from pairlens.learning.learner import PairLearner, Prior
from pairlens.spectral.rowspace import RowSpace, Standardiser, symmetric, whitened_rows
from pairlens.supervision import Constraints

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

KERNEL_RANK = 150
DIFFUSION_COLUMNS = 2
IN_KERNEL, IN_DIFFUSION = Prior("rows"), learner.CAUTIOUS
WIDEST_SPARSE = 2000
"""Columns up to which sparse rows are made dense; wider ones are reduced to their leading principal components."""
SPARSE_COMPONENTS = 200
LANDMARKS = 10_000
"""Rows that are learned from unless told otherwise; of more, that many stand for all."""
SPACES = ("rows", "linear", "kernel", "diffusion")
DEFAULT_SHARES = np.array([0.5, 0.3, 0.0, 0.2])
DEFAULT_COUNTS = 30.0
"""Answers that the default shares count as."""
FEWEST_HELD_OUT = 5


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
            mean = engines.column_means(rows)
            scatter = engines.weighted_scatter(rows, offset=mean, is_mean=True)
            return cls(mean, float(np.sqrt(np.trace(scatter) / rows.shape[0])) or float("inf"))
        mean = rows.mean(axis=0)
        centred = rows - mean
        size = float(np.sqrt(np.einsum("ij,ij->", centred, centred) / len(rows)))
        # Rows that are equal up to rounding stay equal.
        return cls(mean, size if size > 1e-12 * float(np.abs(mean).max(initial=0.0)) else float("inf"))

    def __call__(self, rows: Rows) -> Rows:
        return engines.rescaled(rows, offset=self.mean, scale=self.size)


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
        kernel = engines.rows_in_memory(self.kernel.along(self.turned)(self.standardiser(X)))
        carried = (self.walk.as_new(linear) if as_new else self.walk(linear)) @ self.carried
        return linear, self.units[1](np.asarray(kernel)), self.units[2](carried)

    def linear(self, X: Rows) -> Float64:
        """Return rows in the linear space."""
        return self.units[0](
            np.asarray(engines.rows_in_memory(engines.along(X, self.components.T, origin=self.standardiser.mean)))
        )

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
        kernel, basis = learner.whitened(featured, None)
        return cls(standardiser, space, linear, features, kernel, basis, featured, search, stand_for)

    def teach(
        self, known: Constraints, random_state: Any, *, kernel_columns: int = 2, repeats: int = 1
    ) -> tuple[TaughtSpaces, Seen]:
        """Learn the spaces from pairs; folds that choose the prior of the linear space are drawn `repeats` times."""
        choice = learner.choose_prior(self.linear, known, random_state, repeats=repeats)
        directions = self.linear.directions(known, choice.prior, learner.N_COLUMNS)[1]
        linear = engines.along(self.linear.rows, directions)
        units = [Unit.of(linear)]
        linear = units[0](linear)
        for_kernel = choice.trusted(self.kernel, known, IN_KERNEL, kernel_columns)
        in_kernel = self.kernel.directions(known, for_kernel, kernel_columns)[1]
        turned = self.kernel_basis @ in_kernel
        graph = near_graph(linear, learner.N_NEIGHBORS, search=self.search)
        walk = diffusion(engines.rows_in_memory(linear), graph, search=self.search, n_queries=self.stand_for)
        values: Rows = getattr(linear, "like", np.asarray)(walk.values)
        of_walk, basis = learner.whitened(values, graph)
        for_diffusion = choice.trusted(of_walk, known, IN_DIFFUSION, DIFFUSION_COLUMNS)
        carried = basis @ of_walk.directions(known, for_diffusion, DIFFUSION_COLUMNS)[1]
        others = engines.along(self.featured, turned), engines.along(values, carried)
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


def effective_answers(known: Constraints) -> float:
    """Return the number of answers that pairs count as: the sum of their weights, at most two for each row in them.

    So a pair that follows from others counts once: by its weight, or by the limit, never by both.
    """
    return min(known.must_link_total + known.cannot_link_total, 2.0 * len(known.rows))


def pair_lengths(left: Iterable[Float64], right: Iterable[Float64]) -> Float64:
    r"""Return distances of pairs, given by both of their rows in several spaces, over :math:`\sqrt 2`, in columns."""
    return np.column_stack([np.sqrt(np.einsum("ij,ij->i", a - b, a - b) / 2) for a, b in zip(left, right)])


def listed_lengths(spaces: Iterable[Rows], pairs: IntArray) -> Float64:
    """Return the same for pairs of rows that are given by their numbers."""
    return np.column_stack([np.sqrt(engines.pair_squared_distances(space, pairs) / 2) for space in spaces])


def side_by_side(spaces: Sequence[Float64], shares: Float64) -> Float64:
    """Return spaces of total variance 1 side by side, with these total variances instead; those of 0 are left out."""
    return np.hstack([np.sqrt(share) * space for space, share in zip(spaces, shares) if share > 0])


def principal(rows: Float64, k: int) -> tuple[Float64, Float64]:
    """Return the variances of the leading principal components of centred rows, and their directions in columns."""
    values, vectors = symmetric(rows.T @ rows / len(rows), k)
    kept = values > 1e-12 * values.max(initial=0.0)
    return values[kept], vectors[:, kept]


@dataclass(frozen=True)
class Fold:
    """Pairs that were learned from, pairs that were held out, and the rows in the spaces that the former taught."""

    train: Constraints
    rest: Constraints
    spaces: TaughtSpaces
    seen: Seen

    @property
    def pairs(self) -> IntArray:
        """The held-out pairs, must-links first."""
        return np.concatenate([self.rest.must_link, self.rest.cannot_link])

    @property
    def same(self) -> NDArray[np.bool_]:
        """The answers: whether each pair was said to belong together."""
        return np.repeat([True, False], [self.rest.n_must_link, self.rest.n_cannot_link])

    @property
    def weight(self) -> Float64:
        """The weights of the held-out pairs."""
        return np.concatenate([self.rest.must_link_weight, self.rest.cannot_link_weight])

    def lengths(self, plain: Rows) -> Float64:
        """Return their lengths in the spaces, those of the rows as they are first."""
        return listed_lengths((plain, *self.seen.spaces), self.pairs)


@dataclass(frozen=True)
class Stack:
    """The taught spaces with the training rows in them, and how much each space counts.

    There are no folds with fewer than three pairs of a kind; `drawn` are the same folds without what was learned.
    `shares` are the total variances, of sum 1, of the rows as they are and of the taught spaces, and `aucs` say how
    well distance in each tells held-out pairs apart, NaN without folds.
    """

    spaces: TaughtSpaces
    seen: Seen
    folds: tuple[Fold, ...]
    drawn: PairFolds | None
    shares: Float64
    aucs: Float64

    @classmethod
    def of(
        cls,
        prepared: PreparedRows,
        plain: Rows,
        known: Constraints,
        rng: np.random.Generator,
        *,
        kernel_columns: int = 2,
        n_threads: int = 1,
    ) -> Stack:
        """Teach the spaces, once with all pairs and once for each fold, and weigh them by the held-out pairs.

        `plain` are the rows as they are, of total variance 1.
        """
        seed = int(rng.integers(2**31))
        drawn = None
        if min(known.n_must_link, known.n_cannot_link) >= FEWEST_OF_A_KIND:
            drawn = PairFolds.draw_independent(known, learner.FOLDS, rng, keys=prepared.linear.keys(known.rows))

        def teach(fold: tuple[Constraints, Constraints | None]) -> tuple[TaughtSpaces, Seen]:
            repeats = learner.REPEATS if fold[1] is None else 1
            return prepared.teach(fold[0], seed, kernel_columns=kernel_columns, repeats=repeats)

        parts = [(known, None), *(drawn or ())]
        (spaces, seen), *taught = engines.in_threads(teach, parts, n_threads)
        folds = [Fold(train, rest, *found) for (train, rest), found in zip(drawn or (), taught)]
        if sum(len(fold.pairs) for fold in folds) < FEWEST_HELD_OUT:
            return cls(spaces, seen, (), None, DEFAULT_SHARES, np.full(len(SPACES), np.nan))
        lengths = np.concatenate([fold.lengths(plain) for fold in folds])
        same = np.concatenate([fold.same for fold in folds])
        weight = np.concatenate([fold.weight for fold in folds])
        effective = effective_answers(known)
        slopes = fit_pair_model(lengths, same, weight * min(1.0, effective / weight.sum())).slopes
        slopes = slopes * lengths.std(axis=0)
        found = slopes / slopes.sum() if slopes.sum() > 0 else DEFAULT_SHARES
        shares = (DEFAULT_COUNTS * DEFAULT_SHARES + effective * found) / (DEFAULT_COUNTS + effective)
        aucs = np.array([auc(column[same], column[~same]) for column in lengths.T])
        return cls(spaces, seen, tuple(folds), drawn, shares, aucs)

    def described(self, names: Sequence[str] = SPACES) -> dict[str, dict[str, float]]:
        """Return how much each of some spaces counts among them, and its held-out AUC."""
        chosen = [SPACES.index(name) for name in names]
        total = float(self.shares[chosen].sum())
        return {
            name: {"weight": float(self.shares[at]) / total, "auc": float(self.aucs[at])}
            for name, at in zip(names, chosen)
        }

    def __iter__(self) -> Iterator[Fold]:
        return iter(self.folds)


def what_answers_decide(space_weights: Mapping[str, Mapping[str, float]], auc: float | None) -> str | None:
    """Return how much answers decide, and what they add; None if there were too few to hold any out.

    The arguments are `space_weights_` and `auc_` of a fitted :class:`~pairlens.PairMap` or :class:`~pairlens.PairLens`.

    >>> what_answers_decide({"linear": {"weight": 1.0, "auc": 0.9}}, 0.97)
    'Your answers decide all of this view. It tells your held-out pairs apart with AUC 0.97.'
    """
    if auc is None or math.isnan(auc):
        return None
    rows = space_weights.get("rows")
    if rows is None:
        return f"Your answers decide all of this view. It tells your held-out pairs apart with AUC {auc:.2f}."
    return (
        f"Your answers decide {1 - rows['weight']:.0%} of this map. The rows alone would tell your held-out pairs "
        f"apart with AUC {rows['auc']:.2f}; what the map has learned does with {auc:.2f}."
    )

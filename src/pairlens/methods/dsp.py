"""DSP: dual subspace projections, must-links in a kernel space and cannot-links in the input."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pairlens import engines
from pairlens._sklearn import AUTO, COUNT, POSITIVE, SEED, Interval, StrOptions, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.cluster.skkmeans import SKKMeans
from pairlens.engines import Edges, EngineRows, Float64, IntArray, Placement, ProjectedNeighbors, ProjectedRows, Rows
from pairlens.exceptions import ApproximationWarning, ArgumentError, SupervisionWarning
from pairlens.graphs.edges import edges_of
from pairlens.kernels import median_distance, must_link_null_space, resolved_gamma
from pairlens.methods.base import LinearPairTransformer, finite
from pairlens.spectral.rowspace import WHITEN_FLOOR, Matrix, Pencil, RowSpace, symmetric
from pairlens.supervision import Constraints

EXACT_ROWS = 100_000
"""Rows in memory up to which neighbors="auto" means "exact"."""

WIDTHS = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0])
"""Widths of the kernel, the paper's delta, that gamma="search" tries, in units of the median distance."""

SEARCH_ROWS = 5000
"""Rows that gamma="search" clusters, besides those in pairs."""

MAX_IMPLIED = 2_000_000
"""Cannot-links implied by labels up to which all are used."""

HUB_RATIO = 0.5
"""Mean of the projected kernel over linked rows, in units of that over free rows, below which linked rows are hubs."""


@estimator
class DSP(LinearPairTransformer):
    r"""Dual subspace projections.

    Must-linked rows coincide in the null space of their differences in a kernel's feature space, at the distance
    :math:`\hat d` (:class:`~pairlens.KernelNullSpace`). With the graph S of the `n_neighbors` nearest rows in
    :math:`\hat d`, weights :math:`1 - \hat d / \max \hat d`, and the graph R of the `n_neighbors` farthest rows and the
    cannot-links, weights :math:`1 - d / \max d`, it finds linear directions that minimise

    .. math:: \frac{w' A w}{w' B w}, \qquad A = X' L_S X, \quad B = X' L_R X,

    where L is the Laplacian of a graph: equations 9 to 17 of [2]_. So must-links act on who counts as a neighbour,
    unlabelled rows included.

    Choose it for clustering with few pairs and a structure that is not linear. Scale the features first, for example
    each to [0, 1]; the paper does not say how it scaled them.

    Parameters
    ----------
    n_neighbors : int, default=5
        Nearest and farthest rows of each row; all rows if there are fewer.
    gamma : float, "auto" or "search", default="auto"
        The kernel is :math:`\exp(-\gamma d^2)`; the paper's width is :math:`\delta = (2 \gamma)^{-1/2}`. "auto" takes
        the median distance of up to 1,000 rows for :math:`\delta`. "search" tries 0.1 to 3 times that: it clusters by
        :class:`~pairlens.SKKMeans` (5,000 rows at most, besides those in pairs) and takes the width that
        separates most cannot-links, of several the middle one. Too large a gamma does more harm than too small a one.
    scaling : {"A", "unit", "B"}, default="A"
        Length of the directions: :math:`w' A w = 1`, which gives most weight to the best and is best for k-means;
        unit length; or :math:`w' B w = 1`.
    tol : float, default=1e-9
        Directions in which B is up to this share of its largest eigenvalue are dropped. In high dimension a larger one,
        up to 1e-3, regularises, but it also discards directions that few rows differ in.
    neighbors : {"auto", "exact", "approx"}, default="auto"
        "exact" compares all rows with all. "approx" learns from landmarks alone: the rows in pairs and up to 50,000
        others (``config_context(landmark_rows=...)``), evenly spaced, with a warning. "auto" does so above 100,000 rows
        in memory and 50,000 rows of a dask array; rows in a torch tensor are compared on their device.
    n_clusters : int or "auto", default="auto"
        Clusters for ``gamma="search"``. "auto" is the number of classes of the labels in `y` if there are some,
        else 8.
    random_state : int, RandomState, Generator or None, default=None
        For the clusterings of ``gamma="search"``.
    verbose : int, default=0
        1 shows the progress of ``gamma="search"`` on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions.
    eigenvalues_ : array of shape (n_components,)
        :math:`w' A w / w' B w` of each direction, smallest first.
    gamma_ : float
        The value used; missing if there were no pairs.
    gamma_scores_ : dict of arrays
        "gamma", and "separated", the share of cannot-links that the clustering separates; only after a search.

    See Also
    --------
    SKKMeans : Clustering in the null space itself, without a reduction.
    KernelNullSpace : The projected kernel, for other kernel methods.

    Notes
    -----
    Must-links count through the groups of rows that they join, so any set of pairs that joins the same rows gives the
    same result, and weights of pairs are not used. Rows of one group, and identical rows, are equally near to any other
    row; of them those nearer in the input are neighbours, then those with the smaller index.

    Two readings are ours. Neighbours are those in :math:`\hat d`; with those in the input, which equation 9 allows as
    well, the plane turns by 0.5 to 1.4 rad on the paper's small sets, and 1-NN in it is worse on five of eight.
    Directions have the length :math:`w' A w = 1`, which the paper leaves open; with unit lengths the plane is the same,
    but distances in it are not. docs/dsp.md has more, also on how a large gamma makes must-linked rows hubs.

    No n x n array is formed. Beyond X the exact search takes 8 bytes a row for each must-linked row (of more than 2,000
    that many are used, with a warning), and blocks whose size ``sklearn.config_context(working_memory=...)`` bounds, in
    MiB. Of more than 2,000,000 cannot-links implied by labels that many are drawn, with a warning.

    References
    ----------
    .. [1] S. Yan, S. Bouaziz, D. Lee, "DSP: robust semi-supervised dimensionality reduction using dual subspace
       projections", WI-IAT 2010.
    .. [2] S. Yan, S. Bouaziz, D. Lee, J. Barlow, "Semi-supervised dimensionality reduction for analyzing
       high-dimensional data with constraints", Neurocomputing 76, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from pairlens import DSP, Constraints
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, per_class=5, random_state=0)
    >>> DSP(n_components=6, gamma=1.4).fit_transform(minmax_scale(X), constraints=pairs).shape
    (178, 6)
    """

    _rows_may_be: ClassVar = Placement.DEVICE

    n_neighbors: int = parameter(COUNT, default=5)
    gamma: float | str = parameter(POSITIVE, StrOptions({"auto", "search"}), default="auto")
    scaling: str = parameter(StrOptions({"A", "unit", "B"}), default="A")
    tol: float = parameter(Interval(Real, 0, 1, closed="left"), default=1e-9)
    neighbors: str = parameter(StrOptions({"auto", "exact", "approx"}), default="auto")
    n_clusters: int | str = parameter(COUNT, AUTO, default="auto")
    random_state: Any = parameter(*SEED, default=None)
    verbose: int = parameter("verbose", default=0)

    def _within_reach(self, rows: Rows, pairs: Constraints) -> tuple[Rows, Constraints, IntArray | None]:
        rows, pairs, chosen = super()._within_reach(rows, pairs)
        n = rows.shape[0]
        too_many = n > EXACT_ROWS and not isinstance(rows, EngineRows)
        if n <= engines.settings().landmark_rows or not (
            self.neighbors == "approx" or (self.neighbors == "auto" and too_many)
        ):
            return rows, pairs, chosen
        numbers = engines.landmarks(n, pairs.rows, "DSP")
        return rows[numbers], pairs[numbers], numbers if chosen is None else chosen[numbers]

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        """Return A and B, equation 17 of [2]_."""
        rows, chunklets = space.near_rows, pairs.chunklets()
        self.gamma_ = self._find_gamma(rows, pairs)
        # The projected kernel, equation 6, and its distance, equation 10.
        null_space = must_link_null_space(rows, chunklets, gamma=self.gamma_)
        projected = engines.projected_rows(rows, null_space.coordinates(rows), self.gamma_, chunklets)
        self._warn_of_hubs(projected.remaining, chunklets)
        found = projected.neighbors(min(self.n_neighbors, rows.shape[0] - 1))
        S = near_edges(projected, found)  # equation 9
        R = far_edges(projected, found, *cannot_links(pairs))  # equation 14
        return engines.graph_scatter(space.rows, S), engines.graph_scatter(space.rows, R)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return dual_diagonalisation(attract, repel, k, scaling=self.scaling, tol=self.tol)

    def _directions(self, space: RowSpace, pairs: Constraints) -> Pencil:
        """Solve the eigenproblems where the rows are."""
        A, B = (finite(scatter) for scatter in self._scatters(space, pairs))
        eigh = partial(engines.symmetric_eigen, space.rows)
        return dual_diagonalisation(A, B, self._n_wanted, scaling=self.scaling, tol=self.tol, eigh=eigh)

    def _find_gamma(self, rows: Rows, pairs: Constraints) -> float:
        self.__dict__.pop("gamma_scores_", None)
        if self.gamma != "search":
            return resolved_gamma(rows, self.gamma)
        if pairs.n_cannot_link == 0:
            raise ArgumentError("gamma", self.gamma, "needs cannot-links to choose by", 'Give some, or gamma="auto"')
        gammas = 0.5 / (median_distance(rows) * WIDTHS) ** 2
        used = np.union1d(
            pairs.rows[engines.evenly_spaced(len(pairs.rows), SEARCH_ROWS)],
            engines.evenly_spaced(len(pairs), SEARCH_ROWS),
        )
        separated = self._separated(engines.rows_in_memory(rows, used), pairs[used], gammas)
        self.gamma_scores_ = {"gamma": gammas, "separated": separated}
        # Of widths that separate as many, the middle one, and of two the wider: it is farthest from what does harm.
        tied = np.flatnonzero(separated == separated.max())
        return float(gammas[tied[len(tied) // 2]])

    def _separated(self, rows: Rows, pairs: Constraints, gammas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each gamma, the share of cannot-links that SKK-means puts into two clusters."""
        classes = 8 if pairs.labels is None else int(pairs.labels.max()) + 1
        n_clusters = min(classes if isinstance(self.n_clusters, str) else self.n_clusters, rows.shape[0])
        apart, weight = cannot_links(pairs)
        shares = np.zeros(len(gammas))
        for i, gamma in enumerate(gammas):
            model = SKKMeans(n_clusters, gamma=float(gamma), random_state=self.random_state)
            with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
                labels = model.fit(rows, constraints=pairs).labels_
            shares[i] = np.average(labels[apart[:, 0]] != labels[apart[:, 1]], weights=weight)
            if self.verbose:
                print(
                    f"DSP: gamma {i + 1} of {len(gammas)}, {gamma:.4g}, separates {shares[i]:.1%} of the cannot-links",
                    file=sys.stderr,
                    flush=True,
                )
        return shares

    def _warn_of_hubs(self, remaining: NDArray[np.float64], chunklets: IntArray) -> None:
        """Warn if the projected kernel of rows with themselves, `remaining`, is small for must-linked ones."""
        linked = chunklets >= 0
        if linked.all() or not linked.any():
            return
        of_linked, of_free = float(remaining[linked].mean()), float(remaining[~linked].mean())
        if of_linked < HUB_RATIO * of_free:
            other = "" if "gamma_scores_" in vars(self) else ', or gamma="search"'
            warn_user(
                f"DSP: with gamma={self.gamma_:.3g} the must-linked rows become hubs, near to all others whatever "
                f"their class: the projected kernel K(x, x) is {of_linked:.2f} for them on average and {of_free:.2f} "
                f"for the rest. Give a smaller gamma{other}.",
                SupervisionWarning,
            )


def near_edges(rows: ProjectedRows, found: ProjectedNeighbors) -> Edges:
    r"""Return the graph S, which joins nearest rows with weights :math:`1 - \hat d / \max \hat d`."""
    edges = edges_of(found.nearest)
    distance = np.sqrt(rows.squared_distances(edges[:, 0], edges[:, 1]))
    return Edges(edges, _falling(distance, found.largest_projected))


def far_edges(rows: ProjectedRows, found: ProjectedNeighbors, cannot_link: IntArray, factor: Float64) -> Edges:
    r"""Return the graph R, which joins farthest and cannot-linked rows with weights :math:`1 - d / \max d`.

    Those of cannot-links are multiplied by their factor.
    """
    farthest = edges_of(found.farthest)
    # Farthest first: of an edge given twice the first counts, and one that is known needs no factor.
    edges = np.concatenate([farthest, cannot_link])
    factor = np.concatenate([np.ones(len(farthest)), factor])
    _, chosen = np.unique(edges[:, 0] * rows.n + edges[:, 1], return_index=True)
    edges, factor = edges[chosen], factor[chosen]
    distance = np.sqrt(engines.pair_squared_distances(rows.X, edges))
    return Edges(edges, factor * _falling(distance, found.largest_input))


def _falling(distance: Float64, largest: float) -> Float64:
    return np.maximum(1 - distance / largest, 0.0) if largest > 0 else np.ones(len(distance))


def cannot_links(known: Constraints) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the cannot-links with a factor each: 1, or the number that each stands for where labels imply too many."""
    given = known.explicit.cannot_link
    implied = known.n_cannot_link - len(given)
    if known.labels is None or implied <= MAX_IMPLIED:
        pairs = known.cannot_link
        return pairs, np.ones(len(pairs))
    drawn = Constraints.from_labels(known.labels, n_pairs=MAX_IMPLIED, random_state=0).cannot_link
    warn_user(
        f"the labels imply {implied:,} cannot-links; {len(drawn):,} of them, drawn with a fixed seed, represent all.",
        ApproximationWarning,
    )
    factor = np.repeat([1.0, implied / len(drawn)], [len(given), len(drawn)])
    return np.concatenate([given, drawn]), factor


def dual_diagonalisation(
    A: Matrix,
    B: Matrix,
    k: int,
    *,
    scaling: str = "A",
    tol: float = 1e-9,
    eigh: Callable[[Matrix], Pencil] = symmetric,
) -> Pencil:
    r"""Return directions of smallest :math:`w' A w / w' B w`, smallest first, without the null space of B.

    The eigenproblem :math:`A w = \lambda B w`, equations 20 and 21 of Yan et al. (2012), by simultaneous
    diagonalisation: B is diagonalised, its null space (eigenvalues up to the share `tol` of the largest) dropped, B
    whitened, and A diagonalised there. `scaling` says which length is 1; eigenvalues below 1e-12 of the largest are
    raised to that before A's is divided by, and if A is zero, B's is 1 instead.
    """
    size, basis = eigh(B)
    keep = size > tol * size.max(initial=0.0)
    whiten = basis[:, keep] / np.sqrt(size[keep])
    values, vectors = eigh(whiten.T @ A @ whiten)
    values, directions = values[::-1], whiten @ vectors[:, ::-1]
    largest = values.max(initial=0.0)
    if scaling == "A" and largest > 0:
        directions = directions / np.sqrt(np.maximum(values, WHITEN_FLOOR * largest))
    elif scaling == "unit":
        directions = directions / np.linalg.norm(directions, axis=0)
    return values[:k], directions[:, :k]

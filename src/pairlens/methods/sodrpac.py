"""SODRPaC: directions for classes that consist of several clusters.

Its criterion is in :class:`Terms`, the search for its parameters by held-out pairs in :func:`held_out_scores`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pairlens import engines
from pairlens._sklearn import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, SEED, Interval, StrOptions, estimator, parameter
from pairlens._warnings import warn_fallback, warn_user
from pairlens.engines import FloatArray, IntArray, Placement
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs import edges
from pairlens.graphs.nearest import SEARCHES
from pairlens.graphs.transformation import Generated, Mutual, generate
from pairlens.methods.base import LinearPairTransformer, finite
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, difference, generalized, range_basis
from pairlens.spectral.scatters import Space, cannot_link_scatter
from pairlens.supervision import Constraints

DEFAULT_LAM = 8.0
LAM_GRID = 2.0 ** np.arange(-5, 11)
THETA_GRID = 2.0 ** np.arange(-4, 5)
"""Of the paper, whose theta is 1 / gamma, in units of the squared mean norm of the centred rows."""

MAX_SEARCH_PAIRS = 20_000
"""Pairs that take part in a search; from more, this many are drawn."""
MAX_SCORED = 1_000
"""Pairs of each sort whose lengths are compared at a grid point; from more, an even choice is taken."""
NEGLIGIBLE = 1e-3
"""Share of comparisons that is never worth another direction."""
SINGLE_THREADED = 200
"""Below this size of an eigenproblem, several threads only wait for each other."""


@estimator
class SODRPaC(LinearPairTransformer):
    r"""Subclass-oriented dimension reduction with pairwise constraints.

    Must-links are first turned into cannot-links (:func:`~pairlens.transform_constraints`), for two rows of one class
    may lie in different clusters of it and need not be near. Then the orthonormal leading eigenvectors of

    .. math:: X' \left(P - Q - \frac{\lambda}{n} M\right) X

    are kept: P is the mean over all cannot-links of their squared length times reliability, Q that over the pairs of
    mutual nearest neighbours times the number of neighbours they share, and :math:`M = I - K^{-1/2} U K^{-1/2}` the
    normalised Laplacian of the graph of nearest neighbours with weights :math:`\exp(-\gamma \|x_i - x_j\|^2)`.

    Choose it when classes fall into several clusters, so that true must-links join rows that should not become
    neighbours, and there are cannot-links. Standardise the features first.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions to keep. "auto" takes the fewest whose held-out score is within one standard error (or
        0.001) of the best.
    n_neighbors : int, default=3
        Two rows are mutual neighbours if each is among this many nearest of the other.
    n_graph_neighbors : int, default=5
        Neighbours of each row in the graph of the manifold term.
    lam : float or "auto", default=8.0
        Weight :math:`\lambda` of the manifold term; 0 leaves it out. Large values leave only directions in which
        nothing much varies. "auto" tries :math:`2^{-5} \dots 2^{10}`.
    gamma : float, "auto" or "search", default="auto"
        The weights of neighbours, for reliabilities and for the manifold term, are :math:`\exp(-\gamma d^2)`. "auto" is
        :math:`1 / \delta^2`, with :math:`\delta` the mean norm of the centred rows; "search" tries
        :math:`2^{-4} / \delta^2 \dots 2^4 / \delta^2`.
    cv : int, default=5
        Folds over the pairs for ``lam="auto"``, ``gamma="search"`` and ``n_components="auto"``; fewer if there are
        fewer cannot-links.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Value of the criterion in each direction, largest first. They may be negative.
    n_components_ : int
        Number of directions.
    lam_, gamma_ : float
        The values used.
    cv_results_ : dict of arrays
        Held-out scores of the grid, in the form of scikit-learn's ``cv_results_``; only after a search.

    See Also
    --------
    transform_constraints : The first step by itself.

    Notes
    -----
    The paper's text has lost its equations; this is a reconstruction (docs/sodrpac.md). That the manifold term centres
    X is ours: its Laplacian does not vanish on constants. With the rows as they are the plane turns by 0.2 to 0.7 rad
    on seven small sets, and 1-NN in it changes by up to 0.04. Weights of cannot-links count
    relative to their mean, those of must-links not at all.

    The held-out score is the share of comparisons in which a cannot-link that only the held-out pairs give, by
    themselves or through :func:`~pairlens.transform_constraints`, is longer than a pair of mutual neighbours; unlike
    :meth:`score` it does not ask must-links to be short. With fewer than two cannot-links the defaults are used.

    With must-links alone the directions are those in which neighbours differ least, mostly worse than PCA: a warning
    says so, and another when a given `lam` makes all eigenvalues negative.

    References
    ----------
    .. [1] B. Tong, E. Suzuki, "Subclass-oriented dimension reduction with constraint transformation and manifold
       regularization", PAKDD 2010, part II.

    Examples
    --------
    >>> from pairlens import SODRPaC
    >>> from pairlens.datasets import make_subclass_blobs
    >>> X, y, pairs = make_subclass_blobs(random_state=0)
    >>> SODRPaC(n_components=1, lam=32.0).fit(X, constraints=pairs).components_.round(3)
    array([[0.999, 0.032]])
    >>> found = SODRPaC(n_components="auto", lam="auto", random_state=0).fit(X, constraints=pairs)
    >>> found.n_components_
    1
    """

    _rows_may_be: ClassVar = Placement.DEVICE
    _needs: ClassVar = ""
    n_components: int | str = parameter(COUNT, AUTO, default=2, kw_only=False)
    n_neighbors: int = parameter(COUNT, default=3)
    n_graph_neighbors: int = parameter(COUNT, default=5)
    lam: float | str = parameter(NOT_NEGATIVE, AUTO, default=DEFAULT_LAM)
    gamma: float | str = parameter(POSITIVE, StrOptions({"auto", "search"}), default="auto")
    cv: int = parameter(Interval(Integral, 2, None, closed="left"), default=5)
    random_state: Any = parameter(*SEED, default=None)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")

    @property
    def _n_wanted(self) -> int:
        return self.n_components_

    def _directions(self, space: RowSpace, pairs: Constraints) -> Pencil:
        spread = space.covariance()
        if pairs.n_pairs == 0:
            self._settle(space)
            warn_fallback(self, "no pairs were given")
            return generalized(finite(spread), np.eye(space.dim), self.n_components_)
        attract, repel = self._scatters(space, pairs)
        # With the covariance on both sides the choice is among all directions in which the rows vary.
        values, directions = self._solve(finite(attract + spread), finite(repel + spread), self.n_components_)
        if pairs.n_cannot_link and values[:1].sum() < 0 and self.lam != "auto":
            warn_user(
                f"SODRPaC: with lam={self.lam_:.3g} the criterion is negative in every direction, which leaves those "
                "in which the rows vary least. Lower lam.",
                SupervisionWarning,
            )
        return values, directions

    def _keep(self, space: Space, directions: Matrix, dtype: np.dtype[Any]) -> None:
        super()._keep(space, directions, dtype)
        self.n_components_ = len(self.components_)

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        terms = Terms.of(space, self.n_neighbors, self.n_graph_neighbors, search=self.neighbors)
        self._choose(terms, pairs)
        if pairs.n_cannot_link == 0:
            warn_user(
                "SODRPaC: no cannot-links were given, so the directions are merely those in which neighbours differ "
                "least. Give cannot-links by constraints=, or labels of at least two classes by y=.",
                SupervisionWarning,
            )
        attract = terms.together + self.lam_ * terms.manifold(self.gamma_)
        return attract, terms.apart(pairs, terms.generate(pairs), self.gamma_)

    _solve = staticmethod(difference)

    def _settle(self, space: RowSpace) -> float:
        """Set what is given, and the defaults of what is to be found; return the default gamma."""
        self.__dict__.pop("cv_results_", None)
        usual = edges.default_gamma(space.near_rows)
        self.lam_ = DEFAULT_LAM if isinstance(self.lam, str) else float(self.lam)
        self.gamma_ = usual if isinstance(self.gamma, str) else float(self.gamma)
        self.n_components_ = min(2, space.dim) if self.n_components == "auto" else int(self.n_components)
        return usual

    def _choose(self, terms: Terms, pairs: Constraints) -> None:
        """Set `lam_`, `gamma_` and `n_components_`, by a search where one was asked for."""
        usual = self._settle(terms.space)
        asked = {
            "lam": (self.lam, "auto"),
            "gamma": (self.gamma, "search"),
            "n_components": (self.n_components, "auto"),
        }
        wanted = {name: f"{name}={value!r}" for name, (value, word) in asked.items() if value == word}
        n_splits = min(self.cv, pairs.n_cannot_link)
        if not wanted:
            return
        if n_splits < 2:
            warn_user(
                f"SODRPaC: {' and '.join(wanted.values())} cannot be found from {pairs.n_cannot_link} cannot-link(s): "
                f"at least 2 are needed. lam={self.lam_:.3g}, gamma={self.gamma_:.3g} and "
                f"n_components={self.n_components_} are used.",
                SupervisionWarning,
            )
            return
        scores = held_out_scores(
            terms,
            pairs,
            lams=LAM_GRID if "lam" in wanted else np.array([self.lam_]),
            gammas=usual / THETA_GRID if "gamma" in wanted else np.array([self.gamma_]),
            dims=np.arange(1, terms.space.dim + 1) if "n_components" in wanted else np.array([self.n_components_]),
            n_splits=n_splits,
            random_state=self.random_state,
        )
        self.lam_, self.gamma_, self.n_components_ = scores.best()
        self.cv_results_ = scores.table()


@dataclass(frozen=True)
class Terms:
    r"""Hold the three terms of the criterion, :math:`P - Q - \lambda M`, as far as they depend on the rows alone.

    P keeps cannot-links apart, Q shared nearest neighbours together, M the manifold of all rows. Neighbours, their
    distances and Q depend on no parameter, M on gamma only, and what the constraints generate on the constraints only.
    """

    space: RowSpace
    mutual: Mutual
    together: Matrix
    graph: IntArray
    graph_squared: NDArray[np.float64]
    total: Matrix

    @classmethod
    def of(cls, space: RowSpace, n_neighbors: int, n_graph_neighbors: int, *, search: str = "auto") -> Terms:
        """Find the neighbours, once for both graphs."""
        near = space.near_rows
        mutual, shared, graph = edges.mutual_and_graph_edges(near, n_neighbors, n_graph_neighbors, search=search)
        return cls(
            space=space,
            mutual=Mutual(mutual, engines.pair_squared_distances(near, mutual)),
            together=engines.pair_scatter(space.rows, mutual, shared) / max(1, len(mutual)),
            graph=graph,
            graph_squared=engines.pair_squared_distances(near, graph),
            total=space.total_scatter(),
        )

    def apart(self, known: Constraints, made: Generated, gamma: float) -> Matrix:
        """Return P, the mean over given and generated cannot-links, each with its reliability."""
        count = known.n_cannot_link + len(made.pairs)
        if count == 0:
            return np.zeros_like(self.total)
        given = cannot_link_scatter(self.space, known) / certain(known)
        return (given + engines.pair_scatter(self.space.rows, made.pairs, made.reliability(gamma))) / count

    def manifold(self, gamma: float) -> Matrix:
        r"""Return M / n, the mean over the rows under the normalised Laplacian :math:`I - K^{-1/2} U K^{-1/2}`."""
        U = engines.weight_matrix(self.graph, edges.heat_weights(self.graph_squared, gamma), self.space.n_rows)
        scaled = edges.normalized_graph(U)
        whole = (
            self.total
            + engines.graph_scatter(self.space.rows, scaled)
            - self.space.total_scatter(edges.degrees(scaled))
        )
        return whole / self.space.n_rows

    def generate(self, known: Constraints) -> Generated:
        """Return the cannot-links that follow from must-links."""
        return generate(known, self.mutual, unit=certain(known))


def certain(known: Constraints) -> float:
    """Return the weight of a given cannot-link that counts as certain: their mean, or that of a pair of labels."""
    return 1.0 if known.labels is not None or not known.n_cannot_link else known.cannot_link_total / known.n_cannot_link


@dataclass(frozen=True)
class Scores:
    """Held-out scores of shape (n_splits, n_lams, n_gammas, n_dims) over a grid.

    They say how often a held-out cannot-link is longer than a pair of mutual neighbours.
    """

    lams: FloatArray
    gammas: FloatArray
    dims: IntArray
    values: NDArray[np.float64]

    def best(self) -> tuple[float, float, int]:
        """Return lam, gamma and n_components: the fewest directions with a score within one standard error of the best.

        More directions come ever closer to the distances of all features, in which neighbours are nearest by
        definition: without the standard error the score would hardly ever choose few.
        """
        mean = self.values.mean(axis=0)
        top = np.unravel_index(np.argmax(mean), mean.shape)
        error = self.values.std(axis=0, ddof=1)[top] / np.sqrt(len(self.values))
        dim = int(np.argmax(mean.max(axis=(0, 1)) >= mean[top] - max(error, NEGLIGIBLE)))
        lam, gamma = np.unravel_index(np.argmax(mean[:, :, dim]), mean.shape[:2])
        return float(self.lams[lam]), float(self.gammas[gamma]), int(self.dims[dim])

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the scores as scikit-learn's ``cv_results_``, with one entry per grid point."""
        lam, gamma, dim = (part.ravel() for part in np.meshgrid(self.lams, self.gammas, self.dims, indexing="ij"))
        flat = self.values.reshape(len(self.values), -1)
        mean = flat.mean(axis=0)
        table = {"param_lam": lam, "param_gamma": gamma, "param_n_components": dim}
        table |= {f"split{fold}_test_score": score for fold, score in enumerate(flat)}
        rank = np.searchsorted(np.sort(-mean), -mean) + 1
        return table | {"mean_test_score": mean, "std_test_score": flat.std(axis=0), "rank_test_score": rank}


def held_out_scores(
    terms: Terms,
    known: Constraints,
    *,
    lams: FloatArray,
    gammas: FloatArray,
    dims: IntArray,
    n_splits: int,
    random_state: Any,
) -> Scores:
    """Score every grid point by folds over the pairs, of which at least `n_splits` are cannot-links.

    Neighbours are found once for all grid points and folds; each point then costs one eigenproblem of the size of the
    features. The cannot-links, given and generated, that only the held-out pairs give should be long in the directions
    learned from the others, and mutual neighbours should be short. Held-out must-links count through what they
    generate, for between two clusters of a class they need not be short.
    """
    if known.n_pairs > MAX_SEARCH_PAIRS:
        known = known.sample(MAX_SEARCH_PAIRS, random_state)
    _, basis = range_basis(terms.total)
    most = min(int(dims.max()), basis.shape[1])
    together = basis.T @ terms.together @ basis
    manifolds = [basis.T @ terms.manifold(gamma) @ basis for gamma in gammas]
    short = _differences(terms, terms.mutual.edges) @ basis
    everything = _all_cannot_links(known, terms.generate(known))
    values = np.empty((n_splits, len(lams), len(gammas), len(dims)))
    with engines.one_blas_thread() if terms.space.dim < SINGLE_THREADED else nullcontext():
        for fold, (train, _) in enumerate(known.split(n_splits, random_state)):
            made = terms.generate(train)
            long = _differences(terms, _missing(everything, _all_cannot_links(train, made))) @ basis
            for g, gamma in enumerate(gammas):
                criterion = basis.T @ terms.apart(train, made, gamma) @ basis - together
                for k, lam in enumerate(lams):
                    directions = _leading(criterion - lam * manifolds[g], most)
                    score = _longer(short @ directions, long @ directions, np.minimum(dims, most))
                    values[fold, k, g] = score
    return Scores(lams, gammas, dims, values)


def _all_cannot_links(known: Constraints, made: Generated) -> IntArray:
    return np.concatenate([known.cannot_link, made.pairs])


def _missing(pairs: IntArray, others: IntArray) -> IntArray:
    """Return the pairs that the others lack."""
    width = int(pairs.max(initial=0)) + 1
    return pairs[~np.isin(pairs @ [width, 1], others @ [width, 1])]


def _differences(terms: Terms, pairs: IntArray) -> NDArray[np.float64]:
    """Return differences of the rows of pairs, of an even choice where there are too many."""
    chosen = pairs[:: -(-len(pairs) // MAX_SCORED) or 1]
    return engines.take_rows(terms.space.rows, chosen[:, 0]) - engines.take_rows(terms.space.rows, chosen[:, 1])


def _leading(A: Matrix, k: int) -> Matrix:
    """Return the k leading eigenvectors, best first."""
    dim = len(A)
    _, vectors = linalg.eigh(A, subset_by_index=(dim - k, dim - 1), check_finite=False)
    return np.asarray(vectors[:, ::-1])


def _longer(short: Matrix, long: Matrix, dims: IntArray) -> NDArray[np.float64]:
    """Return, for each number of first directions in `dims`, how often one of `long` is longer than one of `short`."""
    if len(short) == 0 or len(long) == 0:
        return np.zeros(len(dims))
    within, beyond = (np.sort(np.cumsum(part**2, axis=1).T[dims - 1], axis=1) for part in (short, long))
    return np.array([np.searchsorted(shorter, longer).mean() for shorter, longer in zip(within, beyond)]) / len(short)

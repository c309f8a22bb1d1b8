"""The search for SODRPaC's parameters by held-out pairs.

Neighbours are found once for all grid points and folds; each point then costs one eigenproblem of the size of the
features.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pairlens.engines import FloatArray, IntArray, one_blas_thread, take_rows
from pairlens.graphs.transformation import Generated
from pairlens.methods.sodrpac.criterion import Terms
from pairlens.spectral.eigen import Matrix, range_basis
from pairlens.supervision import Constraints

MAX_SEARCH_PAIRS = 20_000
"""Pairs that take part in a search; from more, this many are drawn."""
MAX_SCORED = 1_000
"""Pairs of each sort whose lengths are compared at a grid point; from more, an even choice is taken."""
NEGLIGIBLE = 1e-3
"""Share of comparisons that is never worth another direction."""
SINGLE_THREADED = 200
"""Below this size of an eigenproblem, several threads only wait for each other."""


@dataclass(frozen=True)
class Scores:
    """Held-out scores over a grid.

    Attributes
    ----------
    lams, thetas : arrays
        The grid; theta in its own unit, not in that of the rows.
    dims : int array
        The numbers of directions.
    values : array of shape (n_splits, n_lams, n_thetas, n_dims)
        For each fold, how often a held-out cannot-link is longer than a pair of mutual neighbours.
    """

    lams: FloatArray
    thetas: FloatArray
    dims: IntArray
    values: NDArray[np.float64]

    def best(self) -> tuple[float, float, int]:
        """lam, theta and n_components: the fewest directions with a score within one standard error of the best.

        More directions come ever closer to the distances of all features, in which neighbours are nearest by
        definition: without the standard error the score would hardly ever choose few.
        """
        mean = self.values.mean(axis=0)
        top = np.unravel_index(np.argmax(mean), mean.shape)
        error = self.values.std(axis=0, ddof=1)[top] / np.sqrt(len(self.values))
        dim = int(np.argmax(mean.max(axis=(0, 1)) >= mean[top] - max(error, NEGLIGIBLE)))
        lam, theta = np.unravel_index(np.argmax(mean[:, :, dim]), mean.shape[:2])
        return float(self.lams[lam]), float(self.thetas[theta]), int(self.dims[dim])

    def table(self) -> dict[str, NDArray[Any]]:
        """As scikit-learn's ``cv_results_``: one entry per grid point."""
        lam, theta, dim = (part.ravel() for part in np.meshgrid(self.lams, self.thetas, self.dims, indexing="ij"))
        flat = self.values.reshape(len(self.values), -1)
        mean = flat.mean(axis=0)
        # Under its former name too, for those who read it.
        gamma = {"param_gamma": 1 / theta, "param_theta": theta}
        table = {"param_lam": lam, **gamma, "param_n_components": dim}
        table |= {f"split{fold}_test_score": score for fold, score in enumerate(flat)}
        rank = np.searchsorted(np.sort(-mean), -mean) + 1
        return table | {"mean_test_score": mean, "std_test_score": flat.std(axis=0), "rank_test_score": rank}


def held_out_scores(
    terms: Terms,
    known: Constraints,
    *,
    lams: FloatArray,
    thetas: FloatArray,
    dims: IntArray,
    unit: float,
    n_splits: int,
    random_state: Any,
) -> Scores:
    """Score every grid point by folds over the pairs.

    The cannot-links, given and generated, that only the held-out pairs give should be long in the directions learned
    from the others, and mutual neighbours should be short. Held-out must-links count through what they generate, for
    between two clusters of a class they need not be short.

    Parameters
    ----------
    terms : Terms
    known : Constraints
        At least `n_splits` cannot-links.
    lams, thetas, dims
        The grid.
    unit : float
        What the manifold term is divided by.
    n_splits : int
        Number of folds.
    random_state : int, RandomState, Generator or None
        Makes the folds repeatable.
    """
    if known.n_pairs > MAX_SEARCH_PAIRS:
        known = known.sample(MAX_SEARCH_PAIRS, random_state)
    _, basis = range_basis(terms.total)
    most = min(int(dims.max()), basis.shape[1])
    together = basis.T @ terms.together @ basis
    manifolds = [basis.T @ terms.manifold(theta) @ basis / unit for theta in thetas]
    short = _differences(terms, terms.mutual.edges) @ basis
    everything = _all_cannot_links(known, terms.generate(known))
    values = np.empty((n_splits, len(lams), len(thetas), len(dims)))
    with one_blas_thread() if terms.space.dim < SINGLE_THREADED else nullcontext():
        for fold, (train, _) in enumerate(known.split(n_splits, random_state)):
            made = terms.generate(train)
            long = _differences(terms, _missing(everything, _all_cannot_links(train, made))) @ basis
            for t, theta in enumerate(thetas):
                criterion = basis.T @ terms.apart(train, made, theta) @ basis - together
                for k, lam in enumerate(lams):
                    directions = _leading(criterion - lam * manifolds[t], most)
                    score = _longer(short @ directions, long @ directions, np.minimum(dims, most))
                    values[fold, k, t] = score
    return Scores(lams, thetas, dims, values)


def _all_cannot_links(known: Constraints, made: Generated) -> IntArray:
    return np.concatenate([known.cannot_link, made.pairs])


def _missing(pairs: IntArray, others: IntArray) -> IntArray:
    """The pairs that the others lack."""
    width = int(pairs.max(initial=0)) + 1
    return pairs[~np.isin(pairs @ [width, 1], others @ [width, 1])]


def _differences(terms: Terms, pairs: IntArray) -> NDArray[np.float64]:
    """Differences of the rows of pairs, of an even choice where there are too many."""
    chosen = pairs[:: -(-len(pairs) // MAX_SCORED) or 1]
    return take_rows(terms.space.rows, chosen[:, 0]) - take_rows(terms.space.rows, chosen[:, 1])


def _leading(A: Matrix, k: int) -> Matrix:
    """The k leading eigenvectors, best first."""
    dim = len(A)
    _, vectors = linalg.eigh(A, subset_by_index=(dim - k, dim - 1), check_finite=False)
    return np.asarray(vectors[:, ::-1])


def _longer(short: Matrix, long: Matrix, dims: IntArray) -> NDArray[np.float64]:
    """For each number of first directions in `dims`: how often one of `long` is longer than one of `short`."""
    if len(short) == 0 or len(long) == 0:
        return np.zeros(len(dims))
    within, beyond = (np.sort(np.cumsum(part**2, axis=1).T[dims - 1], axis=1) for part in (short, long))
    return np.array([np.searchsorted(shorter, longer).mean() for shorter, longer in zip(within, beyond)]) / len(short)

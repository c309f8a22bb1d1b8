r"""Groups of rows in a view: normal groups of one width, and what answers say about the rows in them.

Row i belongs to group c with the probability

.. math::
    q_{ic} \propto \pi_c \exp\Bigl(-\frac{\|z_i - m_c\|^2}{2 v} + \sum_j w_{ij} q_{jc}\Bigr), \qquad
    w_{ij} = \pm \log\frac{1 - e}{e},

with a plus for must-links and a minus for cannot-links, times their weights, e being the share of wrong answers. Shares
:math:`\pi`, means m and the variance v are those of the rows, and the equations are solved by iteration (a mean-field
approximation of a hidden Markov random field). So an answer is evidence, not a command: rows that lie far from each
other, or other answers, can outweigh it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import softmax

from pairlens.cluster.kmeans import squared_distances
from pairlens.engines import Float64, IntArray, row_blocks
from pairlens.supervision import Constraints

__all__ = ["Evidence", "Mixture", "fit_mixture", "likeliest", "matched"]

MOST_ITERATIONS = 30
INNER = 3
"""Times that answers are passed on between two estimates of the means."""
SETTLED = 1e-3
"""Largest change of a probability at which the iteration ends."""
ROUNDS = 20
"""Times that answers are passed on in groups that are known."""
CAUTIONS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
EXCEPTIONS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
"""Values that are tried."""


@dataclass(frozen=True)
class Evidence:
    """Logarithmic odds of answers for two of the rows in pairs being in one group, positive for must-links."""

    rows: IntArray
    weight: sparse.csr_matrix

    @classmethod
    def of(cls, known: Constraints, mistakes: float) -> Evidence:
        """Weigh the pairs by the share of wrong answers."""
        rows = known.rows
        pairs = np.searchsorted(rows, np.concatenate([known.must_link, known.cannot_link]))
        value = np.concatenate([known.must_link_weight, -known.cannot_link_weight]) * np.log(1 / mistakes - 1)
        half = sparse.csr_matrix((value, (pairs[:, 0], pairs[:, 1])), shape=(len(rows), len(rows)))
        return cls(rows, (half + half.T).tocsr())


@dataclass(frozen=True)
class Mixture:
    """Groups in a view: their centres, the logarithms of their shares, and the variance of each column inside them.

    The logarithmic odds are divided by the `caution` to become probabilities: a view that was learned to separate the
    groups makes them look surer than they are. The share `exceptions` of the rows may be in any group, wherever they
    are.
    """

    centers: Float64
    log_share: Float64
    variance: float
    caution: float = 1.0
    exceptions: float = 0.0

    def __len__(self) -> int:
        return len(self.centers)

    @classmethod
    def of(cls, Z: Float64, q: Float64) -> Mixture:
        """Estimate the groups from rows and their probabilities."""
        count = q.sum(axis=0)
        share = np.maximum(count, 1e-12)
        centers = (q.T @ Z) / share[:, None]
        squared = float(np.einsum("ij,ij->", q, squared_distances(Z, centers)))
        # Rows that coincide with their centres leave no width; any small one does.
        least = 1e-9 * float(Z.var(axis=0).mean()) or 1.0
        return cls(centers, np.log(share / share.sum()), max(squared / Z.size, least))

    def log_odds(self, Z: Float64) -> Float64:
        """Return the logarithms of the unnormalised probabilities of rows, of shape (n_rows, n_groups)."""
        return np.asarray(self.log_share - squared_distances(Z, self.centers) / (2 * self.variance))

    def probabilities(self, Z: Float64) -> Float64:
        """Return the probability of each group for rows, by their places."""
        by_place = softmax(self.log_odds(Z) / self.caution, axis=1)
        return np.asarray((1 - self.exceptions) * by_place + self.exceptions * softmax(self.log_share))

    def kept(self, groups: IntArray) -> Mixture:
        """Return some of the groups, in this order."""
        return replace(self, centers=self.centers[groups], log_share=self.log_share[groups])


def weighed(log_odds: Float64, q: Float64, evidence: Evidence, rounds: int) -> Float64:
    """Return the probabilities of rows by their place and, where they are in pairs, by the answers.

    Answers are passed on in `rounds`, from the probabilities q so far; each goes half of the way, which prevents
    oscillation.
    """
    found = softmax(log_odds, axis=1)
    if len(evidence.rows):
        linked, own = q[evidence.rows], log_odds[evidence.rows]
        for _ in range(rounds):
            linked = (linked + softmax(own + evidence.weight @ linked, axis=1)) / 2
        found[evidence.rows] = linked
    return np.asarray(found)


def fit_mixture(Z: Float64, labels: IntArray, k: int, evidence: Evidence) -> tuple[Mixture, Float64]:
    """Fit k groups to rows and answers from a first guess; return also the probability of each group for each row."""
    q = np.eye(k)[labels]
    mixture = Mixture.of(Z, q)
    for _ in range(MOST_ITERATIONS):
        last = q
        q = weighed(mixture.log_odds(Z), q, evidence, INNER)
        mixture = Mixture.of(Z, q)
        if float(np.abs(q - last).max()) < SETTLED:
            break
    return mixture, q


def matched(mixture: Mixture, Z: Float64, same: Float64) -> Mixture:
    r"""Return the mixture with the caution and the exceptions at which its groups agree best with P(same).

    Two rows are in one group with the probability :math:`\sum_c q_{ic} q_{jc}`. The mean squared difference between
    P(same) of all pairs and that is smallest.
    """
    upper = np.triu_indices(len(Z), 1)

    def difference(tried: Mixture) -> float:
        q = tried.probabilities(Z)
        return float(np.mean(((q @ q.T)[upper] - same[upper]) ** 2))

    tried = (replace(mixture, caution=c, exceptions=x) for c in CAUTIONS for x in EXCEPTIONS)
    return min(tried, key=difference)


def likeliest(Z: Float64, mixture: Mixture, evidence: Evidence) -> tuple[IntArray, Float64]:
    """Return the likeliest group of each row by its place and the answers, and its probability."""
    labels, chance = np.empty(len(Z), dtype=np.int64), np.empty(len(Z))
    for block in row_blocks(len(Z), 8 * len(mixture)):
        q = mixture.probabilities(Z[block])
        labels[block], chance[block] = np.argmax(q, axis=1), q.max(axis=1)
    if len(evidence.rows):
        linked = Evidence(np.arange(len(evidence.rows)), evidence.weight)
        q = mixture.probabilities(Z[evidence.rows])
        q = weighed(np.log(np.maximum(q, np.finfo(float).tiny)), q, linked, ROUNDS)
        labels[evidence.rows], chance[evidence.rows] = np.argmax(q, axis=1), q.max(axis=1)
    return labels, chance

r"""Find groups of rows in a view: several numbers of groups, several first guesses, and the best of them.

The best grouping is the one with the largest sum of two terms. Of those that are as good up to a margin, the one with
fewest groups is taken, so that the last digits do not decide.

The m *answers* give the logarithm of their likelihood: each is wrong with one unknown probability, whatever it says.
This has a Beta prior, that of right answers in nine of ten, so that the likelihood is a quotient of Beta functions.
With one probability for pairs inside groups and another for pairs between them, the number of groups is further off
where answers are wrong.

The *rows* give the adjusted Rand index that is expected between the grouping and the truth, where P(same) of the
learner says how probable it is that two rows belong together (Fritsch and Ickstadt 2009 [1]_): with
:math:`s_{ij} = 1` inside groups and means over pairs of rows,

.. math::
    \frac{\overline{s p} - \bar s \bar p}{(\bar s + \bar p) / 2 - \bar s \bar p},

times m + 5, and the mean silhouette in the view, times 30. Without P(same), for want of answers, it is the silhouette
of the rows as they are alone.

References
----------
.. [1] A. Fritsch, K. Ickstadt, "Improved criteria for clustering based on the posterior similarity matrix", Bayesian
   Analysis 4, 2009.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import betaln
from sklearn.exceptions import ConvergenceWarning

from pairlens.cluster.kmeans import WeightedPoints, greedy_seeds
from pairlens.cluster.learned import Learned
from pairlens.cluster.mixture import Evidence, Mixture, fit_mixture, matched
from pairlens.engines import Float64, IntArray, group_means
from pairlens.learning.stack import effective_answers
from pairlens.supervision import Constraints

__all__ = [
    "agreement",
    "best_groups",
    "candidates",
    "expected_rand",
    "find_groups",
    "first_guesses",
    "named_groups",
    "score",
]

CHOICE_ROWS = 1000
"""Rows by which the number of groups is chosen; of more, those in pairs and others are drawn."""
MOST_PAIRS = 20_000
"""Pairs that take part; of more, as many are drawn."""
STARTS = 4
CAUTION, EXCEPTIONS = 8.0, 0.1
"""What turns logarithmic odds into probabilities where there is no P(same) to compare with."""
MATCHED_ROWS = 400
"""Rows that are compared with P(same)."""
SEEDS = 2**31
RIGHT, WRONG = 4.5, 0.5
"""Answers that the prior counts as, right and wrong."""
ADDED_ANSWERS = 5.0
"""Answers that are added in the second term: without any, the rows decide."""
SILHOUETTE = 30.0
"""Answers that a silhouette of 1 counts as."""
MARGIN = 0.1
"""What one of two groupings must be better by: less than what one answer that is right in place of wrong says."""
MOST_GROUPS = 40
"""Groups up to which numbers are tried, unless the answers name more."""


def find_groups(learned: Learned, n_clusters: int | None, rng: np.random.Generator) -> Mixture:
    """Find groups of rows, so many or as many as are best, from their places in a view and the answers about them."""
    from sklearn.metrics import pairwise_distances

    known = learned.known
    if known.n_pairs > MOST_PAIRS:
        known = known.sample(MOST_PAIRS, rng)
    seed = int(rng.integers(SEEDS))
    chosen = _rows_to_choose_by(learned.rows, known.rows, seed)
    Z, local = learned.rows[chosen], known[chosen]
    n_distinct = _count_distinct(Z)
    numbers = candidates(n_distinct, named_groups(local)) if n_clusters is None else [min(n_clusters, n_distinct)]
    same = None if learned.same is None else learned.same.among(learned.as_new[chosen])
    distance = pairwise_distances(Z if same is not None else learned.plain[chosen])
    found = best_groups(Z, local, learned.mistakes, numbers, same, distance, seed)
    if len(chosen) < len(learned.rows):
        start = np.argmax(found.log_odds(learned.rows), axis=1)
        found = fit_mixture(learned.rows, start, len(found), Evidence.of(known, learned.mistakes))[0]
    if same is None:
        return replace(found, caution=CAUTION, exceptions=EXCEPTIONS)
    some = slice(None, None, 1 + len(Z) // MATCHED_ROWS)
    return matched(found, Z[some], same[some, some])


def best_groups(
    Z: Float64,
    known: Constraints,
    mistakes: float,
    numbers: list[int],
    same: Float64 | None,
    distance: Float64,
    seed: int,
) -> Mixture:
    """Return the best groups of rows Z in a view that are found from several first guesses.

    `numbers` are the numbers of groups to try, `mistakes` the share of wrong answers, `same` P(same) of all pairs of
    rows where it is known, and `distance` the distances by which groups are judged.
    """
    evidence = Evidence.of(known, mistakes)
    best: dict[int, tuple[float, Mixture]] = {}
    # That rows coincide, and make fewer groups, is nothing that a user could change.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for k in numbers:
            for start in first_guesses(Z, k, known, seed):
                mixture, q = fit_mixture(Z, start, k, evidence)
                value = score(np.argmax(q, axis=1), known, same, distance)
                if k not in best or value > best[k][0] + MARGIN:
                    best[k] = value, mixture
    largest = max(value for value, _ in best.values())
    return next(mixture for value, mixture in best.values() if value >= largest - MARGIN)


def first_guesses(Z: Float64, k: int, known: Constraints, seed: int) -> Iterator[IntArray]:
    """Yield labels to start from: k-means of the rows, and k-means from groups of must-linked rows."""
    from sklearn.cluster import KMeans

    if k == 1:
        yield np.zeros(len(Z), dtype=np.int64)
        return
    yield KMeans(k, n_init=STARTS, random_state=seed).fit(Z).labels_.astype(np.int64)
    if known.n_must_link == 0:
        return
    chunklets = known.chunklets()
    linked = chunklets >= 0
    chains = WeightedPoints.of(group_means(Z, chunklets), np.bincount(chunklets[linked]).astype(np.float64))
    rng = np.random.default_rng(seed)
    seeds = greedy_seeds(chains, k, rng) if len(chains) > k else chains.rows
    seeds = greedy_seeds(WeightedPoints.of(Z, np.ones(len(Z))), k, rng, seeds)
    if len(seeds) == k:
        found = KMeans(k, init=seeds, n_init=1).fit(Z)
        labels = found.labels_.astype(np.int64)
        # Where there are groups enough, each chain has its own, wherever its rows are.
        of_chain = found.predict(chains.rows) if len(chains) > k else np.arange(len(chains))
        labels[linked] = of_chain[chunklets[linked]]
        yield labels


def named_groups(known: Constraints) -> int:
    """Return a number of groups that the answers keep apart: chains of must-links, each cannot-linked to all others.

    The chains are taken greedily, those with most cannot-links first. Pairs inside a chain do not count.
    """
    if known.n_cannot_link == 0:
        return 1
    chunklets = known.chunklets()
    alone = np.flatnonzero(chunklets < 0)
    chain = np.where(chunklets >= 0, chunklets, 0)
    chain[alone] = chunklets.max(initial=-1) + 1 + np.arange(len(alone))
    ends = np.sort(chain[known.cannot_link], axis=1)
    apart: dict[int, set[int]] = {}
    for a, b in np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0).tolist():
        apart.setdefault(a, set()).add(b)
        apart.setdefault(b, set()).add(a)
    clique: list[int] = []
    for node in sorted(apart, key=lambda node: (-len(apart[node]), node)):
        if all(other in apart[node] for other in clique):
            clique.append(node)
    return max(1, len(clique))


def _rows_to_choose_by(Z: Float64, linked: IntArray, seed: int) -> IntArray:
    """Return some rows, in an order that does not depend on that in which they were given."""
    order = np.lexsort(np.round(Z / max(float(np.abs(Z).max(initial=0.0)), 1e-300), 9).T[::-1])
    if len(Z) <= CHOICE_ROWS:
        return order
    rng = np.random.default_rng(seed)
    is_linked = np.isin(order, linked)
    kept = rng.permutation(order[is_linked])[:CHOICE_ROWS]
    others = rng.permutation(order[~is_linked])[: CHOICE_ROWS - len(kept)]
    drawn = np.isin(order, np.concatenate([kept, others]))
    return np.asarray(order[drawn])


def _count_distinct(Z: Float64) -> int:
    return len(np.unique(np.round(Z / max(float(np.abs(Z).max(initial=0.0)), 1e-300), 9), axis=0))


def score(labels: IntArray, known: Constraints, same: Float64 | None, distance: Float64) -> float:
    """Return how good groups are: what the answers and the rows say for them.

    `same` is P(same) of all pairs of rows where it is known, and `distance` their distances in the view then, otherwise
    as they are.
    """
    from sklearn.metrics import silhouette_score

    found = agreement(labels, known)
    if same is not None:
        found += (effective_answers(known) + ADDED_ANSWERS) * expected_rand(labels, same)
    if 1 < len(np.unique(labels)) < len(labels):
        found += SILHOUETTE * float(silhouette_score(distance, labels, metric="precomputed"))
    return found


def agreement(labels: IntArray, known: Constraints) -> float:
    """Return the logarithm of the likelihood of the answers, given groups."""
    total = known.must_link_total + known.cannot_link_total
    each = effective_answers(known) / total if total > 0 else 0.0
    joined, kept = (labels[pairs[:, 0]] == labels[pairs[:, 1]] for pairs in (known.cannot_link, known.must_link))
    wrong = known.cannot_link_weight[joined].sum() + known.must_link_weight[~kept].sum()
    return float(betaln(RIGHT + each * (total - wrong), WRONG + each * wrong) - betaln(RIGHT, WRONG))


def expected_rand(labels: IntArray, same: Float64) -> float:
    """Return the adjusted Rand index that is to be expected, by P(same) of all pairs; its diagonal does not count.

    >>> import numpy as np
    >>> sure = np.kron(np.eye(2), np.ones((2, 2)))
    >>> expected_rand(np.array([0, 0, 1, 1]), sure), expected_rand(np.array([0, 0, 0, 0]), sure)
    (1.0, 0.0)
    """
    n = len(labels)
    member = (labels[:, None] == np.unique(labels)).astype(np.float64)
    pairs = n * (n - 1)
    inside = (float((member.sum(axis=0) ** 2).sum()) - n) / pairs
    diagonal = float(np.trace(same))
    probable = (float(same.sum()) - diagonal) / pairs
    both = (float(np.einsum("ic,ic->", member, same @ member)) - diagonal) / pairs
    largest = (inside + probable) / 2 - inside * probable
    return (both - inside * probable) / largest if largest > 0 else 0.0


def candidates(n_distinct: int, named: int) -> list[int]:
    """Return the numbers of groups to try: all small ones, and larger ones in steps of some 15 %.

    At most as many as rows differ; `named` are the groups that the answers keep apart.
    """
    most = min(n_distinct, max(MOST_GROUPS, 2 * named))
    found = {1, named}
    while max(found) < most:
        found.add(min(most, max(max(found) + 1, round(1.15 * max(found)))))
    found.update(range(1, min(most, 15) + 1))
    return sorted(k for k in found if 1 <= k <= most)

"""Find groups of rows in a view: several numbers of groups, several first guesses, and the best of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pairlens.cluster.learned import Learned
from pairlens.cluster.mixture import Evidence, Mixture, fit_mixture, matched
from pairlens.cluster.number import candidates, score
from pairlens.cluster.points import WeightedPoints, greedy_seeds
from pairlens.engines import Float64, IntArray, group_means
from pairlens.supervision import Constraints

__all__ = ["best_groups", "find_groups", "first_guesses", "named_groups"]

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


def find_groups(learned: Learned, n_clusters: int | None, rng: np.random.Generator) -> Mixture:
    """Find groups of rows from their places in a view and the answers about them.

    Parameters
    ----------
    learned : Learned
    n_clusters : int or None
        None to choose the number.
    rng : Generator
    """
    known = learned.known
    if known.n_pairs > MOST_PAIRS:
        known = known.sample(MOST_PAIRS, rng)
    seed = int(rng.integers(SEEDS))
    chosen = _rows_to_choose_by(learned.rows, known.rows, seed)
    Z, local = learned.rows[chosen], known[chosen]
    n_distinct = _count_distinct(Z)
    numbers = candidates(n_distinct, named_groups(local)) if n_clusters is None else [min(n_clusters, n_distinct)]
    same = None if learned.same is None else learned.same.among(learned.as_new[chosen])
    found = best_groups(Z, local, learned.mistakes, numbers, same, learned.plain[chosen], seed)
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
    plain: Float64,
    seed: int,
) -> Mixture:
    """Return the best groups that are found from several first guesses; see :mod:`pairlens.cluster.number`.

    Parameters
    ----------
    Z : array of shape (n_rows, n_columns)
        Rows in a view.
    known : Constraints
    mistakes : float
        Share of wrong answers.
    numbers : list of int
        The numbers of groups to try.
    same : array of shape (n_rows, n_rows) or None
        P(same) of all pairs, where it is known.
    plain : array of shape (n_rows, n_features)
        The rows as they are.
    seed : int
    """
    evidence = Evidence.of(known, mistakes)
    # That rows coincide, and make fewer groups, is nothing that a user could change.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return _best_of(Z, known, evidence, numbers, same, plain, seed)


def _best_of(
    Z: Float64,
    known: Constraints,
    evidence: Evidence,
    numbers: list[int],
    same: Float64 | None,
    plain: Float64,
    seed: int,
) -> Mixture:
    best, found = -np.inf, None
    for k in numbers:
        for start in first_guesses(Z, k, known, seed):
            mixture, q = fit_mixture(Z, start, k, evidence)
            value = score(np.argmax(q, axis=1), known, same, plain)
            if found is None or value > best + 1e-9 * abs(best):
                best, found = value, mixture
    assert found is not None
    return found


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

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
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import betaln, softmax
from sklearn.exceptions import ConvergenceWarning

from pairlens import engines
from pairlens.cluster.skkmeans import WeightedPoints, greedy_seeds, squared_distances
from pairlens.engines import Float64, IntArray, Placement, Rows
from pairlens.judging.held_out import HeldOutDistances, distance_columns, measured_distances, pair_weights
from pairlens.judging.probability import MISTAKES, PairModel, fit_with_mistakes
from pairlens.judging.views import in_memory
from pairlens.learning import spaces
from pairlens.learning.spaces import PreparedRows, RawSpace, Stack, TaughtSpaces
from pairlens.spectral.rowspace import Standardiser
from pairlens.supervision import Constraints

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
            return spaces.side_by_side(self.spaces(rows), self.shares) @ self.turn

        if not (isinstance(X, np.ndarray) or sparse.issparse(X)):
            return in_memory(engines.map_rows(X, embed, self.turn.shape[1]))
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
    rows, chosen = engines.rows_to_learn_from(rows, Placement.DEVICE, needed=known.rows, who=who)
    known = known if chosen is None else known[chosen]
    n_rows = rows.shape[0]
    landmarks = spaces.chosen_landmarks(n_rows, known.rows, rng, spaces.LANDMARKS)
    rows = engines.rows_in_memory(rows, landmarks).astype(np.float64, copy=False)
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
    together = spaces.side_by_side(stack.seen.spaces, shares)
    turn = spaces.principal(together, N_COLUMNS)[1]
    new = spaces.side_by_side(stack.spaces.seen_as_new(stack.seen), shares) @ turn
    same = None
    if stack.drawn is not None:
        found = (spaces.side_by_side(fold.spaces.seen_as_new(fold.seen), shares) for fold in stack)
        held_out = measured_distances(stack.drawn, (fold @ spaces.principal(fold, N_COLUMNS)[1] for fold in found))
        same = SamePairs.of(held_out, new.var(axis=0))
    return Learned(ClusterView(stack.spaces, shares, turn), together @ turn, new, plain, known, chosen, same)


MOST_ITERATIONS = 30
INNER = 3
"""Times that answers are passed on between two estimates of the means."""
SETTLED = 1e-3
"""Largest change of a probability at which the iteration ends."""
ROUNDS = 20
"""Times that answers are passed on in groups that are known."""
CAUTIONS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""Values that are tried."""
RIDGE = 1.0
"""Pairs of rows in one group that are added to those by which the purity is estimated."""


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
        return cls(rows, engines.weight_matrix(pairs, value, len(rows)))


@dataclass(frozen=True)
class Mixture:
    """Groups in a view: their centres, the logarithms of their shares, and the variance of each column inside them.

    The logarithmic odds are divided by the `caution` to become probabilities: a view that was learned to separate the
    groups makes them look surer than they are. The share `purity` of the rows is in one of the groups; the others
    are in groups that were not found.
    """

    centers: Float64
    log_share: Float64
    variance: float
    caution: float = 1.0
    purity: float = 1.0

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
        """Return the probability of each group for rows, by their places; the sum of a row is the purity."""
        return np.asarray(self.purity * softmax(self.log_odds(Z) / self.caution, axis=1))

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
    r"""Return the mixture with the caution and the purity at which its groups agree best with P(same).

    Two rows are in one group with the probability :math:`\sum_c q_{ic} q_{jc}`. The mean squared difference between
    P(same) of all pairs and that is smallest. The square of the purity is their regression coefficient, at most 1.
    """
    upper = np.triu_indices(len(Z), 1)
    wanted = same[upper]

    def fitted(caution: float) -> tuple[float, Mixture]:
        q = replace(mixture, caution=caution, purity=1.0).probabilities(Z)
        together = (q @ q.T)[upper]
        squared = min(float((together @ wanted + RIDGE) / (together @ together + RIDGE)), 1.0)
        difference = float(np.mean((squared * together - wanted) ** 2))
        return difference, replace(mixture, caution=caution, purity=squared**0.5)

    return min((fitted(caution) for caution in CAUTIONS), key=lambda each: each[0])[1]


def bounded(mixture: Mixture, Z: Float64, known: Constraints) -> Mixture:
    """Return the mixture with the purity that so few answers allow.

    Pairs of one class in one group are at most all pairs of one class. So the share of the must-links among the answers
    (with one more of each kind) over that of the pairs of rows in one group bounds the square of the purity.
    """
    if known.n_pairs == 0:
        return replace(mixture, purity=PURITY)
    member = replace(mixture, purity=1.0).probabilities(Z)
    together = float(np.mean(member @ member.mean(axis=0)))
    must, cannot = known.must_link_total, known.cannot_link_total
    same = (must + 1) / (must + cannot + 2)
    return replace(mixture, purity=min(PURITY, (same / together) ** 0.5))


def likeliest(Z: Float64, mixture: Mixture, evidence: Evidence) -> tuple[IntArray, Float64]:
    """Return the likeliest group of each row by its place and the answers, and its probability."""
    labels, chance = np.empty(len(Z), dtype=np.int64), np.empty(len(Z))
    for block in engines.row_blocks(len(Z), 8 * len(mixture)):
        q = mixture.probabilities(Z[block])
        labels[block], chance[block] = np.argmax(q, axis=1), q.max(axis=1)
    if len(evidence.rows):
        linked = Evidence(np.arange(len(evidence.rows)), evidence.weight)
        q = mixture.probabilities(Z[evidence.rows])
        # Answers can move a row that is an exception to any group.
        q += (1 - mixture.purity) * softmax(mixture.log_share)
        q = mixture.purity * weighed(np.log(np.maximum(q, np.finfo(float).tiny)), q, linked, ROUNDS)
        labels[evidence.rows], chance[evidence.rows] = np.argmax(q, axis=1), q.max(axis=1)
    return labels, chance


CHOICE_ROWS = 1000
"""Rows by which the number of groups is chosen; of more, those in pairs and others are drawn."""
MOST_PAIRS = 20_000
"""Pairs that take part; of more, as many are drawn."""
STARTS = 4
CAUTION, PURITY = 8.0, 0.9
"""What turns logarithmic odds into probabilities where there is no P(same) to compare with; the largest purity then."""
MATCHED_ROWS = 400
"""Rows that are compared with P(same)."""
SEEDS = 2**31
RIGHT, WRONG = 4.5, 0.5
"""Answers that the prior counts as, right and wrong."""
ADDED_ANSWERS = 5.0
"""Answers that are added in the second term: without any, the rows decide."""
SILHOUETTE = 30.0
"""Answers that a silhouette of 1 counts as."""
GUESS = 10.0
"""Answers that a guess at the number of groups counts as, against a number that is half or twice as large."""
MARGIN = 0.1
"""What one of two groupings must be better by: less than what one answer that is right in place of wrong says."""
MOST_GROUPS = 40
"""Groups up to which numbers are tried, unless the answers name more."""


def find_groups(learned: Learned, n_clusters: int | None, about: int | None, rng: np.random.Generator) -> Mixture:
    """Find groups of rows, so many or as many as are best, from their places in a view and the answers about them.

    `about` is a guess at the best number.
    """
    from sklearn.metrics import pairwise_distances

    known = learned.known
    if known.n_pairs > MOST_PAIRS:
        known = known.sample(MOST_PAIRS, rng)
    seed = int(rng.integers(SEEDS))
    chosen = _rows_to_choose_by(learned.rows, known.rows, seed)
    Z, local = learned.rows[chosen], known[chosen]
    n_distinct = len(np.unique(np.round(Z / max(float(np.abs(Z).max(initial=0.0)), 1e-300), 9), axis=0))
    named = named_groups(local)
    numbers = candidates(n_distinct, named, about or 1) if n_clusters is None else [min(n_clusters, n_distinct)]
    same = None if learned.same is None else learned.same.among(learned.as_new[chosen])
    distance = pairwise_distances(Z if same is not None else learned.plain[chosen])
    found = best_groups(Z, local, learned.mistakes, numbers, same, distance, seed, about)
    if len(chosen) < len(learned.rows):
        start = np.argmax(found.log_odds(learned.rows), axis=1)
        found = fit_mixture(learned.rows, start, len(found), Evidence.of(known, learned.mistakes))[0]
    if same is None:
        return bounded(replace(found, caution=CAUTION), Z, known)
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
    about: int | None = None,
) -> Mixture:
    """Return the best groups of rows Z in a view that are found from several first guesses.

    `numbers` are the numbers of groups to try, `mistakes` the share of wrong answers, `same` P(same) of all pairs of
    rows where it is known, `distance` the distances by which groups are judged, and `about` a guess at their number.
    """
    evidence = Evidence.of(known, mistakes)
    best: dict[int, tuple[float, Mixture]] = {}
    # That rows coincide, and make fewer groups, is nothing that a user could change.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for k in numbers:
            for start in first_guesses(Z, k, known, seed):
                mixture, q = fit_mixture(Z, start, k, evidence)
                labels = np.argmax(q, axis=1)
                value = score(labels, known, same, distance)
                if about is not None:
                    value -= GUESS * float(np.log2(len(np.unique(labels)) / about)) ** 2
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
    chains = WeightedPoints.of(engines.group_means(Z, chunklets), np.bincount(chunklets[linked]).astype(np.float64))
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


def score(labels: IntArray, known: Constraints, same: Float64 | None, distance: Float64) -> float:
    """Return how good groups are: what the answers and the rows say for them.

    `same` is P(same) of all pairs of rows where it is known, and `distance` their distances in the view then, otherwise
    as they are.
    """
    from sklearn.metrics import silhouette_score

    found = agreement(labels, known)
    if same is not None:
        found += (spaces.effective_answers(known) + ADDED_ANSWERS) * expected_rand(labels, same)
    if 1 < len(np.unique(labels)) < len(labels):
        found += SILHOUETTE * float(silhouette_score(distance, labels, metric="precomputed"))
    return found


def agreement(labels: IntArray, known: Constraints) -> float:
    """Return the logarithm of the likelihood of the answers, given groups."""
    total = known.must_link_total + known.cannot_link_total
    each = spaces.effective_answers(known) / total if total > 0 else 0.0
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


def candidates(n_distinct: int, named: int, about: int = 1) -> list[int]:
    """Return the numbers of groups to try: all small ones, and larger ones in steps of some 15 %.

    At most as many as rows differ; `named` are the groups that the answers keep apart, `about` a guess.
    """
    most = min(n_distinct, max(MOST_GROUPS, 2 * named, 2 * about))
    found = {1, named}
    while max(found) < most:
        found.add(min(most, max(max(found) + 1, round(1.15 * max(found)))))
    found.update([*range(1, min(most, 15) + 1), about])
    return sorted(k for k in found if 1 <= k <= most)

"""PreferenceAsker: which two rows to compare next, where one is better than the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.asking.choosing import TRIES, Draft, drawn_pair
from pairlens.asking.progress import CurvePoint, StoppingHint, hint, share_curve
from pairlens.asking.questions import Entry, is_machine
from pairlens.asking.ranking import RankedRows, Ranking, RankJob, RankLens, better_chance, information, rank_rows
from pairlens.asking.reliability import NO_USE, Record, worth_of
from pairlens.asking.session import BaseAsker
from pairlens.asking.view import fingerprint
from pairlens.supervision import Preferences

CANDIDATES = 2000
TOP = 0.1
"""Share of the rows that are the top."""
AT_TOP = 0.5
"""Share of the candidates with a row from the top."""
N_PROBE = 500
"""Pairs whose order is watched from fit to fit."""
SURE = 0.9


@dataclass
class _State:
    ranking: Ranking
    votes: dict[tuple[int, int], tuple[tuple[int, str | None], ...]] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    asked: set[tuple[int, int]] = field(default_factory=set)
    skipped: set[int] = field(default_factory=set)
    audits: list[tuple[int, bool]] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    n_entries: int = 0
    refit_at: int = 0

    def weighed(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Return the weight of the answers to each pair, 1 for one of a person, and by how much the first is better."""
        worth = {name: worth_of(min(rate.rate, NO_USE), rate.rate) for name, rate in self.record.rates().items()}
        found = {}
        for pair, votes in self.votes.items():
            weights = [worth.get(by, 1.0) if by else 1.0 for _, by in votes]
            if total := sum(weights):
                found[pair] = total, sum(weight * verdict for weight, (verdict, _) in zip(weights, votes))
        return found


class PreferenceAsker(BaseAsker[_State, RankJob, Ranking]):
    """Ask which of two rows is better, for :class:`~pairlens.RankSVM`, :class:`~pairlens.WSDR` and their kind.

    A linear ranking is kept with how sure it is of itself (:mod:`pairlens.asking.ranking`). The next question is the
    one whose answer is expected to tell most of it, half of the time among rows near the top of the ranking, where it
    matters. What was answered, or follows from a chain of answers, is not asked.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows; finite numbers.
    strategy : {"uncertain", "random"}, default="uncertain"
        The comparison that it is least sure of, or any.
    lens : RankLens, default=None
        ``RankLens(X)`` that was made before.
    **session : dict
        `refit_every`, `random_state`, `audit`, `repeat`, `overlap`, `lease` and `fits`, as for :class:`Asker`.

    Attributes
    ----------
    scores_ : array of shape (n_samples,)
        The current ranking: the higher, the better.
    answers_behind_ : int
        Number of answers that it does not know.
    log : list of Entry
    seed_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens.asking import PreferenceAsker
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> asker = PreferenceAsker(X, random_state=0)
    >>> for _ in range(30):
    ...     question = asker.ask()
    ...     i, j = question.rows
    ...     asker.tell(question, "left" if X[i, 0] > X[j, 0] else "right")
    >>> bool(np.corrcoef(asker.scores_, X[:, 0])[0, 1] > 0.9)
    True
    """

    _kinds = ("prefer", "skip")

    def __init__(
        self,
        X: ArrayLike,
        *,
        standardize: bool = True,
        strategy: Literal["uncertain", "random"] = "uncertain",
        lens: RankLens | None = None,
        **session: Any,
    ) -> None:
        if strategy not in ("uncertain", "random"):
            raise ValueError(f"strategy={strategy!r} must be 'uncertain' or 'random'.")
        self._lens = RankLens(X, standardize=standardize) if lens is None else lens
        self._strategy = strategy
        super().__init__(self._lens.n_rows, self._lens.fit, **session)

    @property
    def scores_(self) -> NDArray[np.float64]:
        """The current ranking of the rows."""
        return np.asarray(self._lens.rows @ self._state.ranking.weights)

    def preferences(self) -> Preferences:
        """Return the answers, to fit any method with; where people disagree, the majority counts by its excess."""
        excess = {pair: found for pair, (_, found) in self._state.weighed().items()}
        pairs = [(i, j) if vote > 0 else (j, i) for (i, j), vote in excess.items() if vote]
        weight = [float(abs(vote)) for vote in excess.values() if vote]
        return Preferences(pairs, self.n_rows, weight=weight or None)

    def ranked_rows(self) -> RankedRows:
        """Return all rows in order, the best first, with an interval of 90 % for the rank of each."""
        return rank_rows(self._lens.rows, self._state.ranking, self.seed_)

    def share_sure(self) -> float:
        """Return the share of pairs of rows whose order is sure, with a chance of 90 % or more."""
        chance = better_chance(self._probes(), self._state.ranking)
        return float(((chance <= 1 - SURE) | (chance >= SURE)).mean())

    def learning_curve(self) -> list[CurvePoint]:
        """Return the share of audited orders that were foreseen, each judged before it was learned from.

        It is empty until ten questions were audited.
        """
        return share_curve(self._state.audits)

    def stopping_hint(self) -> StoppingHint:
        """Return whether more answers would still change much: a flat curve, and a ranking that stays as it is."""
        return hint(self.learning_curve(), self._state.kept, None, 1 - self.share_sure())

    def _probes(self) -> NDArray[np.float64]:
        """Return differences of fixed random pairs of rows."""
        i, j = np.random.default_rng([self.seed_, 7]).integers(self.n_rows, size=(2, N_PROBE))
        return self._lens.rows[i[i != j]] - self._lens.rows[j[i != j]]

    # The parts of a session

    def _first_state(self) -> _State:
        state = _State(Ranking("", np.zeros(0), np.zeros((0, 0))))
        ranking = self._lens.fit(self._job(state))
        self._remember(ranking)
        state.ranking = ranking
        return state

    def _apply(self, state: _State, entry: Entry) -> None:
        question, answer = entry
        before = state.n_entries
        state.n_entries += 1
        if question.kind == "skip":
            state.skipped.add(question.rows[0])
            return
        state.record.take(entry)
        if question.purpose == "repeat":
            return
        machine = question.annotator if is_machine(question.annotator) else None
        state.asked.update(question.pairs)
        for i, j, verdict in question.verdicts(answer):
            if question.purpose == "audit" and verdict and machine is None:
                guess = (self._lens.rows[i] - self._lens.rows[j]) @ state.ranking.weights
                state.audits.append((before, bool(guess * verdict > 0)))
            state.votes[i, j] = (*state.votes.get((i, j), ()), (verdict, machine))

    def _job(self, state: _State) -> RankJob:
        known = state.weighed()
        pairs = np.array(list(known), dtype=np.int64).reshape(-1, 2)
        weight = np.array([float(total) for total, _ in known.values()])
        share = np.array([0.5 + excess / (2 * total) for total, excess in known.values()])
        return RankJob(fingerprint(pairs, share, weight), pairs, share, weight, state.n_entries)

    def _refit(self, state: _State, view: Ranking) -> None:
        probes = self._probes()
        before, now = probes @ state.ranking.weights, probes @ view.weights
        state.kept.append(float(((before > 0) == (now > 0)).mean()))
        state.ranking, state.refit_at = view, state.n_entries

    # Choosing

    def _draft(self, rng: np.random.Generator) -> Draft | None:
        return self._least_sure(rng) or self._random(rng, "pair")

    def _audit_draft(self, rng: np.random.Generator) -> Draft | None:
        return self._random(rng, "audit")

    def _free(self, i: int, j: int, taken: set[tuple[int, int]]) -> bool:
        pair = (min(i, j), max(i, j))
        state = self._state
        return (
            i != j
            and pair not in state.asked
            and pair not in taken
            and state.skipped.isdisjoint(pair)
            and not self._follows(i, j)
        )

    def _follows(self, i: int, j: int) -> bool:
        """Return whether a chain of answers says which of the two is better."""
        worse: dict[int, list[int]] = {}
        for (a, b), (_, excess) in self._state.weighed().items():
            if excess:
                better, less = (a, b) if excess > 0 else (b, a)
                worse.setdefault(better, []).append(less)
        for start, goal in ((i, j), (j, i)):
            seen, queue = {start}, deque([start])
            while queue:
                for row in worse.get(queue.popleft(), ()):
                    if row == goal:
                        return True
                    if row not in seen:
                        seen.add(row)
                        queue.append(row)
        return False

    def _random(self, rng: np.random.Generator, purpose: Literal["pair", "audit"]) -> Draft | None:
        taken = self._leases.pairs()
        pair = drawn_pair(self.n_rows, lambda i, j: self._free(i, j, taken), rng)
        return None if pair is None else Draft("prefer", pair, purpose)

    def _least_sure(self, rng: np.random.Generator) -> Draft | None:
        if self._strategy == "random":
            return None
        i, j = rng.integers(self.n_rows, size=(2, CANDIDATES))
        top = np.argsort(-np.round(self.scores_, 9), kind="stable")[: max(2, round(TOP * self.n_rows))]
        if rng.random() < AT_TOP:
            i, j = top[rng.integers(len(top), size=CANDIDATES)], top[rng.integers(len(top), size=CANDIDATES)]
        value = np.round(information(self._lens.rows[i] - self._lens.rows[j], self._state.ranking), 9)
        taken = self._leases.pairs()
        for at in np.argsort(-value, kind="stable")[:TRIES]:
            if self._free(int(i[at]), int(j[at]), taken):
                return Draft("prefer", (int(i[at]), int(j[at])), "pair")
        return None

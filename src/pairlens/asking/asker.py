"""Asker: which pair, or which row, to ask about next, and what follows from the answers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.asking.choosing import Draft, Situation, audited_pair, next_place, random_pair, uncertain_pair
from pairlens.asking.groups import Groups
from pairlens.asking.progress import CurvePoint, StoppingHint, audit_curve, hint
from pairlens.asking.questions import Entry, is_machine
from pairlens.asking.session import BaseAsker
from pairlens.asking.state import N_PROBE, SURE, Look, State, closeness, copied, reference_distances
from pairlens.asking.view import FitJob, Lens, View, fingerprint
from pairlens.cluster.assigned import AssignedRows, Grouping
from pairlens.engines import Float64
from pairlens.exceptions import ConflictWarning
from pairlens.supervision import Constraints

FEWEST_ON_SCREEN = 3
"""Groups from which on a placement screen asks for less than the comparisons that it stands for."""
LOOKS = 2
"""Views whose rows are kept in memory."""


class Asker(BaseAsker[State, FitJob, View]):
    r"""Ask which rows belong together, and choose each question so that the answer teaches most.

    The default strategy places rows. A row is compared with a member of each group found so far, the likeliest first,
    until it is known where it belongs; a row that differs from every group that may be its own founds a new one. The
    first 30 rows are from dense places, later ones any but outliers. All that follows from the groups goes to the
    learner, weighed by :func:`pairlens.asking.posterior.pair_weights`. Groups have a posterior, and wrong answers are
    repaired: after each fit every row is placed again.

    Choose "place", with screens where a person can look at several rows at once: in the simulations of docs/asking.md
    these teach most. "uncertain" needs no groups and gives the bare answers. "random" is the yardstick.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows; finite numbers.
    about : int or None, default=None
        A guess at the number of groups, for :meth:`predict`; see :class:`~pairlens.PairClusters`.
    standardize : bool, default=True
        Whether to divide each feature by its deviation; see :class:`~pairlens.LinearPairLens`.
    strategy : {"place", "random", "uncertain"}, default="place"
        How questions are chosen: place rows; any pair; the pair of dense rows that it is least sure of, no row twice.
    screen : {"pair", "placement", "auto"}, default="pair"
        Whether a row to place is compared with one row at a time, or with one representative of up to eight groups at
        once; "auto" changes to the latter when there are three groups. Only for "place".
    refit_every : int, default=10
        Answers after which the view is fitted again; of more than 200 answers, one in twenty.
    random_state : int, RandomState, Generator or None, default=None
        The seed; ``seed_`` is what has to be kept to replay a log.
    audit : float, default=0
        Share of questions that are drawn at random, whatever the groups say, for :meth:`learning_curve`; 0.15 is a
        good one. Half of them are near pairs, which weigh less, so that both answers occur. They are judged by the
        view of the moment, and then learned from like any other.
    repeat : float, default=0
        Share of questions that come back to the same person with sides swapped, for :meth:`consistency`.
    overlap : float, default=0.1
        Share of questions that a second person is asked too, where there are several. Of the answers of a machine
        this share is audited: a person is asked the same questions before any other.
    lease : float or None, default=None
        Seconds of the caller's clock after which an unanswered question goes to somebody else.
    fits : {"inline", "elsewhere"}, default="inline"
        Whether :meth:`tell` fits the view when it is due, or :meth:`fit_job` says what to fit and :meth:`adopt` takes
        it.
    lens : Lens, default=None
        ``Lens(X)`` that was made before.

    Attributes
    ----------
    groups_ : dict of int to list of int
        The rows of each group, in the order of placing. Numbers stay with their groups.
    confidence_ : dict of int to float
        How sure each placed row is of its group.
    error_rate_ : float
        Estimated share of wrong answers.
    ignored_machines_ : list of str
        The machines whose answers give no pairs, because the audits show that they tell nothing, or nothing beyond the
        distances between the rows.
    predicted_groups_ : list of int
        The numbers of all groups that :meth:`predict` knows.
    view_ : array of shape (n_samples, n_columns)
        The current view.
    asked_again_ : int
        Number of questions about rows that were placed before ("merge" and "check"): while other rows are left, at
        most a tenth of all, and none about the same row twice.
    answers_behind_ : int
        Number of answers that the current view does not know.
    log : list of Entry
        The answers in order.
    seed_ : int
        The seed.
    views : dict of str to View
        The views fitted so far by the key of their job. Given to another asker before a log is replayed, they need
        not be fitted again.

    Notes
    -----
    Telling ``log`` in order to a fresh Asker with the same rows and seed gives the same state, whatever was asked,
    undone or changed meanwhile. docs/asking.md shows what was measured.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens.asking import Asker
    >>> X, y = load_iris(return_X_y=True)
    >>> asker = Asker(X, random_state=0)
    >>> for _ in range(20):
    ...     question = asker.ask()
    ...     i, j = question.rows
    ...     asker.tell(question, "same" if y[i] == y[j] else "different")
    >>> len(asker.groups_), asker.constraints().n_samples
    (3, 150)
    """

    _kinds = ("same", "place", "skip")

    def __init__(
        self,
        X: ArrayLike,
        *,
        about: int | None = None,
        standardize: bool = True,
        strategy: Literal["place", "random", "uncertain"] = "place",
        screen: Literal["pair", "placement", "auto"] = "pair",
        refit_every: int = 10,
        random_state: Any = None,
        audit: float = 0.0,
        repeat: float = 0.0,
        overlap: float = 0.1,
        lease: float | None = None,
        fits: Literal["inline", "elsewhere"] = "inline",
        lens: Lens | None = None,
    ) -> None:
        if strategy not in ("place", "random", "uncertain"):
            raise ValueError(f"strategy={strategy!r} must be 'place', 'random' or 'uncertain'.")
        if screen not in ("pair", "placement", "auto"):
            raise ValueError(f"screen={screen!r} must be 'pair', 'placement' or 'auto'.")
        if about is not None and about < 1:
            raise ValueError(f"about={about!r} must be None or a number of groups, at least 1.")
        if screen != "pair" and strategy != "place":
            raise ValueError(f"screen={screen!r} places rows, so strategy={strategy!r} must be 'place'.")
        self._lens = Lens(X, standardize=standardize) if lens is None else lens
        self._about, self._strategy, self._screen = about, strategy, screen
        self._looks: dict[str, Look] = {}
        self._grouped: tuple[str, Grouping] | None = None
        super().__init__(
            self._lens.n_rows,
            self._lens.fit,
            refit_every=refit_every,
            random_state=random_state,
            audit=audit,
            repeat=repeat,
            overlap=overlap,
            lease=lease,
            fits=fits,
        )

    # What follows from the answers

    @property
    def groups_(self) -> dict[int, list[int]]:
        """The rows of each group, in the order of placing."""
        if self._state.placing:
            return {number: list(self._state.groups.members[number]) for number in self._state.groups.numbers}
        return dict(enumerate(self._state.components()[0]))

    @property
    def confidence_(self) -> dict[int, float]:
        """The certainty of the group of each placed row."""
        if self._state.placing:
            return dict(self._state.groups.confidence)
        parts, error = self._state.components()
        return {row: 1 - error for part in parts for row in part}

    @property
    def error_rate_(self) -> float:
        """Estimated share of wrong answers."""
        return self._state.groups.error if self._state.placing else self._state.components()[1]

    @property
    def ignored_machines_(self) -> list[str]:
        """The machines whose answers give no pairs."""
        return [name for name, trust in self._state.groups.trust.items() if not any(trust.weight)]

    @property
    def asked_again_(self) -> int:
        """Number of questions about rows that were placed before."""
        return self._state.n_again

    @property
    def view_(self) -> Float64:
        """All rows in the current view."""
        assert self._state.look is not None
        return self._state.look.Z

    def constraints(self) -> Constraints:
        """Return the must-links and cannot-links that follow from the answers, to fit any method with.

        Strategy "place": all that follows from the groups, with weights, and the bare answers about other rows. Else
        the bare answers.
        """
        with warnings.catch_warnings(action="ignore", category=ConflictWarning):
            return self._state.constraints(self.n_rows)

    def answered(self) -> Constraints:
        """Return the answers alone, without what follows from them.

        An answer of a person weighs 1, one of a machine by its error rate; where several were asked the same, their
        answers outvote each other.
        """
        return self._state.bare(self.n_rows, self._state.evidence())

    @property
    def predicted_groups_(self) -> list[int]:
        """The numbers of all groups, those too that no answer has named: the columns of :meth:`predict_proba`."""
        return [int(number) for number in self._grouping().numbers]

    def predict(self, X: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the group of every row.

        Rows that were placed are in the group that they were placed in. The others are put in the likeliest group by
        :class:`~pairlens.PairClusters`, which knows all that follows from the answers, and may find further groups.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), optional
            Other rows than those that are asked about, which are the default.

        Returns
        -------
        numbers : array of shape (n_rows,)
            As in ``groups_``; groups that no answer has named have the numbers after these.
        """
        return self._grouping().groups(X)

    def predict_proba(self, X: ArrayLike | None = None) -> Float64:
        """Return the probability of each of ``predicted_groups_``, a column each, for every row; see `predict`.

        The sum of a row is at most 1, as in :meth:`PairClusters.predict_proba <pairlens.PairClusters.predict_proba>`.
        """
        return self._grouping().probabilities(X)

    def assigned_rows(self) -> AssignedRows:
        """Return the group of every row with its name, its probability and how it is known, as in ``groups.csv``."""
        return self._grouping().assigned(self.constraints())

    def _grouping(self) -> Grouping:
        known = self.constraints()
        key = self._key(known)
        if self._grouped is None or self._grouped[0] != key:
            lens = self._lens
            settings: dict[str, Any] = {"about": self._about, "standardize": lens.standardize, "seed": self.seed_}
            grouping = Grouping.of(lens.rows, known, self.groups_, self.confidence_, **settings)
            self._grouped = key, grouping
        return self._grouped[1]

    def learning_curve(self) -> list[CurvePoint]:
        """Return the learning curve over the audited questions alone, each judged before it was learned from.

        It is empty until ten questions were audited.
        """
        return audit_curve(self._state.audits)

    def stopping_hint(self) -> StoppingHint:
        """Return whether more answers would still change much: a flat curve, steady groups, hardly a new group."""
        state = self._state
        unsure = 1.0
        if state.placing and len(state.groups):
            unsure = 1 - state.groups.share_sure(state.probe, state.answers, SURE)
        return hint(self.learning_curve(), state.kept, state.since_new, unsure)

    # The parts of a session

    def _first_state(self) -> State:
        seed = self.seed_
        none = Constraints(n_samples=self.n_rows)
        view = self._lens.fit(FitJob(self._key(none), none, 0, seed))
        self._remember(view)
        look = self._look(view.key)
        rng = np.random.default_rng([seed, 7])
        probe = np.sort(rng.choice(self.n_rows, min(N_PROBE, self.n_rows), replace=False))
        placing = self._strategy == "place"
        self._pca_reference = np.sort(reference_distances(self._lens.principal, seed))
        state = State(placing, look, view.key, Groups(look.Z), tuple(probe.tolist()))
        if placing:
            dense = np.flatnonzero(look.density > 0.3)
            state.groups.put(int(rng.choice(dense)), 0, 1.0)
        return state

    def _apply(self, state: State, entry: Entry) -> None:
        question = entry.question
        needed = question.purpose == "audit" or is_machine(question.annotator)
        state.apply(entry, [self._pca_closeness(i, j) for i, j in question.pairs] if needed else ())

    def _pca_closeness(self, i: int, j: int) -> float:
        return closeness(self._lens.principal, self._pca_reference, i, j)

    def _kept(self, state: State) -> State:
        other = copied(state)
        other.look, other.groups.Z = None, np.zeros((0, 0))
        return other

    def _restored(self, state: State) -> State:
        other = copied(state)
        other.look = self._look(state.view_key)
        other.groups.Z = other.look.Z
        return other

    def _key(self, constraints: Constraints) -> str:
        return fingerprint(
            constraints.must_link,
            constraints.must_link_weight,
            constraints.cannot_link,
            constraints.cannot_link_weight,
            np.array([self.seed_, self.n_rows]),
        )

    def _job(self, state: State) -> FitJob:
        with warnings.catch_warnings(action="ignore", category=ConflictWarning):
            constraints = state.constraints(self.n_rows)
        return FitJob(self._key(constraints), constraints, state.n_entries, self.seed_)

    def _remember(self, view: View) -> None:
        self._keep(Look.at(self._lens, view, self.seed_))
        # One number for each row and view would fill the memory in a long session.
        self.views[view.key] = replace(view, crowding=None)

    def _refit(self, state: State, view: View) -> None:
        state.refit(self._look(view.key))

    def _look(self, key: str) -> Look:
        look = self._looks.pop(key, None) or Look.at(self._lens, self.views[key], self.seed_)
        self._keep(look)
        return look

    def _keep(self, look: Look) -> None:
        self._looks[look.key] = look
        while len(self._looks) > LOOKS:
            del self._looks[next(iter(self._looks))]

    def _situation(self, rng: np.random.Generator) -> Situation:
        leases = self._leases
        state, open_again = self._state, [rows for q in leases.questions() if (rows := q.asked_again)]
        again = state.again.union(*open_again)
        n_again = state.n_again + len(open_again)
        return Situation(state, self._lens, leases.pairs(), leases.subjects(), len(leases), again, n_again, rng)

    def _draft(self, rng: np.random.Generator) -> Draft | None:
        now = self._situation(rng)
        if self._strategy == "place":
            enough = FEWEST_ON_SCREEN if self._screen == "auto" else 0
            return next_place(now, screens=self._screen != "pair" and len(now.state.groups) >= enough)
        return random_pair(now) if self._strategy == "random" else uncertain_pair(now)

    def _audit_draft(self, rng: np.random.Generator) -> Draft | None:
        return audited_pair(self._situation(rng), self._pca_closeness)

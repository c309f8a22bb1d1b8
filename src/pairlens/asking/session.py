"""What every asker does: the log and its replay, leases, undo and change, fits here or elsewhere, several people."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from pairlens.asking.choosing import Draft, due_audits, overlapping, repeated
from pairlens.asking.progress import Agreement, agreement_between, agreement_with_oneself
from pairlens.asking.questions import (
    AlreadyAnsweredError,
    Entry,
    Kind,
    Leases,
    Question,
    UnknownQuestionError,
    is_machine,
)
from pairlens.asking.reliability import ErrorRate, error_rates
from pairlens.asking.state import copied

MOST_CHECKPOINTS = 16
"""States that are kept to go back to."""
MOST_DIGITS = 16
"""Digits from which on the number at the beginning of an id is not one that was counted here."""
SLOWING = 20
"""With many answers, the next fit waits until their number has grown by one part in this number."""

FEW_LEFT = 100
"""Answers that are taken in with each view that is adopted; more of them, only when the view knows half of the rest."""


class _State(Protocol):
    n_entries: int
    refit_at: int


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


StateT = TypeVar("StateT", bound=_State)
JobT = TypeVar("JobT", bound=_Keyed)
ViewT = TypeVar("ViewT", bound=_Keyed)


class BaseAsker(ABC, Generic[StateT, JobT, ViewT]):
    """The log of answers and all that follows from it.

    The state is a function of the rows, the seed and the answers in order. A fit is due at fixed places of the log;
    where its view is not there yet, the answers after it are taken in with the old view for the moment, and once more
    when it is adopted. So it does not matter where and how fast views are fitted.
    """

    _kinds: tuple[Kind, ...]

    def __init__(
        self,
        n_rows: int,
        fit: Callable[[JobT], ViewT],
        *,
        refit_every: int = 10,
        random_state: Any = None,
        audit: float = 0.0,
        repeat: float = 0.0,
        overlap: float = 0.1,
        lease: float | None = None,
        fits: str = "inline",
    ) -> None:
        if not isinstance(refit_every, (int, np.integer)) or refit_every < 1:
            raise ValueError(f"refit_every={refit_every!r} must be a whole number of answers, at least 1.")
        for name, share in (("audit", audit), ("repeat", repeat), ("overlap", overlap)):
            if not 0 <= share < 1:
                raise ValueError(f"{name}={share!r} must be a share of the questions, in [0, 1).")
        if fits not in ("inline", "elsewhere"):
            raise ValueError(f"fits={fits!r} must be 'inline' or 'elsewhere'.")
        self.n_rows, self._fit = n_rows, fit
        self.views: dict[str, ViewT] = {}
        self.seed_ = _seed(random_state)
        self._refit_every, self._inline = int(refit_every), fits == "inline"
        self._audit, self._repeat, self._overlap = audit, repeat, overlap
        self._leases = Leases(lease)
        self._log: list[Entry] = []
        self._ids: set[str] = set()
        self._undone: list[Question] = []
        self._n_asked = 0
        # A fit that is awaited: the state that it is for, and the job.
        self._due: tuple[StateT, JobT] | None = None
        self._state = self._first_state()
        self._checkpoints: list[StateT] = [self._kept(self._state)]

    # What a kind of asker has to say

    @abstractmethod
    def _first_state(self) -> StateT:
        """Return the state before any answer."""

    @abstractmethod
    def _apply(self, state: StateT, entry: Entry) -> None:
        """Take one more answer in."""

    @abstractmethod
    def _job(self, state: StateT) -> JobT:
        """Return the fit that a state asks for."""

    @abstractmethod
    def _refit(self, state: StateT, view: ViewT) -> None:
        """Change a state to a new view."""

    @abstractmethod
    def _draft(self, rng: np.random.Generator) -> Draft | None:
        """Return the next question of the strategy."""

    @abstractmethod
    def _audit_draft(self, rng: np.random.Generator) -> Draft | None:
        """Return a question drawn at random."""

    # What it may say otherwise

    def _kept(self, state: StateT) -> StateT:
        """Return a copy of a state for later, small."""
        return copied(state)

    def _restored(self, state: StateT) -> StateT:
        """Return a copy of a kept state to go on with."""
        return copied(state)

    def _remember(self, view: ViewT) -> None:
        """Keep a view, so that undo and replay need not fit it again."""
        self.views[view.key] = view

    # Asking

    def ask(self, annotator: str | None = None, *, now: float | None = None) -> Question | None:
        """Return the next question; None if nothing is left to ask.

        Parameters
        ----------
        annotator : str or None
            Who will answer. No two people get the same open question.
        now : float or None
            The time by the caller's clock, where questions have a lease.
        """
        self._leases.expire(now)
        question = self._asked_before(annotator)
        if question is None:
            rng = np.random.default_rng([self.seed_, len(self._log), len(self._leases)])
            draft = self._audit_of_machine(annotator) or self._special(annotator, rng) or self._draft(rng)
            if draft is None:
                return None
            # The kind is part of it: a log may hold several kinds, each counted by an asker of its own.
            name = self._new_id(draft.kind, *draft.rows)
            question = Question(name, draft.kind, draft.rows, draft.purpose, draft.groups, annotator)
        self._leases.take(question, now)
        return question

    def _new_id(self, *parts: object) -> str:
        """Return an id that no question of the log has, whatever ids the log was told."""
        while True:
            self._n_asked += 1
            name = "-".join(map(str, (self._n_asked, *parts)))
            if name not in self._ids:
                return name

    def _asked_before(self, annotator: str | None) -> Question | None:
        """Return what this person took back, which comes first."""
        for question in [question for question in reversed(self._undone) if question.annotator == annotator]:
            self._undone.remove(question)
            taken = self._leases.pairs()
            if question.purpose not in ("overlap", "repeat"):
                taken |= {pair for entry in self._log for pair in entry.question.pairs}
            if question.kind != "skip" and taken.isdisjoint(question.pairs):
                return question
        return None

    def _special(self, annotator: str | None, rng: np.random.Generator) -> Draft | None:
        """Return now and then a question of another kind: audited, overlapping or repeated."""
        chance = rng.random()
        for share, draft in (
            (0.0 if is_machine(annotator) else self._audit, lambda: self._audit_draft(rng)),
            (self._repeat, lambda: repeated(self._log, annotator, self._leases.pairs(), rng, self._repeat)),
            (self._overlap, lambda: overlapping(self._log, annotator, self._leases.pairs(), rng)),
        ):
            if 0 <= chance < share:
                return draft()
            chance -= share
        return None

    def _audit_of_machine(self, annotator: str | None) -> Draft | None:
        """Return a question for a person that a machine has answered, without its answer."""
        if is_machine(annotator):
            return None
        taken = self._leases.pairs()
        due = (question for question in self.audits_due() if taken.isdisjoint(question.pairs))
        question = next(due, None)
        return None if question is None else Draft(question.kind, question.rows, "overlap", question.groups)

    def audits_due(self) -> list[Question]:
        """Return the questions that a machine answered and that a person is asked next, as drawn by `overlap`, in
        random order.
        """
        return due_audits(self._log, self._overlap, self.seed_)

    def pending(self, annotator: str | None = None) -> list[Question]:
        """Return questions that were asked and not answered, the oldest first; those of one person if named."""
        return [q for q in self._leases.questions() if annotator is None or q.annotator == annotator]

    def release(self, question: Question) -> None:
        """Give a question back without an answer; it may be asked again."""
        self._leases.drop(question.id)

    # Telling

    @property
    def log(self) -> list[Entry]:
        """The answers in order, each a (question, answer)."""
        return list(self._log)

    def tell(self, question: Question, answer: str) -> None:
        """Take an answer in.

        Parameters
        ----------
        question : Question
            One of :meth:`ask`, or of a log that is replayed.
        answer : str
            One of ``question.answers``.
        """
        self.check(question, answer)
        if question.id in self._ids:
            raise AlreadyAnsweredError(f"Question {question.id} was answered before; change() changes an answer.")
        self._ids.add(question.id)
        self._log.append(Entry(question, answer))
        try:
            self._advance(self._log[-1])
        except BaseException:
            # All of it or nothing: an answer that cannot be taken in must not stay in the way of the others.
            self._rewrite(len(self._log) - 1, [])
            raise
        self._leases.drop(question.id)
        number = question.id.split("-")[0]
        self._n_asked = max(self._n_asked, int(number) if number.isdecimal() and len(number) < MOST_DIGITS else 0)

    def skip(self, row: int, annotator: str | None = None) -> None:
        """Set a row aside: it is not asked about again, what was answered about it stays."""
        try:
            number = operator.index(row)
        except TypeError:
            raise TypeError(
                f"skip takes the number of a row, such as question.rows[0], got {type(row).__name__}."
            ) from None
        question = Question(self._new_id(number), "skip", (number,), "skip", annotator=annotator)
        self.tell(question, "skip")
        for open_question in self._leases.questions():
            if open_question.rows[0] == row:
                self._leases.drop(open_question.id)

    def check(self, question: Question, answer: str) -> None:
        """Raise an error if :meth:`tell` would refuse this answer."""
        if not isinstance(question, Question):
            raise TypeError(f"question must be a Question that ask() gave, got {type(question).__name__}.")
        if question.kind not in self._kinds:
            raise ValueError(
                f"Question {question.id} is of kind {question.kind!r}; {type(self).__name__} takes "
                f"{' or '.join(repr(kind) for kind in self._kinds)}."
            )
        question.check(answer)
        for row in question.rows:
            if not 0 <= row < self.n_rows:
                raise ValueError(f"Question {question.id} names row {row}; rows go from 0 to {self.n_rows - 1}.")

    # Taking back

    def undo(self, annotator: str | None = None) -> Entry | None:
        """Take the last answer (of a person) back, as if it had never been told; None if there is none.

        The question is asked again next.
        """
        for at in reversed(range(len(self._log))):
            if annotator is None or self._log[at].question.annotator == annotator:
                entry = self._log[at]
                self._undone.append(entry.question)
                for other in self._leases.questions():
                    # Somebody was asked the same because of this answer; now it is this person's question again.
                    if other.purpose == "overlap" and not set(entry.question.pairs).isdisjoint(other.pairs):
                        self._leases.drop(other.id)
                self._rewrite(at, [])
                return entry
        return None

    def change(self, question_id: str, answer: str) -> None:
        """Change an earlier answer, as if it had been this one from the start."""
        at = self._find(question_id)
        question = self._log[at].question
        self.check(question, answer)
        self._rewrite(at, [Entry(question, answer)])

    def retract(self, *question_ids: str) -> None:
        """Take earlier answers back, as if they had never been told."""
        first = min(self._find(name) for name in question_ids)
        self._log = [entry for entry in self._log if entry.question.id not in question_ids]
        self._ids.difference_update(question_ids)
        self._replay(first)

    def _find(self, question_id: str) -> int:
        for at, entry in enumerate(self._log):
            if entry.question.id == question_id:
                return at
        raise UnknownQuestionError(f"There is no answer to a question {question_id!r} in the log.")

    def _rewrite(self, at: int, instead: list[Entry]) -> None:
        """Replace one entry of the log."""
        self._ids.discard(self._log[at].question.id)
        self._ids.update(entry.question.id for entry in instead)
        self._log[at : at + 1] = instead
        self._replay(at)

    def _replay(self, at: int) -> None:
        """Restore the last state before this place of the log, and take the answers from there on in again."""
        self._checkpoints = [state for state in self._checkpoints if state.n_entries <= at]
        self._due = None
        self._state = self._restored(self._checkpoints[-1])
        for entry in self._log[self._state.n_entries :]:
            self._advance(entry)

    # Fits

    def _advance(self, entry: Entry) -> None:
        self._apply(self._state, entry)
        if self._due is None:
            self._due = self._due_after(self._state)

    def _due_after(self, state: StateT) -> tuple[StateT, JobT] | None:
        """Change a state to the view that is due; return the state and the job if it has to be fitted elsewhere."""
        n = state.n_entries
        if n - state.refit_at < max(self._refit_every, n // SLOWING):
            return None
        job = self._job(state)
        view = self.views.get(job.key)
        if view is None and self._inline:
            view = self._fit(job)
            self._remember(view)
        if view is None:
            return copied(state), job
        self._renew(state, view)
        return None

    def _renew(self, state: StateT, view: ViewT) -> None:
        self._refit(state, view)
        self._checkpoints.append(self._kept(state))
        if len(self._checkpoints) > MOST_CHECKPOINTS:
            # Mostly the latest answers are taken back; to get to old ones, a longer way is taken.
            latest = MOST_CHECKPOINTS // 2
            self._checkpoints = self._checkpoints[:-latest:2] + self._checkpoints[-latest:]

    def fit_job(self) -> JobT | None:
        """Return what has to be fitted next, for ``fits="elsewhere"``; None if no fit is due."""
        return None if self._due is None else self._due[1]

    def adopt(self, view: ViewT) -> bool:
        """Take over a view that was fitted elsewhere; return whether it was the awaited one.

        If it was not, an earlier answer changed meanwhile, and :meth:`fit_job` has another job.
        """
        self._remember(view)
        due = self._due
        if due is None or due[1].key != view.key:
            return False
        state, self._due = due[0], None
        self._renew(state, view)
        while self._due is None and state.n_entries < len(self._log):
            self._apply(state, self._log[state.n_entries])
            self._due = self._due_after(state)
        left = self._log[state.n_entries :]
        # A long log that is replayed has many views. With all that is left taken in after each of them, the time would
        # grow with the square of the answers.
        if len(left) <= FEW_LEFT or 2 * len(left) <= self.answers_behind_:
            for entry in left:
                self._apply(state, entry)
            self._state = state
        return True

    @property
    def answers_behind_(self) -> int:
        """Number of answers that the current view does not know."""
        return len(self._log) - self._state.refit_at

    # How well people agree

    def agreement(self) -> Agreement:
        """Return how often two people agree on what both were asked."""
        return agreement_between(self._log)

    def consistency(self) -> Agreement:
        """Return how often a person answers the same question the same way: a ceiling for everything else."""
        return agreement_with_oneself(self._log)

    def error_rates(self) -> dict[str, ErrorRate]:
        """Return the share of wrong answers of each machine with its interval, from audits by people and repeats."""
        return error_rates(self._log)


def _seed(random_state: Any) -> int:
    """Return one number that makes everything repeatable."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy % 2**32)  # type: ignore[operator]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise ValueError(f"random_state={random_state!r} must be a whole number of at least 0, a Generator or None.")

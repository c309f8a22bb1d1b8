"""From the log to what holds now: which answers count, in which order, what the groups are called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from pairlens.asking import Asker, PreferenceAsker, Question
from pairlens.exceptions import ArgumentError
from pairlens.studio.entries import Event

MOST_TOLD = 5
LEASE_SECONDS = 600.0
OVERLAP = 0.1
"""Share of questions that a second person is asked, and of the answers of machines that a person audits."""
SCREENS: dict[str, Any] = {"auto": "auto", "same": "pair", "place": "placement"}
"""How the asker is to ask for the groups of rows."""


@dataclass(frozen=True)
class Answer:
    """An answer that counts.

    `id` and `seq` are those of the event that gave it, `question` is what was asked as :meth:`Question.to_dict` has it,
    and `ids` are the names of its rows. `flagged` means that the person wants to come back to it. `batch` is the id of
    the event that gave it together with others; empty if it was given alone.
    """

    id: str
    question: dict[str, Any]
    answer: str
    annotator: str
    at: str
    changed: bool = False
    flagged: bool = False
    ids: tuple[str, ...] = ()
    seq: int = 0
    batch: str = ""


@dataclass(frozen=True)
class Batch:
    """Answers that were given, and changed, at once by what a person did with rows on the map.

    `changes` has the new and the old answer of those that were changed.
    """

    id: str
    annotator: str
    action: str
    ids: tuple[str, ...]
    changes: dict[str, tuple[str, str]]


@dataclass
class History:
    """The answers that count, in the order in which they were given, and all else that people said.

    The state is a function of the events alone: applying the same events to a new History gives an equal one.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    annotators: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Return the state after these events; those that cannot be applied are left out, and told in `left_out`."""
        history = cls()
        for event in events:
            try:
                history.apply(event)
            except ValueError as error:
                kind = f" ({event.kind} by {event.annotator})" if event.kind else ""
                history.left_out.append(f"entry {event.seq} of {event.at or 'an unknown time'}{kind}: {error}")
        return history

    def apply(self, event: Event) -> None:
        """Take one more event into account; ValueError if it is not one.

        One that no longer has anything to act on changes nothing.
        """
        if event.damage:
            raise ValueError(event.damage)
        body = event.body
        if not isinstance(body, Mapping):
            raise ValueError(f"its content {body!r} must be an object")
        if event.kind == "answer":
            self.answers[event.id] = _answer(event)
        elif event.kind == "chosen":
            batch, answers = _batch(event)
            for target, (new, old) in batch.changes.items():
                if target in self.answers:
                    question = Question.from_dict(self.answers[target].question)
                    question.check(new)
                    question.check(old)
            self.answers.update(answers)
            self.batches[event.id] = batch
            for target, (new, _) in batch.changes.items():
                self._change(target, new)
        elif event.kind in ("undo", "retract"):
            self._take_back(_text(body, "target"))
        elif event.kind == "change":
            self._change(_text(body, "target"), _text(body, "answer"))
        elif event.kind == "flag":
            target = _text(body, "target")
            if target in self.answers:
                self.answers[target] = replace(self.answers[target], flagged=body.get("flagged") is True)
        elif event.kind == "keep":
            self.kept.add(_text(body, "target"))
        elif event.kind == "name":
            group, name, row = _text(body, "group"), _text(body, "name"), _text(body, "id")
            self.names[group], self.named[group] = name, row
        elif event.kind == "annotator":
            if (name := _text(body, "name")) not in self.annotators:
                self.annotators.append(name)
        elif event.kind != "remap":
            raise ValueError(f"there is no event of the kind {event.kind!r}")
        self.seen.add(event.id)

    def _change(self, target: str, answer: str) -> None:
        if target in self.answers:
            old = self.answers[target]
            Question.from_dict(old.question).check(answer)
            self.answers[target] = replace(old, answer=answer, changed=True)
            self.kept.discard(target)

    def _take_back(self, target: str) -> None:
        self.answers.pop(target, None)
        if (batch := self.batches.pop(target, None)) is not None:
            for answer in self.of_batch(target):
                del self.answers[answer.id]
            for changed, (_, old) in batch.changes.items():
                self._change(changed, old)

    def of_batch(self, batch: str) -> list[Answer]:
        """Return the answers that were given at once by this event."""
        return [answer for answer in self.answers.values() if answer.batch == batch]

    def about(self, ids: Sequence[str]) -> History:
        """Return the same answers about the rows of these ids; those whose rows are not in the table are left out."""
        where = {name: row for row, name in enumerate(ids)}
        result = replace(self, answers={}, left_out=list(self.left_out))
        for key, answer in self.answers.items():
            if all(name in where for name in answer.ids):
                question = {**answer.question, "rows": [where[name] for name in answer.ids]}
                result.answers[key] = replace(answer, question=question)
            else:
                gone = ", ".join(repr(name) for name in answer.ids if name not in where)
                result.leave_out(answer, f"the table has no row {gone}")
        rows = {row: str(where[name]) for row, name in self.named.items() if name in where}
        result.names = {rows[row]: name for row, name in self.names.items() if row in rows}
        result.named = {rows[row]: self.named[row] for row in rows}
        return result

    def leave_out(self, answer: Answer, reason: object) -> None:
        """Remove an answer that cannot be used, and say so."""
        self.answers.pop(answer.id, None)
        self.left_out.append(f"entry {answer.seq} of {answer.at} (answer by {answer.annotator}): {reason}")

    def told(self) -> str:
        """Return what was left out and why, for people; empty if nothing was."""
        if not self.left_out:
            return ""
        n = len(self.left_out)
        more = f"; and {n - MOST_TOLD} more" if n > MOST_TOLD else ""
        head = f"{n} entries of the store are not used" if n > 1 else "1 entry of the store is not used"
        return f"{head}, all others are; nothing was removed. {'; '.join(self.left_out[:MOST_TOLD])}{more}"

    def last_of(self, annotator: str, questions: Collection[str]) -> Answer | None:
        """Return the newest answer of a person to one of these questions."""
        own = (answer for answer in reversed(self.answers.values()) if answer.annotator == annotator)
        return next((answer for answer in own if answer.question["id"] in questions), None)

    def recent(self, annotator: str, limit: int) -> list[Answer]:
        """Return the newest answers of a person, newest first; of those that were given at once, one."""
        found: dict[str, Answer] = {}
        for answer in reversed(self.answers.values()):
            if answer.annotator == annotator:
                found.setdefault(answer.batch or answer.id, answer)
                if len(found) == limit:
                    break
        return list(found.values())


def _answer(event: Event) -> Answer:
    given, ids, answer = event.body.get("question"), event.body.get("ids"), _text(event.body, "answer")
    if not isinstance(given, Mapping):
        raise ValueError(f"question={given!r} must be an object")
    question = Question.from_dict(given)
    question.check(answer)
    if not isinstance(ids, list) or len(ids) != len(question.rows) or not all(isinstance(name, str) for name in ids):
        raise ValueError(f"ids={ids!r} must name the {len(question.rows)} rows of the question")
    return Answer(event.id, question.to_dict(), answer, event.annotator, event.at, ids=tuple(ids), seq=event.seq)


def _batch(event: Event) -> tuple[Batch, dict[str, Answer]]:
    """Return what was done by an event, and the answers that it gave."""
    body = event.body
    given: dict[str, Answer] = {}
    parts: list[Any] = [body.get(name) for name in ("action", "ids", "pairs", "changes")]
    action, names, pairs, changed = parts
    if (
        not isinstance(action, str)
        or not _are(names, str)
        or not _are(pairs, int, int, int, str, str)
        or not _are(changed, str, str, str)
    ):
        raise ValueError("its action, ids, pairs and changes are not those of rows chosen on the map")
    for k, (i, j, verdict, *ids) in enumerate(pairs):
        question = Question(f"chosen-{event.id}-{k}", "same", (i, j), "chosen", annotator=event.annotator)
        answer = "same" if verdict > 0 else "different"
        one = Event(
            f"{event.id}.{k}",
            "answer",
            event.annotator,
            {"question": question.to_dict(), "answer": answer, "ids": ids},
            event.at,
            event.seq,
        )
        given[one.id] = replace(_answer(one), batch=event.id)
    changes = {target: (new, old) for target, new, old in changed}
    return Batch(event.id, event.annotator, action, tuple(names), changes), given


def _are(values: Any, *types: type) -> bool:
    """Return whether values are a list of entries of a type, or of lists with an entry of each type."""
    return isinstance(values, list) and all(
        [type(part) for part in (value if len(types) > 1 and isinstance(value, list) else [value])] == list(types)
        for value in values
    )


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key}={value!r} must be a text")
    return value


def verdicts(answers: Iterable[Answer]) -> list[tuple[Answer, int, int, int]]:
    """Return what answers say of pairs: the answer, two rows, and +1 (same, or the first is better) or -1."""
    return [
        (answer, i, j, verdict)
        for answer in answers
        for i, j, verdict in Question.from_dict(answer.question).verdicts(answer.answer)
        if verdict
    ]


@dataclass(frozen=True)
class StudioSettings:
    """Choices that a studio was started with: the kind of questions, and parameters of the asker.

    The question "auto" asks about two rows until there are three groups, and then for the group of a row.
    """

    question: str = "auto"
    seed: int = 0
    refit_every: int = 10
    audit: float = 0.15
    repeat: float = 0.03
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if self.question not in (*SCREENS, "prefer"):
            raise ArgumentError("question", self.question, f"must be one of {', '.join(SCREENS)}, prefer")

    def asker(
        self, X: NDArray[Any], lens: Any, answers: Iterable[Answer], refused: Callable[[Answer, Exception], None]
    ) -> Any:
        """Return an asker that was told the answers to questions of its kind; its fits are done elsewhere.

        An answer that it does not take in is `refused`, and those after it count.
        """
        chosen: dict[str, Any] = {
            "fits": "elsewhere",
            "lens": lens,
            "refit_every": self.refit_every,
            "random_state": self.seed,
            "audit": self.audit,
            "repeat": self.repeat,
            "overlap": self.overlap,
            "lease": LEASE_SECONDS,
        }
        ranking = self.question == "prefer"
        asker: Any = PreferenceAsker(X, **chosen) if ranking else Asker(X, screen=SCREENS[self.question], **chosen)
        retell(asker, answers, refused)
        return asker


def retell(asker: Any, answers: Iterable[Answer], refused: Callable[[Answer, Exception], None]) -> None:
    """Tell an asker the answers to questions of its kind; one that it does not take in is `refused`."""
    ranking = isinstance(asker, PreferenceAsker)
    for answer in answers:
        question = Question.from_dict(answer.question)
        if (question.kind == "prefer") == ranking:
            try:
                asker.tell(question, answer.answer)
            except Exception as error:  # whatever is in the store, there is a next question
                refused(answer, error)

"""The state of a studio: the log, the asker that replays it, the map, and who was asked what."""

from __future__ import annotations

import logging
import secrets
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.asking import Question, is_machine
from pairlens.exceptions import ConflictWarning
from pairlens.studio.files import Snapshot
from pairlens.studio.groups import GroupNumbers, chosen_pairs
from pairlens.studio.maps import MapJob, MapKeeper, MapState, by_lens
from pairlens.studio.replay import Answer, Batch, History, StudioSettings, verdicts
from pairlens.studio.rows import Rows
from pairlens.studio.store import Event, Store, StoreError
from pairlens.studio.worker import Worker
from pairlens.supervision import Constraints

AHEAD = 2
"""Questions that a person has in hand: the one on the screen, and one so that nobody waits for the next."""
RECENT = 10
MOST_NAME = 80
MOST_QUESTION_ID = 200
SURE = 0.9
"""Probability from which on the group of a row is sure."""
GROUP_EVERY = 5
"""Answers after which all rows are grouped again."""
PACE = 40
"""Answers over which, and for which, it is told how many rows become sure."""

log = logging.getLogger("pairlens.studio")

Listener = Callable[[str, Mapping[str, Any]], None]
"""Is told the topic of what happened, and its content."""


class BadRequestError(ValueError):
    """A request that cannot be met; `code` is its HTTP status."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class GroupedRows:
    """The group of every row, as far as `n_answers` answers tell; -1 for a group that no answer has named."""

    n_answers: int
    number: NDArray[np.int64]
    probability: NDArray[np.float64]

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Return which rows are sure of a group that was named."""
        return (self.probability >= SURE) & (self.number >= 0)


class Session:
    """All that happens in a studio, one thing after the other in one thread.

    Every change is an event: it is checked as a replay would, stored, then applied. What is not in the store (which
    questions are open, the map) can be lost without loss. The `listener` is told what happened. `prepared` is done when
    there is an asker, and carries the error if there will be none.
    """

    def __init__(self, rows: Rows, store: Store, settings: StudioSettings, listener: Listener | None = None) -> None:
        self.rows = rows
        self.store = store
        self.settings = settings
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pairlens-session")
        # By the ids of their rows: an answer is about the rows that it was given about, or about none.
        self.history = History.of(store.events()).about(rows.ids)
        self._tell: Listener = listener or (lambda topic, content: None)
        self._asker: Any = None
        self.prepared: Future[None] = Future()
        self._first: dict[str, list[str]] = {}
        ranking = settings.question == "prefer"
        self._lens = Worker(("pairlens.studio.maps:prepare_lens", rows.X, ranking, rows.prepared.standardize))
        # Of many rows one process holds what is prepared, for questions and maps alike.
        shared = by_lens(rows.n_rows, ranking)
        mapping = (
            self._lens
            if shared
            else Worker(("pairlens.studio.maps:prepare_map", rows.X, ranking, rows.prepared.standardize))
        )
        self._maps = MapKeeper(mapping, self._later, self._drawn)
        self._fitting: Future[Any] | None = None
        self._n_changes = 0
        # Statuses are counted within a run, and not by the clock, which may be set back.
        self._run, self._n_statuses = secrets.token_hex(4), 0
        self._caught_up = False
        self._trouble = ""
        self.grouped: GroupedRows | None = None
        self._grouping: Future[Any] | None = None
        # How many rows were sure after how many answers, in this run.
        self._pace: list[tuple[int, int]] = []
        self._ranked: tuple[int, Any] | None = None
        self._judged: tuple[int, Future[Any]] | None = None
        where = {name: row for row, name in enumerate(rows.ids)}
        self._numbers = GroupNumbers(
            {
                int(number): [where[name] for name in names if name in where]
                for number, names in store.meta().get("groups", {}).items()
            }
        )
        self._closed = False

    # Beginning and end

    def start(self) -> None:
        """Prepare in the background; questions come when the listener hears "ready"."""
        self._lens.submit("pairlens.studio.maps:send_lens").add_done_callback(
            lambda future: self._later(self._begin, future)
        )
        self._draw()

    def _begin(self, future: Future[Any]) -> None:
        try:
            answers = list(self.history.answers.values())
            self._asker = self.settings.asker(self.rows.X, future.result(), answers, self._refused)
        except Exception as error:
            self.prepared.set_exception(error)
            self._trouble = f"{error} There will be no questions; start the studio again. All answers are safe."
            self._tell("status", self.status())
            raise
        self.prepared.set_result(None)
        self._pump()
        self._catch_up()
        self._tell("ready", self.status())

    def _refused(self, answer: Answer, error: Exception) -> None:
        self.history.leave_out(answer, error)
        log.warning("an answer of the store is not used: %s", self.history.left_out[-1])

    def close(self) -> None:
        """End the processes; everything acknowledged is in the store."""
        self._closed = True
        self.prepared.cancel()
        self._lens.close()
        self._maps.worker.close()
        self.thread.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _later(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run in the session's own thread, from whichever thread this is called."""
        if not self._closed:
            try:
                self.thread.submit(self._logged, function, *arguments)
            except RuntimeError:
                log.debug("closing")

    def _logged(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            if not self._closed:
                log.exception("the studio failed in the background")
                self._tell("trouble", {"words": f"{type(error).__name__}: {error}"})

    # Questions

    @property
    def ready(self) -> bool:
        """Return whether there is an asker yet."""
        return self._asker is not None

    @property
    def asker(self) -> Any:
        """The asker that knows all answers."""
        if self._asker is None:
            reason = self._trouble or "the studio is still reading the rows; questions come in a moment"
            raise BadRequestError(reason, 503)
        return self._asker

    def questions(self, annotator: str) -> list[dict[str, Any]]:
        """Return the questions that a person has in hand, the one to be shown first."""
        return [self.shown(question) for question in self._open(annotator)]

    def _open(self, annotator: str) -> list[Question]:
        pending = list(self.asker.pending(annotator))
        while len(pending) < AHEAD:
            question = self.asker.ask(annotator, now=time.monotonic())
            if question is None:
                break
            pending.append(question)
        first = self._first.get(annotator, [])
        return sorted(pending, key=lambda open: first.index(open.id) if open.id in first else len(first))

    def shown(self, question: Question) -> dict[str, Any]:
        """Return a question as the page shows it, also one that was answered before."""
        groups = self._groups() if question.groups else []
        where = {row: group for group in groups for row in group["rows"]}
        # By the rows: of an old question the groups may have gone on under other numbers.
        shown = [where.get(row) for row in question.rows[1 : 1 + len(question.groups)]]
        return {
            "id": question.id,
            "kind": question.kind,
            "answers": list(question.answers),
            "rows": [self.rows.shown(row) for row in question.rows],
            "names": [group["name"] if group else "" for group in shown],
            "numbers": [group["shown"] if group else 0 for group in shown],
            "n_groups": len(groups),
            "again": question.purpose == "place"
            and any(entry.answer == "none" and entry.question.rows[0] == question.rows[0] for entry in self.asker.log),
            "raw": question.to_dict(),
        }

    def group_name(self, number: int) -> str:
        """Return what people call a group, or nothing. A name belongs to the rows, and so outlives a merge."""
        members = self.asker.groups_.get(number, [])
        named = [name for row in members if (name := self.history.names.get(str(row)))]
        return named[-1] if named else ""

    # Changes: each is stored before it is applied

    def answer(self, annotator: str, event: str, given: Mapping[str, Any], answer: str) -> bool:
        """Store an answer; whether it is new (an event of this id is stored once)."""
        question = self._question(annotator, given)
        self.asker.check(question, answer)
        known = self.history.answers.get(event)
        if known is None and any(each.question["id"] == question.id for each in self.history.answers.values()):
            raise BadRequestError("this question was answered before", 409)
        if known is not None and (
            known.question["id"] != question.id or (known.answer != answer and not known.changed)
        ):
            raise BadRequestError("the id of this event was used for another answer", 409)
        body = {
            "question": question.to_dict(),
            "answer": answer,
            "ids": [self.rows.ids[row] for row in question.rows],
        }
        if not self._store(Event(event, "answer", annotator, body)):
            return False
        self.asker.tell(question, answer)
        self._changed()
        return True

    def undo(self, annotator: str, event: str) -> bool:
        """Take back a person's last answer; its question is asked again."""
        if event in self.history.seen:
            return self._store(Event(event, "undo", annotator, {}))
        asked = {entry.question.id for entry in self.asker.log}
        last = self.history.last_of(annotator, asked)
        if last is None:
            raise BadRequestError("there is nothing to undo", 409)
        if last.batch:
            return self._take_back(annotator, event, "undo", self.history.batches[last.batch])
        if not self._store(Event(event, "undo", annotator, {"target": last.id})):
            return False
        self.asker.undo(annotator)
        # The asker asks first what was taken back, and nobody else is asked it meanwhile.
        question = self.asker.ask(annotator, now=time.monotonic())
        if question is not None:
            self._first.setdefault(annotator, []).insert(0, question.id)
        self._changed()
        return True

    def change(self, annotator: str, event: str, target: str, answer: str, *, review: bool = False) -> bool:
        """Change an answer of the past; in a review, anybody's."""
        old = self._own(annotator, target, review)
        question = Question.from_dict(old.question)
        question.check(answer)
        if not self._store(Event(event, "change", annotator, {"target": target, "answer": answer, "old": old.answer})):
            return False
        self.asker.change(question.id, answer)
        self._changed()
        return True

    def retract(self, annotator: str, event: str, target: str, *, review: bool = False) -> bool:
        """Take an answer of the past back, or all that were given at once; in a review, anybody's."""
        if event in self.history.seen:
            return self._store(Event(event, "retract", annotator, {}))
        batch = self.history.batches.get(target)
        if batch is not None and (review or batch.annotator == annotator):
            return self._take_back(annotator, event, "retract", batch)
        old = self._own(annotator, target, review)
        if not self._store(Event(event, "retract", annotator, {"target": target})):
            return False
        self.asker.retract(old.question["id"])
        self._changed()
        return True

    def _take_back(self, annotator: str, event: str, kind: str, batch: Batch) -> bool:
        given = [answer.question["id"] for answer in self.history.of_batch(batch.id)]
        if not self._store(Event(event, kind, annotator, {"target": batch.id})):
            return False
        if given:
            self.asker.retract(*given)
        self._change_all({target: old for target, (_, old) in batch.changes.items()})
        self._changed()
        return True

    def _change_all(self, changes: Mapping[str, str]) -> None:
        for target, answer in changes.items():
            if target in self.history.answers:
                self.asker.change(self.history.answers[target].question["id"], answer)

    def choose(
        self,
        annotator: str,
        event: str,
        action: str,
        rows: Sequence[int],
        group: int | None = None,
        other: int | None = None,
        name: str = "",
    ) -> bool:
        """Take in what a person did with rows on the map; it is one event, which is undone as one.

        Answers of which it says the opposite are changed. See :func:`~pairlens.studio.groups.chosen_pairs`.
        """
        if self.settings.question == "prefer":
            raise BadRequestError("preferences make no groups", 409)
        if not all(0 <= row < self.rows.n_rows for row in rows):
            raise BadRequestError("there is no such row", 404)
        if len(name) > MOST_NAME:
            raise BadRequestError(f"a name has at most {MOST_NAME} characters")
        if event in self.history.seen:
            return False
        if any(known.startswith(f"{event}.") for known in self.history.answers):
            raise BadRequestError("the id of this event is the beginning of that of another answer", 409)
        about: dict[tuple[int, int], list[Answer]] = {}
        said: dict[tuple[int, int], int] = {}
        for answer, i, j, verdict in verdicts(self.history.answers.values()):
            said[i, j] = verdict
            about.setdefault((i, j), []).append(answer)
        groups = self.asker.groups_
        only_named = action == "group" and name and group is None and any(set(rows) == set(m) for m in groups.values())
        pairs = [] if only_named else chosen_pairs(action, rows, groups, said, group=group, other=other)
        changes: dict[str, tuple[str, str]] = {}
        fresh: list[list[Any]] = []
        for i, j, verdict in pairs:
            pair = (min(i, j), max(i, j))
            wrong = about.get(pair, []) if said.get(pair) == -verdict else []
            opposite = {answer.id: (new, answer.answer) for answer in wrong if (new := _opposite(answer, pair))}
            changes.update(opposite)
            if len(opposite) < len(wrong) or not wrong:
                fresh.append([i, j, verdict, self.rows.ids[i], self.rows.ids[j]])
        shown = rows or [row for number in (group, other) if number is not None for row in groups[number]]
        if pairs:
            body = {
                "action": action,
                "ids": [self.rows.ids[row] for row in shown],
                "pairs": fresh,
                "changes": [[target, new, old] for target, (new, old) in changes.items()],
            }
            if not self._store(Event(event, "chosen", annotator, body)):
                return False
            self._change_all({target: new for target, (new, _) in changes.items()})
            for answer in self.history.of_batch(event):
                self.asker.tell(Question.from_dict(answer.question), answer.answer)
            self._changed()
        if name.strip():
            number = next((n for n, members in self.asker.groups_.items() if shown[0] in members), -1)
            self.name(annotator, f"{event}.name", number, name)
        return True

    def keep(self, annotator: str, event: str, target: str) -> bool:
        """Say after a second look that an answer is right."""
        self._own(annotator, target, True)
        return self._store(Event(event, "keep", annotator, {"target": target}))

    def join(self, annotator: str, event: str, name: str) -> bool:
        """Let one more person take part."""
        name = name.strip()
        if not name or len(name) > MOST_NAME:
            raise BadRequestError(f"a name has 1 to {MOST_NAME} characters")
        if not name.isprintable():
            raise BadRequestError(f"a name must be printable text, got {name!r}")
        if is_machine(name):
            raise BadRequestError(f"{name!r} is the name of a machine; a link is for a person")
        new = self._store(Event(event, "annotator", annotator, {"name": name}))
        if name not in self.history.annotators:
            raise BadRequestError("the id of this event was used for another name", 409)
        return new

    def flag(self, annotator: str, event: str, target: str, flagged: bool) -> bool:
        """Mark an answer as one to come back to."""
        self._own(annotator, target)
        new = self._store(Event(event, "flag", annotator, {"target": target, "flagged": flagged}))
        self._tell("status", self.status())
        return new

    def name(self, annotator: str, event: str, group: int, name: str) -> bool:
        """Give a group a name."""
        members = getattr(self.asker, "groups_", {}).get(group)  # preferences make no groups
        if not members:
            raise BadRequestError("there is no such group any more", 409)
        if len(name) > MOST_NAME:
            raise BadRequestError(f"a name has at most {MOST_NAME} characters")
        body = {"group": str(members[0]), "name": name.strip(), "id": self.rows.ids[members[0]]}
        new = self._store(Event(event, "name", annotator, body))
        self._tell("groups", {})
        return new

    def _store(self, event: Event) -> bool:
        stored, _ = self.store.append(event)
        if stored.kind != event.kind or stored.annotator != event.annotator:
            raise BadRequestError("the id of this event was used for another one", 409)
        # It may have been stored before without an acknowledgement, when the file was moved.
        new = stored.id not in self.history.seen
        if new:
            self.history.apply(stored)
        return new

    def _own(self, annotator: str, target: str, anybody: bool = False) -> Answer:
        found = self.history.answers.get(target)
        if found is None:
            raise BadRequestError("there is no such answer any more", 409)
        if (found.question["kind"] == "prefer") != (self.settings.question == "prefer"):
            raise BadRequestError("this answer belongs to another kind of question; start the studio with it", 409)
        if found.annotator != annotator and not anybody:
            raise BadRequestError("this is somebody else's answer", 403)
        return found

    def _question(self, annotator: str, given: Mapping[str, Any]) -> Question:
        """Return the open question that is meant; one that was forgotten in a restart is taken as it was put."""
        try:
            question = Question.from_dict(given)
        except ValueError as error:
            raise BadRequestError(f"this is not a question: {error}") from None
        if len(question.id) > MOST_QUESTION_ID:
            raise BadRequestError(f"the id of a question has at most {MOST_QUESTION_ID} characters")
        if not all(0 <= row < self.rows.n_rows for row in question.rows):
            raise BadRequestError("the question names a row that is not there")
        for known in self.asker.pending(annotator):
            if known.id == question.id:
                if (known.kind, known.rows) != (question.kind, question.rows):
                    raise BadRequestError("the question of this id was put about other rows", 409)
                return known
        if (question.kind == "prefer") != (self.settings.question == "prefer"):
            raise BadRequestError(f"the studio asks no questions of the kind {question.kind!r} at present", 409)
        if question.annotator != annotator or question.kind == "skip":
            raise BadRequestError("this question was put to somebody else", 403)
        return question

    # Fits, on a snapshot and in a process of their own

    def _changed(self) -> None:
        self._n_changes += 1
        self._pump()
        self._tell("status", self.status())

    def _pump(self) -> None:
        """Start what has to be fitted, if nothing is being fitted; the newest state wins."""
        if self._fitting is None:
            job = self._asker.fit_job()
            if job is not None:
                self._fitting = self._lens.submit("pairlens.studio.maps:fit_lens", job)
                self._fitting.add_done_callback(lambda future: self._later(self._adopt, future))
        self._draw()

    def _adopt(self, future: Future[Any]) -> None:
        self._fitting = None
        # If it failed, the groups of an older view are better than none.
        self._caught_up = self._caught_up or future.exception() is not None
        self._asker.adopt(future.result())
        self._pump()
        self._catch_up()
        self._tell("groups", {})

    def _catch_up(self) -> None:
        """Note the moment from which on the groups are those of all answers of an earlier run."""
        self._caught_up = self._caught_up or self._asker.fit_job() is None

    @property
    def n_answers(self) -> int:
        """Return how many answers count; those that were given at once count as one."""
        return len({answer.batch or answer.id for answer in self.history.answers.values()})

    @property
    def map(self) -> MapState:
        """The map that is shown."""
        return self._maps.state

    def _draw(self) -> None:
        if self._asker is not None or not self.n_answers:
            self._maps.want(
                (self._n_changes, self._asker.answers_behind_ if self.ready else 0),
                lambda: MapJob(self.n_answers, self._constraints(), self._preferences()),
            )

    def _drawn(self, new: bool) -> None:
        if new:
            self._tell("map", {"version": self.map.version})
            self._group_rows()
        self._draw()
        self._tell("status", self.status())

    def _group_rows(self) -> None:
        """Start to find the group of every row, if there are groups and enough answers since the last time."""
        groups = self._groups() if self._caught_up and self.n_answers else []
        known = 0 if self.grouped is None else self.grouped.n_answers
        if self._grouping is not None or len(groups) < 2 or abs(self.n_answers - known) < GROUP_EVERY:
            return
        placed: list[str | None] = [None] * self.rows.n_rows
        for group in groups:
            for row in group["rows"]:
                placed[row] = str(group["number"])
        n_answers = self.n_answers
        self._grouping = self._maps.worker.submit("pairlens.studio.maps:group_rows", self._constraints(), placed)
        self._grouping.add_done_callback(lambda future: self._later(self._grouped, future, n_answers))

    def _grouped(self, future: Future[Any], n_answers: int) -> None:
        self._grouping = None
        names, group, probability = future.result()
        numbers = np.array([int(name) if name.isdecimal() else -1 for name in names], dtype=np.int64)
        self.grouped = GroupedRows(n_answers, numbers[group], probability)
        self._pace.append((n_answers, int(self.grouped.sure.sum())))
        self._tell("groups", {})
        self._group_rows()

    def certainty(self) -> dict[str, Any] | None:
        """Return how many rows are sure of their group, and how many more so many answers may settle.

        The latter goes on as the last answers did; it is None as long as there are too few of them.
        """
        if self.grouped is None or not self.n_answers:
            return None
        now, sure = self._pace[-1]
        before = [(then, known) for then, known in self._pace if PACE // 4 <= now - then <= PACE]
        rate = (sure - before[0][1]) / (now - before[0][0]) if before else None
        left = self.rows.n_rows - sure
        more = None if rate is None else max(0, min(left, round(PACE * rate)))
        return {"sure": sure, "rows": self.rows.n_rows, "questions": PACE, "more": more, "answers": now}

    def shown_groups(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the number that people see on the group of every row, 0 where there is none, and how sure it is."""
        if self.grouped is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        shown = {group["number"]: group["shown"] for group in self.groups()}
        numbers = np.array([shown.get(number, 0) for number in self.grouped.number.tolist()], dtype=np.int64)
        return numbers, self.grouped.probability

    def least_sure(self, most: int) -> list[dict[str, Any]]:
        """Return the rows that are least sure of their group, the worst first."""
        if self.grouped is None:
            return []
        shown = {group["number"]: group for group in self.groups()}
        free = np.array([number in shown for number in self.grouped.number.tolist()])
        free[[row for group in shown.values() for row in group["rows"]]] = False
        rows = np.flatnonzero(free)
        rows = rows[np.argsort(self.grouped.probability[rows], kind="stable")[:most]]
        return [
            {
                **self.rows.shown(int(row)),
                "group": shown[int(self.grouped.number[row])],
                "probability": round(float(self.grouped.probability[row]), 3),
            }
            for row in rows
        ]

    def judged(self) -> Future[Any]:
        """Return a future of how probable it is that each answer is wrong, by views that did not see it."""
        if self._judged is None or self._judged[0] != self._n_changes:
            said = {(i, j): verdict for _, i, j, verdict in verdicts(self.history.answers.values())}
            must = [pair for pair, verdict in said.items() if verdict > 0]
            cannot = [pair for pair, verdict in said.items() if verdict < 0]
            with warnings.catch_warnings(action="ignore", category=ConflictWarning):
                known = Constraints(must, cannot, self.rows.n_rows, on_conflict="warn")
            if self.settings.question == "prefer" or not (must and cannot):
                nothing: Future[Any] = Future()
                nothing.set_result({})
                return nothing
            self._judged = self._n_changes, self._lens.submit("pairlens.studio.maps:judge_answers", known)
        return self._judged[1]

    def ranked(self) -> Any:
        """Return the rows in order, with the intervals of their ranks, of a studio that asks for preferences."""
        if self.settings.question != "prefer":
            raise BadRequestError("only preferences make a ranking", 404)
        state = self._n_changes + self.asker.answers_behind_
        if self._ranked is None or self._ranked[0] != state:
            self._ranked = state, self.asker.ranked_rows()
        return self._ranked[1]

    def _constraints(self) -> Any:
        return self._asker.constraints() if hasattr(self._asker, "constraints") else None

    def _preferences(self) -> Any:
        return self._asker.preferences() if hasattr(self._asker, "preferences") else None

    # What the page shows

    def status(self) -> dict[str, Any]:
        """Return what changes with every answer; `order` tells which of two of the same `run` is newer."""
        self._n_statuses += 1
        return {
            "run": self._run,
            "order": self._n_statuses,
            "ready": self.ready,
            "trouble": self._trouble,
            "answers": self.n_answers,
            "left_out": self.history.told(),
            "certainty": self.certainty(),
            "map": {
                "version": self.map.version,
                "answers": self.map.n_answers,
                "name": self.map.name,
                "error": self.map.error,
                "fitting": self._maps.fitting,
                "points": 0 if self.map.points is None else len(self.map.points),
            },
        }

    def recent(self, annotator: str) -> list[dict[str, Any]]:
        """Return a person's last answers, newest first."""
        return [self.told(answer) for answer in self.history.recent(annotator, RECENT)]

    def told(self, answer: Answer) -> dict[str, Any]:
        """Return an answer as the page lists it."""
        batch = self.history.batches.get(answer.batch)
        if batch is None:
            return self.told_alone(answer)
        where = {name: row for row, name in enumerate(self.rows.ids)}
        rows = [where[name] for name in batch.ids if name in where]
        told = {"id": batch.id, "kind": "chosen", "rows": rows, "ids": list(batch.ids), "answer": batch.action}
        return {**told, "answers": [], "changed": False, "flagged": False}

    def told_alone(self, answer: Answer) -> dict[str, Any]:
        """Return an answer as the page lists it, also one that was given together with others."""
        question = answer.question
        return {
            "id": answer.id,
            "kind": question["kind"],
            "rows": list(question["rows"]),
            "ids": [self.rows.ids[row] for row in question["rows"]],
            "answer": answer.answer,
            "answers": list(question["answers"]),
            "changed": answer.changed,
            "flagged": answer.flagged,
        }

    def snapshot(self) -> Snapshot:
        """Return the rows and what is known of them now."""
        groups = {row: group["name"] or f"group {group['shown']}" for group in self.groups() for row in group["rows"]}
        return Snapshot(
            self.rows.X,
            self.rows.features,
            self.rows.ids,
            self.rows.prepared,
            self._constraints(),
            self._preferences(),
            [groups.get(row) for row in range(self.rows.n_rows)],
            self.rows.joined_texts,
            self.rows.source,
        )

    def groups(self) -> list[dict[str, Any]]:
        """Return the groups so far, with their rows.

        There are none before the first answer, nor while old answers are taken in, when groups come and go.
        """
        return self._groups() if self._caught_up and self.n_answers else []

    def _groups(self) -> list[dict[str, Any]]:
        if self._asker is None or not hasattr(self._asker, "groups_"):
            return []
        groups = {number: members for number, members in self._asker.groups_.items() if members}
        shown, confidence = self._numbered(groups), self._asker.confidence_
        return [
            {
                "number": int(number),
                "shown": shown[number],
                "name": self.group_name(number),
                "rows": [int(row) for row in groups[number]],
                "confidence": [round(float(confidence.get(row, 1.0)), 3) for row in groups[number]],
            }
            for number in sorted(groups, key=shown.__getitem__)
        ]

    def _numbered(self, groups: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Return the number that people see on each group; they are stored, so that they outlive the studio."""
        if not self._caught_up:
            return GroupNumbers(self._numbers.known).look(groups)
        before = list(self._numbers.known)
        shown = self._numbers.look(groups)
        known = self._numbers.known
        if list(known) != before:
            names = {str(number): [self.rows.ids[row] for row in rows] for number, rows in known.items()}
            # The answers say what is wrong with the disk; a number is not worth a page without groups.
            with suppress(StoreError):
                self.store.set_meta({"groups": names})
        return shown


def _opposite(answer: Answer, pair: tuple[int, int]) -> str:
    """Return the answer to the same question that says the opposite of this pair; empty if none says only that."""
    question = Question.from_dict(answer.question)
    if question.kind == "same":
        return "different" if answer.answer == "same" else "same"
    if answer.answer == "none":
        return str(question.pairs.index(pair) + 1)
    return "none" if question.pairs.index(pair) + 1 == int(answer.answer) else ""

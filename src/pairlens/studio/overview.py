"""What people see of a session beyond the question: progress, review, all answers, the ranking, files."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from pairlens._text import csv_text
from pairlens.asking import Question, is_machine
from pairlens.cluster.assigned import COLUMNS
from pairlens.exceptions import ConflictWarning
from pairlens.studio.files import answers_csv, answers_jsonl, map_csv, ranking_csv
from pairlens.studio.replay import Answer, History, verdicts
from pairlens.studio.session import BadRequestError, Session
from pairlens.studio.worker import Worker
from pairlens.supervision import Constraints, Preferences

EXPORTS = {
    "answers.csv": "text/csv",
    "answers.jsonl": "application/x-ndjson",
    "groups.csv": "text/csv",
    "ranking.csv": "text/csv",
    "map.csv": "text/csv",
    "model.pairlens": "application/octet-stream",
    "report.html": "text/html",
}

TARGETS = {"groups.csv": "make_groups", "model.pairlens": "make_model", "report.html": "make_report"}
"""The jobs that make the files that have to be fitted."""
LEAST_SURE = 12
"""Rows that are listed as the least sure ones."""
UNKNOWN = 0.01
"""Least probability of being wrong of an answer that is part of a contradiction."""
LOOKS_WRONG = 0.5
"""Probability of being wrong from which on an answer that does not fit the groups is worth a second look."""


# Progress


def progress(session: Session) -> dict[str, Any]:
    """Return how far the answers have come; the curve is over questions drawn at random alone."""
    asker = session.asker
    answers = session.history.answers.values()
    result: dict[str, Any] = {
        "counts": Counter("placed" if answer.answer.isdecimal() else answer.answer for answer in answers),
        "people": Counter(answer.annotator for answer in answers if not is_machine(answer.annotator)),
        "machines": {name: asdict(rate) for name, rate in asker.error_rates().items()},
        "audits_due": len(asker.audits_due()),
        "curve": [_plain(asdict(point)) for point in asker.learning_curve()],
        "agreement": _plain(asdict(asker.agreement())),
        "consistency": _plain(asdict(asker.consistency())),
        "hint": asdict(asker.stopping_hint()),
    }
    if session.settings.question == "prefer":
        result["share_sure"] = asker.share_sure()
    else:
        result["error_rate"] = asker.error_rate_
        result["placed"] = sum(len(rows) for rows in asker.groups_.values())
        result["certainty"] = session.certainty()
        result["least_sure"] = session.least_sure(LEAST_SURE)
    return result


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with null where JSON has no number."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }


def ranking(session: Session, start: int, most: int, find: str = "") -> dict[str, Any]:
    """Return some rows of the ranking, the best first, each with its rank and the interval of its rank."""
    ranked = session.ranked()
    order = ranked.order.tolist()
    wanted = set(session.rows.find(find)) if find else set(order)
    places = [place for place, row in enumerate(order) if row in wanted]
    return {
        "rows": len(order),
        "found": len(places),
        "share_sure": session.asker.share_sure(),
        "answers": session.n_answers,
        "ranked": [
            {
                **session.rows.shown(order[place]),
                "rank": place + 1,
                "low": int(ranked.low[order[place]]),
                "high": int(ranked.high[order[place]]),
            }
            for place in places[start : start + most]
        ],
    }


# Review


@dataclass(frozen=True)
class Contradiction:
    """Answers that cannot all be right: a chain of "same" with a "different" between its ends, or a circle.

    `links` are the answers in the order of the chain, with the rows and what is said of them; last the "different".
    `chain` are its rows.
    """

    links: tuple[tuple[Answer, int, int, int], ...]
    chain: tuple[int, ...]


def contradictions(answers: Sequence[Answer], n_rows: int) -> list[Contradiction]:
    """Return all that ``pairlens pairs check`` finds in the exported answers."""
    pairs = [answer for answer in answers if answer.question["kind"] != "prefer"]
    orders = [answer for answer in answers if answer.question["kind"] == "prefer"]
    with warnings.catch_warnings(action="ignore", category=ConflictWarning):
        return [*_chains(pairs, n_rows), *_circles(orders, n_rows)]


def _chains(answers: Sequence[Answer], n_rows: int) -> list[Contradiction]:
    said = {(i, j, verdict): (answer, i, j, verdict) for answer, i, j, verdict in verdicts(answers)}
    together, apart = ([(i, j) for i, j, verdict in said if verdict == wanted] for wanted in (1, -1))
    if not together or not apart:
        return []
    result = []
    for conflict in Constraints(together, apart, n_rows, on_conflict="warn").conflicts():
        i, j = sorted(int(row) for row in conflict.pair)
        chain = tuple(int(row) for row in conflict.chain)
        links = [said[min(a, b), max(a, b), 1] for a, b in pairwise(chain)]
        result.append(Contradiction((*links, said[i, j, -1]), chain))
    return result


def _circles(answers: Sequence[Answer], n_rows: int) -> list[Contradiction]:
    said = {}
    for answer, i, j, verdict in verdicts(answers):
        said[(i, j) if verdict > 0 else (j, i)] = (answer, i, j, verdict)
    if not said:
        return []
    circles = [(*circle, circle[0]) for circle in Preferences(list(said), n_rows, on_conflict="warn").cycles()]
    return [
        Contradiction(tuple(said[a, b] for a, b in pairwise(circle)), tuple(int(row) for row in circle))
        for circle in circles
    ]


def weakest_answers(
    conflicts: Sequence[Contradiction], wrong: Mapping[tuple[int, int, int], float], kept: Collection[str]
) -> dict[str, list[Contradiction]]:
    """Return the few answers that explain all contradictions if they are wrong, each with those that it explains.

    One after the other, the answer is taken with the largest probability of being `wrong`, times the number of the
    contradictions left that it is part of; of equal ones, the newest. Answers that were `kept` are right, and a
    contradiction of such answers alone is left out.
    """
    left = list(conflicts)
    result: dict[str, list[Contradiction]] = {}
    while left:
        value: Counter[str] = Counter()
        seq: dict[str, int] = {}
        for conflict in left:
            doubt: dict[str, float] = {}
            for answer, *said in conflict.links:
                if answer.id not in kept:
                    i, j, verdict = said
                    doubt[answer.id] = max(doubt.get(answer.id, UNKNOWN), wrong.get((i, j, verdict), UNKNOWN))
                    seq[answer.id] = answer.seq
            value.update(doubt)
        if not value:
            break
        name = max(value, key=lambda each: (round(value[each], 9), seq[each]))
        result[name] = [conflict for conflict in left if any(link[0].id == name for link in conflict.links)]
        left = [conflict for conflict in left if conflict not in result[name]]
    return result


def review(session: Session, wrong: Mapping[tuple[int, int, int], float]) -> dict[str, Any]:
    """Return what is worth a second look, and how many contradictions there are.

    Answers that explain contradictions come first, then those that do not fit the groups, and flags. `wrong` is the
    probability that an answer about two rows is wrong.
    """
    history = session.history
    found = contradictions(list(history.answers.values()), session.rows.n_rows)
    weak = weakest_answers(found, wrong, history.kept)
    doubts = [
        _doubt(session, name, "contradiction", conflicts)
        for name, conflicts in sorted(weak.items(), key=lambda item: -len(item[1]))
    ]
    others = [(name, "suspicious") for name in _misfits(session, wrong) if name not in history.kept]
    others += [(answer.id, "flagged") for answer in history.answers.values() if answer.flagged]
    seen = set(weak)
    for name, kind in others:
        if name not in seen:
            seen.add(name)
            doubts.append(_doubt(session, name, kind, ()))
    n_open = sum(len(conflicts) for conflicts in weak.values())
    return {"doubts": doubts, "conflicts": len(found), "kept": len(found) - n_open}


def _misfits(session: Session, wrong: Mapping[tuple[int, int, int], float]) -> list[str]:
    """Return answers that disagree with the groups and look wrong, the surest disagreement first."""
    asker = session.asker
    if session.settings.question == "prefer":
        return []
    where = {row: number for number, rows in asker.groups_.items() for row in rows}
    strongest: dict[str, float] = {}
    pairs = [answer for answer in session.history.answers.values() if answer.question["kind"] != "prefer"]
    for answer, i, j, verdict in verdicts(pairs):
        if i in where and j in where and (where[i] == where[j]) != (verdict > 0):
            doubt = wrong.get((i, j, verdict), 1.0)
            if doubt >= LOOKS_WRONG:
                strongest[answer.id] = max(doubt, strongest.get(answer.id, 0.0))
    return sorted(strongest, key=lambda name: -strongest[name])


def _doubt(session: Session, name: str, kind: str, conflicts: Sequence[Contradiction]) -> dict[str, Any]:
    answer = session.history.answers[name]
    first = conflicts[0] if conflicts else None
    links = [
        {"rows": [i, j], "same": verdict > 0, "asked": link.id == name, "annotator": link.annotator}
        for link, i, j, verdict in (first.links if first else ())
    ]
    return {
        "kind": kind,
        "question": session.shown(Question.from_dict(answer.question)),
        "answer": session.told_alone(answer),
        "annotator": answer.annotator,
        "links": links,
        "chain": [] if first is None else list(first.chain),
        "conflicts": len(conflicts),
        "rows": list(dict.fromkeys(first.chain if first else answer.question["rows"])),
    }


def list_answers(session: Session, find: str, show: str, start: int, most: int) -> dict[str, Any]:
    """Return some of the answers, the newest first: those with this text in a row's name or a person's.

    They can be restricted to "flagged", "changed", "contradiction", "people", "machines", "placed", or an answer.
    """
    history: History = session.history
    answers = list(reversed(history.answers.values()))
    if show == "contradiction":
        found = contradictions(list(history.answers.values()), session.rows.n_rows)
        wanted = {link[0].id for conflict in found for link in conflict.links}
        answers = [answer for answer in answers if answer.id in wanted]
    elif show in ("flagged", "changed"):
        answers = [answer for answer in answers if getattr(answer, show)]
    elif show in ("people", "machines"):
        answers = [answer for answer in answers if is_machine(answer.annotator) == (show == "machines")]
    elif show:
        answers = [answer for answer in answers if ("placed" if answer.answer.isdecimal() else answer.answer) == show]
    if find:
        text = find.casefold()
        answers = [each for each in answers if any(text in name.casefold() for name in (*each.ids, each.annotator))]
    shown = [
        {**session.told_alone(each), "annotator": each.annotator, "at": each.at, "kept": each.id in history.kept}
        for each in answers[start : start + most]
    ]
    return {"found": len(answers), "answers": shown}


# Files


def export(session: Session, name: str) -> Any:
    """Return the content of a file, or a future of it where it has to be fitted first."""
    answers, ids = list(session.history.answers.values()), session.rows.ids
    if name == "answers.csv":
        return answers_csv(answers, ids)
    if name == "answers.jsonl":
        return answers_jsonl(answers, ids)
    if name == "ranking.csv":
        return ranking_csv(session.ranked(), answers, ids)
    if name == "map.csv":
        if session.map.points is None:
            raise BadRequestError("there is no map yet; try again in a moment", 409)
        return map_csv(session.map.points, session.groups(), ids)
    if name == "groups.csv" and not session.groups():
        return csv_text(COLUMNS, ())
    known = session.snapshot()
    pairs = known.constraints if known.constraints is not None else known.preferences
    if pairs is None or pairs.n_pairs == 0:
        raise BadRequestError("there is no answer yet to learn from", 409)
    worker = Worker()
    future = worker.submit(f"pairlens.studio.files:{TARGETS[name]}", known)
    future.add_done_callback(lambda done: worker.close())
    return future

"""What people see of a session beyond the question: progress, review, files."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from pairlens.cluster.assigned import COLUMNS
from pairlens.studio.export import answers_csv, answers_jsonl, map_csv, table_csv
from pairlens.studio.review import Doubt, doubts
from pairlens.studio.session import BadRequestError, Session
from pairlens.studio.worker import Worker

__all__ = ["EXPORTS", "export", "progress", "review"]

EXPORTS = {
    "answers.csv": "text/csv",
    "answers.jsonl": "application/x-ndjson",
    "groups.csv": "text/csv",
    "map.csv": "text/csv",
    "model.pairlens": "application/octet-stream",
    "report.html": "text/html",
}

TARGETS = {"groups.csv": "make_groups", "model.pairlens": "make_model", "report.html": "make_report"}
"""The jobs that make the files that have to be fitted."""


def progress(session: Session) -> dict[str, Any]:
    """How far the answers have come, from questions drawn at random alone."""
    asker = session.asker
    counts: dict[str, int] = {}
    people: dict[str, int] = {}
    for answer in session.history.answers.values():
        verdict = "placed" if answer.answer.isdecimal() else answer.answer
        counts[verdict] = counts.get(verdict, 0) + 1
        people[answer.annotator] = people.get(answer.annotator, 0) + 1
    result: dict[str, Any] = {
        "counts": counts,
        "people": people,
        "curve": [_plain(asdict(point)) for point in asker.learning_curve()],
        "agreement": _plain(asdict(asker.agreement())),
        "consistency": _plain(asdict(asker.consistency())),
        "hint": asdict(asker.stopping_hint()),
    }
    if hasattr(asker, "groups_"):
        result["error_rate"] = asker.error_rate_
        result["placed"] = sum(len(rows) for rows in asker.groups_.values())
    return result


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has no word for become null."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }


def review(session: Session) -> list[dict[str, Any]]:
    """What is worth a second look; each question as it was put, for a blind second answer."""
    return [_told(session, doubt) for doubt in doubts(session.history, session.asker, session.rows.n_rows)]


def _told(session: Session, doubt: Doubt) -> dict[str, Any]:
    answer = session.history.answers[doubt.answer]
    return {
        "kind": doubt.kind,
        "question": session.shown_again(answer),
        "answer": session.told(answer),
        "annotator": answer.annotator,
        "others": [
            {**session.told(other), "annotator": other.annotator}
            for name in doubt.others
            if (other := session.history.answers.get(name)) is not None
        ],
        "chain": [session.rows.ids[row] for row in doubt.chain],
        "rows": list(dict.fromkeys(doubt.chain or answer.question["rows"])),
    }


def export(session: Session, name: str) -> Any:
    """The content of a file, or a future of it where it has to be fitted first."""
    answers, ids = list(session.history.answers.values()), session.rows.ids
    if name == "answers.csv":
        return answers_csv(answers, ids)
    if name == "answers.jsonl":
        return answers_jsonl(answers, ids)
    if name == "map.csv":
        if session.map.points is None:
            raise BadRequestError("there is no map yet; try again in a moment", 409)
        return map_csv(session.map.points, session.groups(), ids)
    if name == "groups.csv" and not session.groups():
        return table_csv(COLUMNS, ())
    return _fitted(session, name)


def _fitted(session: Session, name: str) -> Any:
    known = session.snapshot()
    pairs = known.constraints if known.constraints is not None else known.preferences
    if pairs is None or pairs.n_pairs == 0:
        raise BadRequestError("there is no answer yet to learn from", 409)
    worker = Worker(("pairlens.studio.results:nothing",))
    target = TARGETS[name]
    future = worker.submit(f"pairlens.studio.results:{target}", known)
    future.add_done_callback(lambda done: worker.close())
    return future

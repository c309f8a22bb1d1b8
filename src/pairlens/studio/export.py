"""What leaves the studio: answers and the map as files that other programs read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pairlens._text import TableWriter
from pairlens.studio.replay import Answer
from pairlens.studio.review import verdicts

__all__ = ["ANSWER_COLUMNS", "answers_csv", "answers_jsonl", "table_csv"]

ANSWER_COLUMNS = ("a", "b", "kind", "answer", "annotator", "at")


def table_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV."""
    file = io.StringIO(newline="")
    writer = TableWriter(file)
    writer.row(header)
    writer.rows(rows)
    return file.getvalue()


def _lines(answers: Sequence[Answer], ids: Sequence[str]) -> Iterable[dict[str, Any]]:
    """One line for each comparison, in the form that ``pairlens fit --pairs`` reads."""
    by_id = {answer.id: answer for answer in answers}
    for name, i, j, verdict in verdicts(answers):
        answer = by_id[name]
        kind = "must-link" if verdict > 0 else "cannot-link"
        a, b = ids[i], ids[j]
        if answer.question["kind"] == "prefer":
            kind, (a, b) = "prefer", (a, b) if verdict > 0 else (b, a)
        yield {"a": a, "b": b, "kind": kind, "answer": answer.answer, "annotator": answer.annotator, "at": answer.at}


def answers_csv(answers: Sequence[Answer], ids: Sequence[str]) -> str:
    """The answers as CSV; of "can't tell" and "equally good" nothing follows, so they are in the JSON lines alone."""
    return table_csv(ANSWER_COLUMNS, ([line[name] for name in ANSWER_COLUMNS] for line in _lines(answers, ids)))


def answers_jsonl(answers: Sequence[Answer], ids: Sequence[str]) -> str:
    """The answers as JSON lines, ids exactly as in the table."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(answers, ids))


def map_csv(points: Any, groups: Sequence[dict[str, Any]], ids: Sequence[str]) -> str:
    """The places of all rows, with their groups where they have one."""
    where = {row: (group["shown"], group["name"]) for group in groups for row in group["rows"]}
    places = np.asarray(points).tolist()
    lines = ((ids[k], f"{x:.6g}", f"{y:.6g}", *where.get(k, ("", ""))) for k, (x, y) in enumerate(places))
    return table_csv(("id", "x", "y", "group", "name"), lines)

"""Simulated people, and small tables for them."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_blobs

from pairlens.asking import PreferenceAsker


def blobs(n=60, centers=3, seed=0, noise_columns=2):
    X, y = make_blobs(n, 4, centers=centers, cluster_std=1.5, random_state=seed)
    noise = np.random.default_rng(seed).standard_normal((n, noise_columns))
    return np.hstack([X, noise]), y


def uneven(sizes=(120, 33, 33), spread=(1.0, 4.0, 4.0), columns=79, apart=13, seed=0):
    """One large tight group and some wide ones, whose rows lie farther from each other than from the tight group."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centre = rng.standard_normal((len(sizes), columns))
    centre *= apart / np.linalg.norm(centre, axis=1, keepdims=True)
    return centre[y] + np.array(spread)[y, None] * rng.standard_normal((len(y), columns)), y


def true_answer(question, y):
    if question.kind == "prefer":
        a, b = (y[row] for row in question.rows)
        return "left" if a > b else "right" if a < b else "equal"
    same = [at for at, row in enumerate(question.rows[1:], start=1) if y[row] == y[question.rows[0]]]
    if question.kind == "place":
        return str(same[0]) if same else "none"
    return "same" if same else "different"


def answer_all(asker, y, count, annotator=None, wrong=0.0, seed=0):
    """Answer so many questions, some of them wrongly; returns the questions."""
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        question = asker.ask(annotator)
        if question is None:
            break
        asked.append(question)
        said = true_answer(question, y)
        if rng.random() < wrong:
            said = str(rng.choice([word for word in question.answers if word != said]))
        asker.tell(question, said)
    return asked


def listed(answers):
    """Return all comparisons (i, j, same)."""
    return list(zip(*(column.tolist() for column in answers.columns())))


def plain(asker):
    """Return what follows from the answers as plain values: equal logs have equal states."""
    state = asker._state
    if isinstance(asker, PreferenceAsker):
        return {
            "view": state.ranking.key,
            "votes": dict(sorted(state.votes.items())),
            "asked": sorted(state.asked),
            "skipped": sorted(state.skipped),
            "audits": list(state.audits),
            "kept": list(state.kept),
            "counts": (state.n_entries, state.refit_at),
        }
    groups = state.groups
    return {
        "groups": {number: list(groups.members[number]) for number in groups.numbers},
        "confidence": dict(sorted(groups.confidence.items())),
        "error": groups.error,
        "slots": dict(groups.slots),
        "n_founded": groups.n_founded,
        "answers": listed(state.answers),
        "votes": dict(sorted(state.evidence().items())),
        "trust": dict(groups.trust),
        "open": dict(state.open),
        "skipped": sorted(state.skipped),
        "asked": sorted(state.asked),
        "unsure": dict(sorted(state.unsure.items())),
        "questions_of": dict(sorted(state.questions_of.items())),
        "shown": dict(sorted(state.shown.items())),
        "again": sorted(state.again),
        "counts": (state.n_entries, state.n_questions, state.n_again, state.since_new, state.refit_at),
        "audits": list(state.audits),
        "kept": list(state.kept),
        "view": state.view_key,
    }

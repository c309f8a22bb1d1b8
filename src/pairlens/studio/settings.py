"""What a studio asks, and the asker that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from pairlens.asking import Asker, PreferenceAsker, Question
from pairlens.studio.replay import Answer

__all__ = ["Settings"]

LEASE_SECONDS = 600.0


@dataclass(frozen=True)
class Settings:
    """What a studio was started with, and keeps in its store.

    Attributes
    ----------
    question : {"same", "place", "prefer"}
        What is asked: two rows, a placement screen, or which of two rows is better.
    seed : int
        Which questions come.
    refit_every : int
        Answers after which the view is fitted again.
    audit, repeat : float
        Shares of the questions that are drawn at random, and that come back with sides swapped.
    """

    question: str = "same"
    seed: int = 0
    refit_every: int = 10
    audit: float = 0.15
    repeat: float = 0.03

    def asker(
        self, X: NDArray[Any], lens: Any, answers: Iterable[Answer], refused: Callable[[Answer, Exception], None]
    ) -> Any:
        """An asker that was told the answers to questions of its kind; its fits are done elsewhere.

        An answer that it does not take in is `refused`, and those after it count.
        """
        chosen: dict[str, Any] = {
            "fits": "elsewhere",
            "lens": lens,
            "refit_every": self.refit_every,
            "random_state": self.seed,
            "audit": self.audit,
            "repeat": self.repeat,
            "lease": LEASE_SECONDS,
        }
        ranking = self.question == "prefer"
        asker: Any
        if ranking:
            asker = PreferenceAsker(X, **chosen)
        else:
            asker = Asker(X, screen="placement" if self.question == "place" else "pair", **chosen)
        for answer in answers:
            question = Question.from_dict(answer.question)
            if (question.kind == "prefer") == ranking:
                try:
                    asker.tell(question, answer.answer)
                except Exception as error:  # whatever is in the store, there is a next question
                    refused(answer, error)
        return asker

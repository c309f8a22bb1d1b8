"""A file of what was answered and taken back, one event a line, from which a session goes on where it was."""

from __future__ import annotations

import json
import os
from os import PathLike
from pathlib import Path
from typing import Any

from pairlens.asking.asker import Asker
from pairlens.asking.prefer import PreferenceAsker
from pairlens.asking.questions import Question

FORMAT = "pairlens answers 1"


class Journal:
    """Events of a session in a file: answers, rows set aside, and what was taken back.

    Lines are only ever added, and each is on the disk before :meth:`tell` and its like return. A last line that was
    cut off by a crash is left out.

    Parameters
    ----------
    path : str or path
        A new file, or one of an earlier session.
    about : dict
        What the session is about: the seed, the table. An earlier file must have been about the same.

    Attributes
    ----------
    about : dict
        What the file says, with the keys that `about` did not have.
    n_events : int
        Number of events of the earlier session.
    """

    def __init__(self, path: str | PathLike[str], about: dict[str, Any]) -> None:
        self._path = Path(path)
        self._events: list[dict[str, Any]] = []
        self.about = dict(about)
        if self._path.exists():
            self._read(about)
        else:
            self._add({"format": FORMAT, **about})

    @property
    def n_events(self) -> int:
        """Number of events of the earlier session."""
        return len(self._events)

    def _read(self, about: dict[str, Any]) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            header, *events = (json.loads(line) for line in whole.decode().splitlines())
            is_one = header["format"] == FORMAT
        except (ValueError, KeyError, TypeError):
            is_one = False
        if not is_one:
            raise ValueError(
                f"{self._path.name} is not a journal of answers, or is damaged; move it away to start anew."
            )
        for key, value in about.items():
            if key in header and header[key] != value:
                raise ValueError(
                    f"{self._path.name} is about {key} {header[key]!r}, not {value!r}: go on as it was begun, or "
                    "choose another name to start anew."
                )
        if len(whole) < len(content):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        said = {key: value for event in events for key, value in event.get("about", {}).items()}
        self.about = {**header, **said, **about}
        self._events = [event for event in events if "about" not in event]

    def replay(self, asker: Asker | PreferenceAsker) -> None:
        """Tell a fresh asker all that happened."""
        for event in self._events:
            if "undo" in event:
                asker.undo(event["undo"])
            else:
                asker.tell(Question.from_dict(event["question"]), event["answer"])

    def tell(self, question: Question, answer: str) -> None:
        """Keep an answer."""
        self._add({"question": question.to_dict(), "answer": answer})

    def note(self, **about: Any) -> None:
        """Keep what the session is about from now on, where it differs from what the file says."""
        new = {key: value for key, value in about.items() if self.about.get(key) != value}
        if new:
            self._add({"about": new})
            self.about.update(new)

    def undo(self, annotator: str | None = None) -> None:
        """Keep that the last answer (of a person) was taken back."""
        self._add({"undo": annotator})

    def close(self) -> None:
        """Do nothing: every line is on the disk."""

    def _add(self, event: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

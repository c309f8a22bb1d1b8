"""A process that writes answers into a store until it is killed, or ends as if it were; it imports little."""

from __future__ import annotations

import os
import sys

from pairlens.studio import store as module
from pairlens.studio.store import Event, Store


def answered(number: int, answer: str = "same", annotator: str = "ann") -> Event:
    question = {"id": f"q{number}", "kind": "same", "rows": [number, number + 1], "answers": ["same", "different"]}
    return Event(f"e{number}", "answer", annotator, {"question": question, "answer": answer, "ids": ["x", "y"]})


def main(path: str, first: int, last: int, settled: int) -> None:
    """Write the answers from `first` to `last`, print each that is acknowledged, and end without closing the store.

    The first `settled` of them are in the file itself, the others in the log of SQLite alone; with a negative number
    there is always a checkpoint on the way.
    """
    module.SETTLE_SECONDS = 600 if settled >= 0 else 0.005
    store = Store(path)
    for count, number in enumerate(range(first, last)):
        if count == settled:
            store._settle()
        store.append(answered(number))
        print(number, flush=True)
    os._exit(9)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

"""``pairlens ask``: same or different? in a terminal, or with answers from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_table, progress, tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairlens.asking import Asker, PreferenceAsker, Question
    from pairlens.io.source import Table

WIDEST = 32
MOST_COLUMNS = 16
AUDIT = 0.15
FEWEST_TO_JUDGE = 20
"""Answers below which the share of wrong ones is what was assumed before the first."""
CLOSURE = "all pairs that follow from the answers, with weights"


class Ask(StrEnum):
    """The kinds of questions."""

    same = "same"
    place = "place"
    prefer = "prefer"


class Strategy(StrEnum):
    """The ways to choose questions."""

    place = "place"
    uncertain = "uncertain"
    random = "random"


ASKED = {
    "same": "Do these two belong together?  s same, d different",
    "place": "To which of the others does the first row belong?  its number, 0 none of them",
    "prefer": "Which one is better?  l left, r right, e equal",
}
MORE = "? not sure, x set aside, u undo, q quit"
WORDS = {
    "same": {"s": "same", "d": "different"},
    "place": {"0": "none"},
    "prefer": {"l": "left", "r": "right", "e": "equal"},
}
ALWAYS = {"?": "unsure", "x": "skip", "skip": "skip", "u": "undo", "undo": "undo", "q": "quit", "quit": "quit"}


def ask(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", help="File of answers: .csv, .tsv, .jsonl or .ndjson.")],
    id_column: options.IdColumn = None,
    question: Annotated[
        Ask, typer.Option("--question", help="same: two rows; place: a row and the groups; prefer: which is better.")
    ] = Ask.same,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            "--strategy",
            help="How questions are chosen; place by default, and uncertain for preferences.",
            show_default=False,
        ),
    ] = None,
    closure: Annotated[
        Path | None, typer.Option("--closure", help=f"Another file to write: {CLOSURE}.", show_default=False)
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", help="Another file to write: the group of every row, as CSV.", show_default=False),
    ] = None,
    questions: Annotated[
        int | None, typer.Option("--questions", min=1, help="Stop after this many answers.", show_default=False)
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option("--show", metavar="COLUMNS", help="Columns to show, comma-separated.", show_default=False),
    ] = None,
    drop: options.Drop = None,
    columns: options.Columns = None,
    embed: options.Embed = None,
    embed_model: options.EmbedModel = None,
    seed: options.Seed = 0,
) -> None:
    """Ask about rows, the most informative question first, and write the answers as pairlens fit --pairs reads them.

    Every answer is kept in a journal beside the file, so the same command goes on where it was stopped.
    """
    import numpy as np

    from pairlens.asking import Journal, fingerprint
    from pairlens.cli._work import Given, distinct_ids, embedding_beside

    if groups is not None and question is Ask.prefer:
        raise ValueError("--groups is about groups: there is none for --question prefer")
    path = _checked_journal(out, closure)
    given = Given(
        data,
        id_column=id_column,
        drop=options.as_list(drop),
        columns=columns,
        embed=options.as_list(embed),
        embed_model=embed_model,
    )
    table = given.table()
    names = np.arange(table.n_rows) if table.ids is None else distinct_ids(table.ids, str(table.id_column))
    rows = _Rows(data, table, names, options.as_list(show), given.drop)
    with progress("looking at the rows") as update, embedding_beside(data, update):
        prepared, X, _ = given.preparation(table)
        about = {"table": fingerprint(X, names.astype(str)), "question": question.value}
        journal = Journal(path, about if path.exists() else {**about, "seed": seed})
        asker = _asker(X, question, strategy, journal.about["seed"], standardize=prepared.standardize)
        journal.replay(asker)
    if asker.log:
        tell(f"{path.name}: {_count(len(asker.log))} so far")
    _converse(asker, journal, rows, questions, lambda: _write(out, _bare(asker), names))
    tell(f"wrote {out}: {_count(_write(out, _bare(asker), names))}")
    if closure is not None:
        from pairlens.asking import Asker

        if not isinstance(asker, Asker):
            raise ValueError("--closure is about groups: there is none for --question prefer")
        _write(closure, asker.constraints(), names)
        tell(f"wrote {closure}: {CLOSURE}")
    if groups is not None:
        asker.assigned_rows().write(groups, names)  # type: ignore[union-attr]
        tell(f"wrote {groups}: the group of every row")
    _say_how_it_goes(asker)


def _checked_journal(out: Path, closure: Path | None) -> Path:
    """Return the journal beside the file of answers, if both files can be written."""
    from pairlens.supervision.answers import file_format

    for path in (out, closure):
        if path is not None:
            file_format(path)
            if not path.parent.is_dir():
                raise ValueError(f"{path.parent} is not a folder, so {path.name} cannot be written there")
    if closure is not None and closure.resolve() == out.resolve():
        raise ValueError(f"--closure and --out are both {out}: give two names")
    journal = out.with_suffix(".journal.jsonl")
    if out.exists() and not journal.exists():
        raise ValueError(f"{out} exists already, with no {journal.name} beside it to go on from: choose another name")
    return journal


def _asker(
    X: Any, question: Ask, strategy: Strategy | None, seed: int, *, standardize: bool
) -> Asker | PreferenceAsker:
    from pairlens.asking import Asker, PreferenceAsker

    chosen: Any = strategy and strategy.value
    if question is Ask.prefer:
        if strategy is Strategy.place:
            raise ValueError("--strategy place is about groups: for --question prefer give uncertain or random")
        return PreferenceAsker(
            X, standardize=standardize, strategy=chosen or "uncertain", random_state=seed, audit=AUDIT
        )
    screen: Any = "placement" if question is Ask.place else "pair"
    return Asker(X, standardize=standardize, strategy=chosen or "place", screen=screen, random_state=seed, audit=AUDIT)


def _converse(asker: Any, journal: Any, rows: _Rows, limit: int | None, keep: Any) -> None:
    """Ask and take answers until somebody quits, the input ends or nothing is left."""
    told = 0
    while limit is None or told < limit:
        question = asker.ask()
        if question is None:
            tell("Nothing is left to ask.")
            return
        rows.print(question, len(asker.log) + 1)
        answer = _read_answer(question)
        if answer == "quit":
            return
        if answer == "undo":
            asker.release(question)
            entry = asker.undo()
            if entry is None:
                tell("There is nothing to undo.")
                continue
            journal.undo()
            told -= 1
            tell(f"Took back {entry.answer!r}.")
        elif answer == "skip":
            asker.skip(question.rows[0])
            journal.tell(*asker.log[-1])
            told += 1
        else:
            # First into the journal: what was answered is never lost.
            journal.tell(question, answer)
            asker.tell(question, answer)
            told += 1
        keep()


def _read_answer(question: Question) -> str:
    """Read until a word means something; the end of the input quits."""
    words = {**{word: word for word in question.answers}, **WORDS[question.kind], **ALWAYS}
    while True:
        if sys.stdin.isatty():
            typer.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return "quit"
        word = line.strip().lower()
        if word in words:
            return words[word]
        if word or sys.stdin.isatty():
            tell(f"{word!r} is no answer. {ASKED[question.kind]}; {MORE}")


class _Rows:
    """The rows of a table as people see them: side by side, differing cells marked."""

    def __init__(self, data: Path, table: Table, names: NDArray[Any], show: list[str], drop: Sequence[str]) -> None:
        from pairlens.io.columns import check_column
        from pairlens.io.source import column_names, read_columns

        self._names = names
        self._columns: dict[str, Any]
        if table.is_frame:
            columns = column_names(data)
            for name in show:
                check_column(name, columns, data.name)
            # The ids stand above the columns.
            shown = show or [name for name in columns if name not in (*drop, table.id_column)][:MOST_COLUMNS]
            self._columns = read_columns(data, shown)
        else:
            for name in show:
                check_column(name, table.features, data.name)
            used = show or table.features[:MOST_COLUMNS]
            self._columns = {name: table.rows[:, table.features.index(name)] for name in used}

    def print(self, question: Question, number: int) -> None:
        """Show a question."""
        tell(f"\n{number}. {ASKED[question.kind]}; {MORE}")
        heads = ["", *(str(self._names[row]) for row in question.rows)]
        if question.kind == "place":
            heads = ["", heads[1], *(f"[{at}] {name}" for at, name in enumerate(heads[2:], start=1))]
        lines = []
        for name, values in self._columns.items():
            cells = ["" if values[row] is None else str(values[row]) for row in question.rows]
            mark = "* " if question.kind != "place" and len(set(cells)) > 1 else "  "
            lines.append([mark + _short(name), *map(_short, cells)])
        print_table([_short(head) for head in heads], lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def _bare(asker: Asker | PreferenceAsker) -> Any:
    """Return the answers themselves: where a pair was answered both ways, what was answered more often."""
    from pairlens.asking import Asker
    from pairlens.supervision import Constraints

    if not isinstance(asker, Asker):
        return asker.preferences()
    votes: dict[tuple[int, int], int] = {}
    for question, answer in asker.log:
        for i, j, verdict in question.verdicts(answer):
            votes[i, j] = votes.get((i, j), 0) + verdict
    must = [pair for pair, vote in votes.items() if vote > 0]
    cannot = [pair for pair, vote in votes.items() if vote < 0]
    return Constraints(must, cannot, n_samples=asker.n_rows, on_conflict="warn")


def _write(path: Path, known: Any, names: NDArray[Any]) -> int:
    """Write pairs by the names of their rows; returns how many."""
    from pairlens.supervision.answers import write_answers
    from pairlens.supervision.combined import listed_answers

    pairs, kind, weight = listed_answers(known)
    write_answers(path, names[pairs[:, 0]], names[pairs[:, 1]], kind, weight)
    return len(pairs)


def _count(number: int) -> str:
    return f"{number:,} answer{'' if number == 1 else 's'}"


def _say_how_it_goes(asker: Asker | PreferenceAsker) -> None:
    from pairlens.asking import Asker

    curve = asker.learning_curve()
    if curve:
        last = curve[-1]
        tell(f"On {last.n} questions drawn at random: {last.auc:.2f}, between {last.low:.2f} and {last.high:.2f}.")
    if isinstance(asker, Asker) and asker.log:
        n_groups = len(asker.groups_)
        wrong = (
            f"; about {asker.error_rate_:.0%} of the answers look wrong" if len(asker.log) >= FEWEST_TO_JUDGE else ""
        )
        tell(f"{n_groups} group{'' if n_groups == 1 else 's'}{wrong}.")
        hint = asker.stopping_hint()
        if hint.stop:
            tell(f"More answers would change little. {hint.cost}")

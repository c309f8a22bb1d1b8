"""``pairlens ask``: same or different? in a terminal, with answers from a pipe, or by a machine."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens._text import count
from pairlens.cli import _options as options
from pairlens.cli._console import plain, print_table, progress, tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairlens.asking import Annotator, Asker, PreferenceAsker, Question
    from pairlens.io.source import Table
    from pairlens.studio.rows import Rows

WIDEST = 32
MOST_COLUMNS = 16
AUDIT = 0.15
OVERLAP = 0.1
MACHINE_QUESTIONS = 200
"""Questions that a machine is asked if nothing says how many."""
PERSON = "me"
"""Who answers in a terminal."""
FEWEST_TO_JUDGE = 20
"""Answers below which the share of wrong ones is what was assumed before the first."""
CLOSURE = "all pairs that follow from the answers, with weights"


Ask = StrEnum("Ask", "same place prefer")
"""The kinds of questions."""


Strategy = StrEnum("Strategy", "place uncertain random")
"""The ways to choose questions."""


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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File of answers: .csv, .tsv, .jsonl or .ndjson. Without it they go where pairlens studio keeps them.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="File of the studio that keeps the answers; by default DATA.answers.db beside the table."
        ),
    ] = None,
    id_column: options.IdColumn = None,
    question: Annotated[
        Ask, typer.Option("--question", help="same: two rows; place: a row and the groups; prefer: which is better.")
    ] = Ask.same,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="How questions are chosen; place by default, and uncertain for preferences."),
    ] = None,
    closure: Annotated[Path | None, typer.Option("--closure", help=f"Another file to write: {CLOSURE}.")] = None,
    groups: Annotated[
        Path | None, typer.Option("--groups", help="Another file to write: the group of every row, as CSV.")
    ] = None,
    about: options.About = None,
    questions: Annotated[int | None, typer.Option("--questions", min=1, help="Stop after this many answers.")] = None,
    show: Annotated[
        list[str] | None, typer.Option("--show", metavar="COLUMNS", help="Columns to show, comma-separated.")
    ] = None,
    drop: options.Drop = None,
    columns: options.Columns = None,
    embed: options.Embed = None,
    embed_model: options.EmbedModel = None,
    seed: options.Seed = 0,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="ADDRESS|COMMAND",
            help="Who answers in place of a person: an address compatible with OpenAI's, such as "
            "http://127.0.0.1:8000/v1, or a command that reads and writes lines of JSON.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the model at the address.")] = None,
    instruction: Annotated[
        str,
        typer.Option(
            "--instruction", metavar="TEXT", help='What belonging together means, such as "same kind of complaint?".'
        ),
    ] = "",
    key_variable: Annotated[
        str | None,
        typer.Option(
            "--key-variable",
            metavar="NAME",
            help="Environment variable with the key of the address; PAIRLENS_API_KEY by default.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that a machine has for an answer.")
    ] = 60.0,
    audit: Annotated[
        float | None,
        typer.Option(
            "--audit", min=0, max=0.99, help="Share of a machine's answers that a person is asked too; 0.1 by default."
        ),
    ] = None,
    repeat: Annotated[
        float,
        typer.Option("--repeat", min=0, max=0.99, help="Share of a machine's questions asked twice, sides swapped."),
    ] = 0.05,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, help="Most that a machine may cost in this run.")
    ] = None,
    price_in: Annotated[
        float, typer.Option("--price-in", min=0, help="Price of 1,000 tokens that the machine reads.")
    ] = 0.0,
    price_out: Annotated[
        float, typer.Option("--price-out", min=0, help="Price of 1,000 tokens that the machine writes.")
    ] = 0.0,
) -> None:
    """Ask about rows, the most informative question first, and write the answers as pairlens fit --pairs reads them.

    Every answer is kept in a store, beside the file if --out names one, so the same command goes on where it was
    stopped. With --by a machine answers; the same command without --by, or pairlens studio, asks a person a share of
    the same questions. Nothing leaves this machine, unless --by names an address.
    """
    import numpy as np
    from scipy import sparse

    from pairlens.asking import Asker, annotator_at
    from pairlens.cli._work import Given, distinct_ids, embedding_beside
    from pairlens.studio.rows import rows_from_array, rows_from_file

    for name, asks_groups in (("--groups", groups), ("--closure", closure), ("--strategy place", strategy == "place")):
        if asks_groups and question is Ask.prefer:
            raise ValueError(f"{name} is about groups: there is none for --question prefer")
    if about is not None and groups is None:
        raise ValueError("--about is a guess at the number of groups: give --groups too")
    if out is not None and store is not None:
        raise ValueError("--out and --store are two places for the answers: give one of them")
    for name, given_alone in (("--model", model), ("--instruction", instruction), ("--budget", budget)):
        if by is None and given_alone not in (None, ""):
            raise ValueError(f"{name} is about a machine, and there is no --by that names one")
    settings: dict[str, Any] = {"model": model, "instruction": instruction, "timeout": timeout}
    if key_variable is not None:
        settings["key_variable"] = key_variable
    machine = None if by is None else annotator_at(by, **settings)
    path = _checked_files(out, closure)
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
    rows = _ShownRows(data, table, names, options.as_list(show), given.drop)
    with progress("looking at the rows") as update, embedding_beside(data, update):
        if path is None:
            if columns is not None:
                raise ValueError("--columns does not go with the answers of a studio: give --out")
            path = store or data.with_name(f"{data.stem}.answers.db")
            known = rows_from_file(data, ids=id_column, drop=given.drop, show=options.as_list(show), embed=given.models)
            answers = _Log(path, known)
            X, standardize = known.X, known.prepared.standardize
        else:
            prepared, X, features = given.preparation(table)
            dense = X.toarray() if sparse.issparse(X) else X
            known = rows_from_array(dense, ids=table.ids, feature_names=features, source=table.source)
            known.id_column = id_column
            answers = _Log(path, known, question=question.value, seed=seed)
            standardize = prepared.standardize
        if audit is not None:
            answers.note(overlap=audit)
        overlap, seed = answers.about.get("overlap", OVERLAP), answers.about["seed"]
        asker = _asker(X, question, strategy, about, seed, standardize, overlap, repeat if machine else 0.0)
        answers.replay(asker)
    if asker.log:
        tell(f"{path.name}: {count(len(asker.log), 'answer')} so far")

    def keep() -> int:
        if out is None:
            return 0
        return _write(out, asker.answered() if isinstance(asker, Asker) else asker.preferences(), names)

    try:
        if machine is None:
            _converse(asker, answers, rows, questions, keep)
        else:
            limit = MACHINE_QUESTIONS if questions is None and budget is None else questions
            limits = {"questions": limit, "budget": budget, "price_in": price_in, "price_out": price_out}
            _let_answer(machine, asker, rows, keep=answers.tell, **limits)
    finally:
        written = keep()
        answers.close()
        told = count(len(asker.log), "answer")
        if out is not None and written != len(asker.log):
            told = f"{count(written, 'preference' if question is Ask.prefer else 'pair')} from {told}"
        tell(f"{path if out is None else f'wrote {out}'}: {told}")
    if due := len(asker.audits_due()):
        again = "the same command without --by" if out is not None else f"pairlens studio {data}"
        tell(f"{count(due, 'answer')} of the machine wait for a person: {again} asks the same questions.")
    if isinstance(asker, Asker) and closure is not None:
        _write(closure, asker.constraints(), names)
        tell(f"wrote {closure}: {CLOSURE}")
    if isinstance(asker, Asker) and groups is not None:
        asker.assigned_rows().write(groups, names)
        tell(f"wrote {groups}: the group of every row")
    _say_how_it_goes(asker)


class _Log:
    """The store of a studio, or one beside a file of answers to one kind of `question`."""

    def __init__(self, path: Path, rows: Rows, **first: Any) -> None:
        from pairlens.studio.replay import History
        from pairlens.studio.run import OtherTableError, open_store

        try:
            self.rows, self._store = rows, open_store(path, rows)
        except OtherTableError as error:
            raise ValueError(f"{error.reason}. Go on with that table, or choose another name") from None
        if not any(self._store.events()):
            self._store.set_meta(first)
        self.about = self._store.meta()
        asked, asks = self.about.get("question"), first.get("question")
        if asked != asks:
            self.close()
            raise ValueError(f"{path.name} is about question {asked!r}, not {asks!r}: choose another name")
        self._history = History.of(self._store.events()).about(rows.ids)

    def replay(self, asker: Any) -> None:
        """Tell a fresh asker all answers of its kind."""
        from pairlens.studio.replay import retell

        retell(asker, list(self._history.answers.values()), self._history.leave_out)
        if left_out := self._history.told():
            tell(f"pairlens: warning: {left_out}", err=True)

    def note(self, **about: Any) -> None:
        """Keep what the session is about from now on."""
        self._store.set_meta(about)
        self.about.update(about)

    def tell(self, question: Question, answer: str) -> None:
        """Keep an answer."""
        ids = [self.rows.ids[row] for row in question.rows]
        self._add("answer", question.annotator, {"question": question.to_dict(), "answer": answer, "ids": ids})

    def undo(self, question: Question) -> None:
        """Keep that the answer to a question was taken back."""
        last = self._history.last_of(PERSON, [question.id])
        assert last is not None
        self._add("undo", PERSON, {"target": last.id})

    def _add(self, kind: str, annotator: str | None, body: dict[str, Any]) -> None:
        from pairlens.studio.store import Event

        stored, _ = self._store.append(Event(secrets.token_hex(8), kind, annotator or PERSON, body))
        self._history.apply(stored)

    def close(self) -> None:
        """Close the file."""
        self._store.close()


def _let_answer(machine: Annotator, asker: Any, rows: _ShownRows, **settings: Any) -> None:
    """Let a machine answer, with the settings of :func:`~pairlens.asking.annotate`, and say what came of it."""
    from pairlens.asking import annotate

    with progress(f"{machine.name} answers"), machine:
        done = annotate(asker, machine, rows, **settings)
    words = [f"{machine.name}: {count(done.answers, 'answer')}"]
    if done.unusable:
        words.append(f"{done.unusable} of them count as unsure, as the reply was none of the answers")
    if settings["price_in"] or settings["price_out"]:
        words.append(f"cost {done.cost:.4g}{' (estimated)' if done.estimated else ''}")
    if done.ended != "questions":
        words.append({"budget": "the budget is spent", "nothing left": "nothing is left to ask"}[done.ended])
    tell("; ".join(words))


def _checked_files(out: Path | None, closure: Path | None) -> Path | None:
    """Return the store beside the file of answers, if both files can be written; None if there is no such file."""
    from pairlens.supervision.answers import file_format

    for path in (out, closure):
        if path is not None:
            file_format(path)
            if not path.parent.is_dir():
                raise ValueError(f"{path.parent} is not a folder, so {path.name} cannot be written there")
    if out is None:
        return None
    if closure is not None and closure.resolve() == out.resolve():
        raise ValueError(f"--closure and --out are both {out}: give two names")
    store = out.with_suffix(".store.db")
    if out.exists() and not store.exists():
        raise ValueError(f"{out} exists already, with no {store.name} beside it to go on from: choose another name")
    return store


def _asker(
    X: Any,
    question: Ask,
    strategy: Strategy | None,
    about: int | None,
    seed: int,
    standardize: bool,
    overlap: float,
    repeat: float,
) -> Asker | PreferenceAsker:
    from pairlens.asking import Asker, PreferenceAsker

    chosen: Any = strategy and strategy.value
    more: dict[str, Any] = {"random_state": seed, "audit": AUDIT, "overlap": overlap, "repeat": repeat}
    if question is Ask.prefer:
        return PreferenceAsker(X, standardize=standardize, strategy=chosen or "uncertain", **more)
    screen: Any = "placement" if question is Ask.place else "pair"
    return Asker(X, about=about, standardize=standardize, strategy=chosen or "place", screen=screen, **more)


def _converse(asker: Any, answers: _Log, rows: _ShownRows, limit: int | None, keep: Callable[[], object]) -> None:
    """Ask and take answers until somebody quits, the input ends or nothing is left."""
    told = 0
    while limit is None or told < limit:
        question = asker.ask(PERSON)
        if question is None:
            tell("Nothing is left to ask.")
            return
        rows.print(question, len(asker.log) + 1)
        answer = _read_answer(question)
        if answer == "quit":
            return
        if answer == "undo":
            asker.release(question)
            entry = asker.undo(PERSON)
            if entry is None:
                tell("There is nothing to undo.")
                continue
            answers.undo(entry.question)
            told -= 1
            tell(f"Took back {entry.answer!r}.")
        elif answer == "skip":
            asker.skip(question.rows[0], PERSON)
            answers.tell(*asker.log[-1])
            told += 1
        else:
            # First into the store: what was answered is never lost.
            answers.tell(question, answer)
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
            tell(f"{word!r} is not an answer. {ASKED[question.kind]}; {MORE}")


class _ShownRows(Sequence[Any]):
    """The rows of a table as people see them, side by side, unusual differences marked; and as machines do."""

    def __init__(self, data: Path, table: Table, names: NDArray[Any], show: list[str], drop: Sequence[str]) -> None:
        from pairlens.io.columns import check_column
        from pairlens.io.source import column_names, read_columns
        from pairlens.studio.rows import usual_differences

        self._names = names
        columns = column_names(data) if table.is_frame else table.features
        for name in show:
            check_column(name, columns, data.name)
        # The ids stand above the columns.
        shown = show or [name for name in columns if name not in (*drop, table.id_column)][:MOST_COLUMNS]
        if table.is_frame:
            self._columns: dict[str, Any] = read_columns(data, shown)
        else:
            self._columns = {name: table.rows[:, table.features.index(name)] for name in shown}
        self._usual = usual_differences(self._columns, len(names))

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, row: Any) -> Any:
        """Return the cells of a row by the names of their columns."""
        return {name: plain(values[row]) for name, values in self._columns.items()}

    def print(self, question: Question, number: int) -> None:
        """Show a question."""
        from pairlens.studio.rows import differ_unusually

        tell(f"\n{number}. {ASKED[question.kind]}; {MORE}")
        heads = ["", *(str(self._names[row]) for row in question.rows)]
        if question.kind == "place":
            heads = ["", heads[1], *(f"[{at}] {name}" for at, name in enumerate(heads[2:], start=1))]
        lines = []
        for name, values in self._columns.items():
            cells = [values[row] for row in question.rows]
            marked = question.kind != "place" and differ_unusually(cells, self._usual[name])
            shown = ("" if cell is None else _short(str(cell)) for cell in cells)
            lines.append([("* " if marked else "  ") + _short(name), *shown])
        print_table([_short(head) for head in heads], lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def _write(path: Path, known: Any, names: NDArray[Any]) -> int:
    """Write pairs by the names of their rows; returns how many."""
    from pairlens.supervision.answers import write_answers
    from pairlens.supervision.combined import listed_answers

    pairs, kind, weight = listed_answers(known)
    write_answers(path, names[pairs[:, 0]], names[pairs[:, 1]], kind, weight)
    return len(pairs)


def _say_how_it_goes(asker: Asker | PreferenceAsker) -> None:
    from pairlens.asking import Asker

    for name, found in asker.error_rates().items():
        tell(
            f"{name} is wrong in about {found.rate:.0%} of its answers, between {found.low:.0%} and {found.high:.0%}: "
            f"{found.wrong} of {found.audits} audits disagree, {found.inconsistent} of {found.repeats} repeats."
        )
        if isinstance(asker, Asker) and name in asker.ignored_machines_:
            tell(f"The answers of {name} are left out: they tell nothing beyond the distances between the rows.")
    curve = asker.learning_curve()
    if curve:
        last = curve[-1]
        tell(f"On {last.n} questions drawn at random: {last.auc:.2f}, between {last.low:.2f} and {last.high:.2f}.")
    if isinstance(asker, Asker) and asker.log:
        wrong = (
            f"; about {asker.error_rate_:.0%} of the answers look wrong" if len(asker.log) >= FEWEST_TO_JUDGE else ""
        )
        tell(f"{count(len(asker.groups_), 'group')}{wrong}.")
        hint = asker.stopping_hint()
        if hint.stop:
            tell(f"More answers would change little. {hint.cost}")

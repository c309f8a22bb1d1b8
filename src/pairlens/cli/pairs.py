"""``pairlens pairs``: draw pairs from labels, find contradictions, convert files, judge pairs by a model."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import plain, print_json, tell
from pairlens.cli.models import predict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairlens.supervision import Constraints

SHOWN = 20
DEFAULT_PAIRS = 60

app = typer.Typer(
    help="Draw pairs from labels, find contradictions, convert files, judge pairs by a model.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)

PairsFile = Annotated[Path, typer.Argument(help="A file of pairs.", metavar="PAIRS")]
DataOption = Annotated[Path | None, typer.Option("--data", help="The table the pairs are about.")]


Naming = StrEnum("Naming", "ids rows")
"""The ways to name rows in a file of pairs."""


@app.command("sample")
def sample(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .tsv, .jsonl or .ndjson.")],
    labels: Annotated[
        str | None, typer.Option("--labels", help="Column of classes: draws must-links and cannot-links.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", help="Column of scores, the higher the better: draws preferences.")
    ] = None,
    id_column: options.IdColumn = None,
    n_pairs: Annotated[
        int | None,
        typer.Option(
            "--n-pairs", min=1, help=f"Number of pairs to draw, half of them must-links; {DEFAULT_PAIRS} by default."
        ),
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option("--per-class", min=1, help="Number of must-links, and of cannot-links, to draw for every class."),
    ] = None,
    fraction: Annotated[
        float | None, typer.Option("--fraction", help="Draw this share of all pairs of labelled rows.")
    ] = None,
    flip: Annotated[float, typer.Option("--flip", help="Share of the answers to make wrong.")] = 0.0,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Draw answered pairs from a column of labels or scores, by the protocols of the papers."""
    import numpy as np

    from pairlens.cli._work import check_new, distinct_ids
    from pairlens.io.columns import label_values
    from pairlens.io.source import read_columns
    from pairlens.supervision import Constraints, Preferences
    from pairlens.supervision.answers import ANSWER_KINDS, file_format, write_answers
    from pairlens.supervision.combined import listed_answers

    if (labels is None) == (scores is None):
        raise ValueError("give --labels for must-links and cannot-links, or --scores for preferences")
    if not 0 <= flip <= 1:
        raise ValueError(f"--flip must lie between 0 and 1, got {flip}")
    file_format(out)
    check_new(out, overwrite)
    column = labels if labels is not None else scores
    assert column is not None
    columns = read_columns(data, [column, *([] if id_column is None else [id_column])])
    values = label_values(columns[column])
    counts = {"n_pairs": n_pairs, "per_class": per_class, "fraction": fraction}
    given: dict[str, Any] = {name: count for name, count in counts.items() if count is not None} or {
        "n_pairs": DEFAULT_PAIRS
    }
    if labels is not None:
        draw = _balanced if set(given) == {"n_pairs"} else Constraints.from_labels
        drawn = draw(values, random_state=seed, **given)
        # Wrong answers contradict right ones: that is what was asked for.
        with warnings.catch_warnings(action="ignore"):
            drawn = drawn.sample(drawn.n_pairs).flip(flip, random_state=seed)
        pairs, kind, _ = listed_answers(drawn)
    else:
        if set(given) != {"n_pairs"}:
            raise ValueError("preferences are drawn by --n-pairs only")
        numbers = np.array([_number(value, column) for value in values.tolist()])
        preferred = Preferences.from_scores(numbers, random_state=seed, **given).flip(flip, random_state=seed)
        pairs, kind, _ = listed_answers(preferred)
    # In the order drawn, all of one kind would come first, and people stop in the middle.
    order = np.random.default_rng(seed).permutation(len(pairs))
    pairs, kind = pairs[order], kind[order]
    names = np.arange(len(values)) if id_column is None else distinct_ids(columns[id_column], id_column)
    write_answers(out, names[pairs[:, 0]], names[pairs[:, 1]], kind)
    found = {name: int((kind == name).sum()) for name in ANSWER_KINDS if (kind == name).any()}
    if as_json:
        print_json({"out": str(out), "pairs": found, "seed": seed})
    else:
        tell(f"wrote {out}: {', '.join(f'{count} {name}' for name, count in found.items())}")


def _balanced(values: NDArray[Any], n_pairs: int, random_state: int) -> Constraints:
    """Draw half must-links and half cannot-links, evenly from all classes; more of one kind if the other is rare."""
    import numpy as np

    from pairlens.supervision import Constraints

    drawn = Constraints.from_labels(values, per_class=n_pairs, random_state=random_state)
    n_must = min(drawn.n_must_link, max(n_pairs // 2, n_pairs - drawn.n_cannot_link))
    if n_must + drawn.n_cannot_link < n_pairs:
        return Constraints.from_labels(values, n_pairs=n_pairs, random_state=random_state)
    rng = np.random.default_rng(random_state)
    counts = (drawn.n_must_link, n_must), (drawn.n_cannot_link, n_pairs - n_must)
    return drawn.where(*(rng.permutation(total) < wanted for total, wanted in counts))


def _number(value: Any, column: str) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"the column {column!r} must hold numbers to be scores, but holds {value!r}") from None


@app.command("check")
def check(
    pairs: PairsFile,
    data: DataOption = None,
    id_column: options.IdColumn = None,
    labels: Annotated[
        str | None, typer.Option("--labels", help="Column of labels to check the pairs against; needs --data.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find answers that contradict each other, with the chain of must-links or the circle of preferences behind it.

    Ends with exit code 1 if there are any.
    """
    import numpy as np

    from pairlens.cli._work import describe_pairs
    from pairlens.exceptions import ConflictWarning
    from pairlens.io.columns import label_values
    from pairlens.supervision import Constraints
    from pairlens.supervision.answers import ANSWER_KINDS, AnswerFile
    from pairlens.supervision.combined import answers_of

    if data is None and (id_column is not None or labels is not None):
        raise ValueError("--id and --labels are columns of a table: give it by --data")
    file = AnswerFile.read(pairs)
    columns: dict[str, NDArray[Any]] = {}
    if data is None:
        names, n_rows = file.names, len(file.names)
    else:
        columns, n_rows = _columns(data, id_column, labels)
        names = np.arange(n_rows) if id_column is None else columns[id_column]
    with warnings.catch_warnings(action="ignore", category=ConflictWarning):
        ids = names if data is None or id_column is not None else None
        answers = answers_of(file, ids, n_rows, "warn")
        known = answers.constraints
        if labels is not None:
            known = Constraints.from_labels(label_values(columns[labels])).merge(known, on_conflict="warn")
    conflicts = known.conflicts()
    cycles = answers.preferences.cycles()
    result: dict[str, Any] = {
        "file": pairs.name,
        "lines": {kind.replace("-", "_"): int((file.kind == kind).sum()) for kind in ANSWER_KINDS},
        "rows": int(n_rows),
        "conflicts": [
            {
                "pair": [plain(names[row]) for row in conflict.pair],
                "chain": [plain(names[row]) for row in conflict.chain],
                "direct": conflict.direct,
            }
            for conflict in conflicts[: len(conflicts) if as_json else SHOWN]
        ],
        "cycles": [[plain(names[row]) for row in cycle] for cycle in cycles],
    }
    count = len(conflicts) + len(cycles)
    if as_json:
        print_json(result)
    else:
        tell(f"{pairs.name}: {describe_pairs(result['lines'])} over {result['rows']:,} rows")
        for conflict in result["conflicts"]:
            a, b = conflict["pair"]
            if conflict["direct"]:
                tell(f"conflict: {a} and {b} are must-linked and cannot-linked")
            else:
                tell(f"conflict: {a} and {b} are cannot-linked, but {' = '.join(map(str, conflict['chain']))}")
        if len(conflicts) > SHOWN:
            tell(f"and {len(conflicts) - SHOWN:,} more; --json shows all")
        for cycle in result["cycles"][:SHOWN]:
            tell(f"conflict: {' > '.join(map(str, [*cycle, cycle[0]]))} go round in a circle")
        if len(cycles) > SHOWN:
            tell(f"and {len(cycles) - SHOWN:,} more; --json shows all")
        tell(f"{count:,} conflict{'' if count == 1 else 's'}" if count else "no conflicts")
    if count:
        raise typer.Exit(1)


def _columns(data: Path, id_column: str | None, labels: str | None) -> tuple[dict[str, NDArray[Any]], int]:
    from pairlens.io.source import Source, read_columns

    asked = [name for name in (id_column, labels) if name is not None]
    if not asked:
        return {}, Source(data).read(least_rows=0).n_rows
    columns = read_columns(data, asked)
    return columns, len(columns[asked[0]])


@app.command("convert")
def convert(
    pairs: PairsFile,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .tsv, .jsonl or .ndjson.")],
    data: DataOption = None,
    id_column: options.IdColumn = None,
    to: Annotated[
        Naming | None, typer.Option("--to", help="Name rows by ids or by row numbers from 0; needs --data and --id.")
    ] = None,
    splink: Annotated[
        bool,
        typer.Option("--splink", help="Write a label table of Splink: unique_id_l, unique_id_r, clerical_match_score."),
    ] = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Convert a file of pairs: CSV to JSON lines and back, ids to row numbers and back, label tables of Splink."""
    from pairlens.cli._work import check_new, distinct_ids
    from pairlens.supervision.answers import AnswerFile, file_format, write_answers

    file_format(out)
    check_new(out, overwrite)
    file = AnswerFile.read(pairs)
    a, b = file.ends
    if to is not None:
        if data is None or id_column is None:
            raise ValueError("--to needs the table and its column of ids: give --data and --id")
        columns, n_rows = _columns(data, id_column, None)
        ids = distinct_ids(columns[id_column], id_column)
        rows, _ = file.rows(ids if to is Naming.rows else None, n_rows)
        a, b = rows.T if to is Naming.rows else (ids[rows[:, 0]], ids[rows[:, 1]])
    write_answers(out, a, b, file.kind, file.weight, splink=splink)
    if as_json:
        print_json({"out": str(out), "lines": len(file.kind)})
    else:
        tell(f"wrote {out}: {len(file.kind)} pairs")


app.command("predict")(predict)

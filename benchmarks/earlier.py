"""This version of the lenses and the map beside an earlier one, on sets that were not used to develop either.

    python -m benchmarks.earlier --library <checkout of the earlier version>/src   # 20 minutes of one core
    python -m benchmarks.earlier --page     # docs/notions.md from what is stored

The sets are those of the league of maps that are not in the league of notions, and seven notions that are not the
dominant structure: letters that the league does not have, the island of penguins, odd and even digits. One draw:
at most 300 rows to fit and 200 to test, 30, 60 and 200 pairs, half of them must-links, and the same 200 with a tenth of
each kind wrong. Both versions get the same rows and pairs, as they are, and fit in processes of their own. The scores
are those of the league of notions, by the same code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs" / "earlier.json"
PAGE = ROOT / "docs" / "notions.md"
BEGIN = "<!-- generated: benchmarks.earlier -->"
ORDINARY = (
    *("climate", "hepatitis", "isolet5", "kddcup99_subset", "krvskp", "labor", "letter_abcd", "mfeat_fac", "mfeat_fou"),
    *("mfeat_kar", "mfeat_mor", "monks2", "monks3", "glioma", "hill_valley_noise", "nci9", "coil20_32x32"),
)
PARITY = ("pendigits", "mfeat_fac", "usps")
WEIGHTS = ("bold", "italic", "serif")
METHODS = ("PairMap", *(f"{name}({d})" for name in ("PairLens", "LinearPairLens") for d in ("2", "5", "k-1")))
SCORES = {"ari": "ARI", "nn5": "5-NN", "auc": "AUC"}
MOST_ROWS, SEED = 500, 77
Cases = Iterator[tuple[str, Any, Any]]


def cases() -> Cases:
    """Return the name, the rows and the groups of each case."""
    from pairlens.datasets import load_penguins, make_glyphs
    from reproduction import datasets

    for name in ORDINARY:
        found = datasets.load(name, download=False)
        yield name, found.X, found.y
    glyphs = make_glyphs(5, letters="CGKMSZ", random_state=7)
    for notion in WEIGHTS:
        yield f"glyphs2:{notion}", glyphs.data, glyphs[notion]
    penguins = load_penguins()
    yield "penguins:island", penguins.data, penguins.island
    for name in PARITY:
        found = datasets.load(name, download=False)
        yield f"{name}:parity", found.X, np.unique(found.y, return_inverse=True)[1] % 2


def prepare(folder: Path) -> None:
    """Write the rows, groups, splits and pairs of each case to a file."""
    from sklearn.model_selection import train_test_split

    from benchmarks.league import drawn_rows
    from benchmarks.notions import SETTINGS, answers

    for name, X, y in cases():
        X = np.asarray(X, dtype=np.float64)
        known = ~np.isnan(X).any(axis=1)
        if known.mean() > 0.7:
            X, y = X[known], np.asarray(y)[known]
        else:
            X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        rows, codes = drawn_rows(y, MOST_ROWS, name)
        train, test = train_test_split(np.arange(len(codes)), test_size=0.4, stratify=codes, random_state=SEED)
        parts = {"train": X[rows][train], "test": X[rows][test], "y_train": codes[train], "y_test": codes[test]}
        for setting in SETTINGS:
            try:
                pairs = answers(setting, codes[train], name, SEED)
            except ValueError:  # too few rows for so many pairs
                continue
            parts |= {f"must {setting}": pairs.must_link, f"cannot {setting}": pairs.cannot_link}
        np.savez(folder / f"{name.replace(':', '-')}.npz", **parts)


def fit(folder: Path) -> None:
    """Print the scores of each case, setting and method by the version of pairlens that is imported, as JSON."""
    import pairlens
    from benchmarks.placed import scores

    warnings.simplefilter("ignore")
    for path in sorted(folder.glob("*.npz")):
        case = np.load(path)
        train, test, y = case["train"], case["test"], case["y_train"]
        for setting in [name.removeprefix("must ") for name in case if name.startswith("must ")]:
            known = pairlens.Constraints(case[f"must {setting}"], case[f"cannot {setting}"], n_samples=len(y))
            for method in METHODS:
                name, _, given = method.rstrip(")").partition("(")
                d = min(int(y.max()), train.shape[1]) if given == "k-1" else int(given or 2)
                if d > train.shape[1]:
                    continue
                model = getattr(pairlens, name)(d, random_state=0).fit(train, constraints=known)
                laid = model.embedding_ if name == "PairMap" else model.transform(train)
                found = scores(laid, y, model.transform(test), case["y_test"])
                print(json.dumps([path.stem, setting, method, *(round(found[score], 4) for score in SCORES)]))


def run(library: Path | None, folder: Path) -> list[list[Any]]:
    """Return the results of a version in a process of its own; None is this one."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [library or ROOT / "src", ROOT]))}
    command = [sys.executable, "-m", "benchmarks.earlier", "--fit", str(folder)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(stored: dict[str, list[list[Any]]]) -> str:
    """Return the mean scores of both versions, and the mean difference with its standard error over the cases."""
    before, now = ({tuple(row[:3]): np.array(row[3:]) for row in stored[name]} for name in ("before", "now"))
    lines = [
        "`python -m benchmarks.earlier`: mean scores of the version before and of this one, and the difference.",
        "",
    ]
    for minor, what in ((True, "Notions that are not the dominant structure"), (False, "Ordinary sets")):
        chosen = sorted({case for case, *_ in now if ("-" in case) == minor})
        lines += [f"| {what}, {len(chosen)} cases | " + " | ".join(SCORES.values()) + " |", "|---|--:|--:|--:|"]
        for method in METHODS:
            of_cases = [[(before[k], now[k]) for k in now if (k[0], k[2]) == (case, method)] for case in chosen]
            if any(of_cases):
                lines.append(f"| {method} | " + " | ".join(_cells([np.mean(c, axis=0) for c in of_cases if c])) + " |")
        lines.append("")
    return "\n".join(lines).rstrip()


def _cells(means: list[Any]) -> list[str]:
    old, new = np.moveaxis(np.array(means), 1, 0)
    error = np.std(new - old, axis=0, ddof=1) / np.sqrt(len(means))
    values = zip(old.mean(0), new.mean(0), (new - old).mean(0), error, (new > old).sum(0))
    return [f"{a:.3f} → {b:.3f}, {up:+.3f} ({of:.3f}), {ahead} of {len(means)}" for a, b, up, of, ahead in values]


def main(arguments: list[str] | None = None) -> None:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, help="folder src of the earlier version")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="write the page from what is stored")
    options = parser.parse_args(arguments)
    if options.fit:
        fit(options.fit)
        return
    if not options.page:
        if options.library is None:
            parser.error("--library must be the folder src of a checkout of the earlier version")
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            found = {"before": run(options.library, Path(folder)), "now": run(None, Path(folder))}
        STORED.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    from benchmarks.maps_table import filled_page

    PAGE.write_text(filled_page(PAGE.read_text(), table(json.loads(STORED.read_text())), BEGIN))


if __name__ == "__main__":
    main()

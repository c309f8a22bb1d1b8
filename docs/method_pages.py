"""A page for each method: its objective and paper from the docstring, and how it does on three toys."""

from __future__ import annotations

import inspect
import re
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from numpydoc.docscrape import NumpyDocString
from sklearn.datasets import make_circles
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import pairlens
from pairlens import Constraints, Preferences
from pairlens.datasets import make_subclass_blobs
from pairlens.metrics import cumulative_purity, pairwise_accuracy

FOLDER = Path(__file__).parent / "methods"
FAMILIES = {
    "The first choice": ("PairMap", "PairLens", "LinearPairLens"),
    "Linear views from pairs": (
        *("WBDR", "BWDR", "SODRPaC", "DSP", "SSDR", "CMM", "RCA", "CFLD", "DCA"),
        *("LPP", "SLPP", "LPPSI", "CLPP", "NPSSDR"),
    ),
    "Kernel views from pairs": ("KernelWBDR", "KernelBWDR", "KernelLPPSI", "KernelNullSpace"),
    "Clusters": ("PairClusters", "SKKMeans"),
    "Views from labels": ("LFDA", "SDA", "LMCA"),
    "Whole metrics": ("ITML", "LSML", "SCML", "LMNN", "MLKR"),
    "Views and rankings from preferences": ("WSDR", "GBWSDR", "RankSVM"),
}
# LSML and SCML draw their comparisons from the labels.
FROM_LABELS = (*FAMILIES["Views from labels"], "LSML", "SCML", "LMNN")
FROM_PREFERENCES = FAMILIES["Views and rankings from preferences"]
CLUSTERERS = FAMILIES["Clusters"]
PAGES = {
    "maps": ("PairMap",),
    "pairlens": ("PairLens", "LinearPairLens"),
    "clusters": ("PairClusters",),
    "bwdr": ("BWDR", "WBDR", "KernelBWDR", "KernelWBDR"),
    "dsp": ("DSP", "SKKMeans", "KernelNullSpace"),
    "sodrpac": ("SODRPaC",),
    "preference": (*FROM_PREFERENCES, "LMCA"),
    "comparisons": (*FAMILIES["Whole metrics"],),
}
"""Pages with measurements and proofs beyond the docstring."""
GOOD, POOR = 0.9, 0.7
COLOURS = ("#3b4cc0", "#b40426")


class Toy(NamedTuple):
    """Rows with classes or scores, and what a method is told about them."""

    name: str
    X: np.ndarray
    y: np.ndarray
    told: dict[str, Any]


def class_toys() -> list[Toy]:
    """Two classes each: across large noise, of several clusters, and around each other."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    across = np.c_[rng.normal(0, 4, 200), 1.2 * y + rng.normal(0, 0.25, 200)]
    subclasses, two, between = make_subclass_blobs(kind="inter", random_state=0)
    rings, inner = make_circles(200, factor=0.4, noise=0.07, random_state=0)
    pairs = [Constraints.from_labels(labels, n_pairs=60, random_state=0) for labels in (y, inner)]
    return [
        Toy("large noise", across, y, {"constraints": pairs[0]}),
        Toy("several clusters", subclasses, two, {"constraints": between}),
        Toy("rings", rings, inner, {"constraints": pairs[1]}),
    ]


def score_toys() -> list[Toy]:
    """Scores along a line, along a weak feature, and from a hill."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    weak = X * (4, 0.5)
    scores = (X @ (0.8, 0.6), weak[:, 1], -np.linalg.norm(X, axis=1))
    toys = zip(("a line", "a weak feature", "a hill"), (X, weak, X), scores)
    told = {"random_state": 0, "n_pairs": 1000}
    return [Toy(name, rows, y, {"preferences": Preferences.from_scores(y, **told)}) for name, rows, y in toys]


def build(name: str) -> Any:
    """The method with one direction (two for preferences), two clusters and a seed, where it has them."""
    cls = getattr(pairlens, name)
    known = inspect.signature(cls).parameters
    chosen = {
        "n_components": 2 if name in FROM_PREFERENCES else 1,
        "n_clusters": 2 if name in CLUSTERERS else None,
        "random_state": 0,
    }
    return cls(**{key: value for key, value in chosen.items() if key in known and value is not None})


def try_toy(name: str, toy: Toy) -> tuple[np.ndarray, float]:
    """The place of each row in the only direction (or its cluster), and how good that is."""
    told: dict[str, Any] = toy.told
    if name in FROM_LABELS:
        told = {"y": np.where(np.arange(len(toy.y)) % 4 == 0, toy.y, -1)}
    if name == "MLKR":
        told = {"y": toy.y.astype(float)}
    model = build(name).fit(toy.X, **told)
    if name in FROM_PREFERENCES:
        z = model.decision_function(toy.X)
        return z, pairwise_accuracy(z, Preferences.from_scores(toy.y))
    if name in CLUSTERERS:
        return model.labels_, adjusted_rand_score(toy.y, model.labels_)
    Z = model.transform(toy.X)
    Z = PCA(1, svd_solver="full").fit_transform(Z) if Z.shape[1] > 1 else Z
    return Z[:, 0], float(cumulative_purity(Z, toy.y, 1)[0])


def draw(name: str, toys: list[Toy], path: Path) -> list[float]:
    """The toys above, what the method makes of them below; the measure of each."""
    measure = "accuracy" if name in FROM_PREFERENCES else "ARI" if name in CLUSTERERS else "1-NN accuracy"
    figure, grid = plt.subplots(2, 3, figsize=(10, 4.6), height_ratios=(3, 2), layout="constrained")
    found = []
    for toy, (above, below) in zip(toys, grid.T):
        z, quality = try_toy(name, toy)
        found.append(quality)
        shown = z if name in CLUSTERERS else toy.y
        above.scatter(*toy.X.T, c=shown, cmap="viridis" if name in FROM_PREFERENCES else "coolwarm", s=8)
        above.set(title=f"{toy.name}: {measure} {quality:.2f}", xticks=[], yticks=[])
        if name in FROM_PREFERENCES:
            below.scatter(z, toy.y, c=toy.y, cmap="viridis", s=6)
            below.set(xlabel="score of the model", ylabel="true score", xticks=[], yticks=[])
        elif name in CLUSTERERS:
            below.axis("off")
        else:
            parts = [z[toy.y == label] for label in (0, 1)]
            below.hist(parts, 40, stacked=True, color=COLOURS, histtype="stepfilled")
            below.set(xlabel="the rows along its first direction", xticks=[], yticks=[])
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)
    return found


def verdict(toys: list[Toy], found: list[float]) -> str:
    """Which toys the method solves and which it does not, in words."""

    def listed(low: float, high: float) -> str:
        return ", ".join(f"*{toy.name}*" for toy, value in zip(toys, found) if low <= value < high)

    parts = (
        ("It solves", listed(GOOD, 2)),
        ("It partly solves", listed(POOR, GOOD)),
        ("It fails on", listed(-1, POOR)),
    )
    return " ".join(f"{words} {names}." for words, names in parts if names)


def listed_papers(references: list[str]) -> list[str]:
    """Footnotes as items of a list, for nothing on the page refers to them."""
    return [re.sub(r"^\.\. \[(\d+)\] ", r"\1. ", line) for line in references]


def write_page(name: str, toys: list[Toy]) -> str:
    """Write the page of a method and return its summary."""
    doc = NumpyDocString(inspect.getdoc(getattr(pairlens, name)) or "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # toys are where methods fail; the page says so
        found = draw(name, toys, FOLDER / f"{name}.png")
    told = {True: "1,000 preferences", False: "60 to 80 pairs"}[name in FROM_PREFERENCES]
    told = "the labels of a quarter of the rows" if name in FROM_LABELS else told
    told = "the classes of all rows as numbers" if name == "MLKR" else told
    space = {"PairClusters": "two clusters", "SKKMeans": "two clusters", "RankSVM": "all features"}.get(
        name, "two directions" if name in FROM_PREFERENCES else "one direction"
    )
    more = [page for page, names in PAGES.items() if name in names]
    lines = [
        name,
        "=" * len(name),
        "",
        ".. currentmodule:: pairlens",
        "",
        *doc["Summary"],
        "",
        *(re.sub(r"\[(\d+)\]_", r"[\1]", line) for line in doc["Extended Summary"]),
    ]
    lines += ["", "On three toys", "-------------", ""]
    lines += [f"Learned from {told} with default parameters, in {space}. {verdict(toys, found)}", ""]
    lines += [f".. image:: {name}.png", f"   :alt: Three toys and the view of {name}", ""]
    lines += [f"All parameters and attributes: :class:`{name}`."]
    lines += [f"Definition and measurements: :doc:`../{page}`." for page in more]
    if doc["References"]:
        lines += ["", "The paper", "---------", "", *listed_papers(doc["References"])]
    (FOLDER / f"{name}.rst").write_text("\n".join(lines) + "\n", "utf-8")
    return " ".join(doc["Summary"])


def write_method_pages(app: Any) -> None:
    """Write all pages and their index, unless they are newer than the library and this file."""
    index = FOLDER / "index.rst"
    sources = [Path(__file__), *Path(pairlens.__file__).parent.rglob("*.py")]
    if index.exists() and index.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    FOLDER.mkdir(exist_ok=True)
    classes, scores = class_toys(), score_toys()
    names = [name for family in FAMILIES.values() for name in family]
    with ProcessPoolExecutor(app.parallel) as pool:
        toys = [scores if name in FROM_PREFERENCES else classes for name in names]
        summaries = dict(zip(names, pool.map(write_page, names, toys)))
    text = [
        "Methods",
        "=======",
        "",
        "One page for each method: the objective, when to choose it, three toys, the paper.",
    ]
    for family, members in FAMILIES.items():
        text += ["", family, "-" * len(family), "", ".. list-table::", "   :widths: 25 75", ""]
        for name in members:
            text += [f"   * - :doc:`{name}`", f"     - {summaries[name]}"]
    text += [
        "",
        "In depth",
        "--------",
        "",
        "These pages hold definitions, choices and measurements beyond the docstrings.",
        "",
    ]
    text += [".. toctree::", "   :maxdepth: 1", "", *(f"   ../{page}" for page in PAGES)]
    text += ["", ".. toctree::", "   :hidden:", "   :caption: Methods", ""]
    text += [f"   {name}" for name in names]
    index.write_text("\n".join(text) + "\n", "utf-8")

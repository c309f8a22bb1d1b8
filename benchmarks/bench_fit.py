"""Scatters of many pairs, and whole fits against scikit-learn's PCA on the same rows."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA

from benchmarks.measure import best_time, paired_times, peak_memory, report
from pairlens import BWDR, WBDR, Constraints
from pairlens.engines import pair_scatter

MIB = 1 << 20


def main(quick: bool = False) -> dict[str, float]:
    warnings.simplefilter("ignore", UserWarning)
    n = 100_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    X *= np.linspace(1, 3, 100, dtype=np.float32)
    return {**_scatters(X, rng, quick), **_fits(X, rng), **_wide(rng), **_text(rng)}


def _scatters(X: np.ndarray, rng: np.random.Generator, quick: bool) -> dict[str, float]:
    rows, ratios = [], {}
    for m in (100_000, 1_000_000) if quick else (1_000_000, 10_000_000):
        pairs = rng.integers(0, len(X), (m, 2))
        sample = pairs[: m // 100]

        def gathered(sample: np.ndarray = sample) -> np.ndarray:
            difference = X[sample[:, 0]] - X[sample[:, 1]]
            return difference.T @ difference

        def laplacian(sample: np.ndarray = sample) -> np.ndarray:
            graph = sparse.csr_matrix((np.ones(len(sample)), (sample[:, 0], sample[:, 1])), shape=(len(X), len(X)))
            graph = graph + graph.T
            return X.T @ (sparse.diags(np.asarray(graph.sum(axis=1)).ravel()) @ X - graph @ X)

        ours = best_time(lambda pairs=pairs: pair_scatter(X, pairs), 2)
        memory = peak_memory(lambda pairs=pairs: pair_scatter(X, pairs))
        rows.append(
            (
                f"{m:,} pairs over {len(X):,} x {X.shape[1]}",
                f"{ours:.2f} s",
                f"{memory / MIB:.0f} MiB",
                f"{ours / (100 * best_time(gathered, 2)):.2f}",
                f"{ours / best_time(laplacian, 1):.3f}",
            )
        )
        ratios[f"scatter {m}"] = ours
    report(
        "Scatter of random pairs, float32",
        rows,
        ("", "time", "memory", "x gathered differences (1 % of pairs, scaled up)", "x Laplacian of 1 % of the pairs"),
    )
    return ratios


def _fits(X: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    pairs = rng.permutation(len(X))[:20_000].reshape(-1, 2)
    known = Constraints(pairs[:5000], pairs[5000:], n_samples=len(X))
    rows, ratios = [], {}
    for shrinkage, bar in ((0.0, 0.5), ("auto", 1.3)):

        def ours(shrinkage: float | str = shrinkage) -> None:
            BWDR(2, shrinkage=shrinkage).fit(X, constraints=known)

        def theirs() -> None:
            PCA(2, svd_solver="covariance_eigh").fit(X)

        a, b = paired_times(ours, theirs, 5)
        ratios[f"BWDR shrinkage={shrinkage} / PCA"] = a / b
        rows.append(
            (
                f"BWDR(shrinkage={shrinkage!r})",
                f"{a:.3f} s",
                f"{b:.3f} s",
                f"{a / b:.2f}",
                f"{bar}",
                f"{peak_memory(ours) / MIB:.0f} / {peak_memory(theirs) / MIB:.0f} MiB",
            )
        )
    report(
        f"Fit on {len(X):,} x {X.shape[1]} float32 with 10,000 pairs",
        rows,
        ("", "ours", "PCA(covariance_eigh)", "ratio", "at most", "memory ours / PCA"),
    )
    return ratios


def _wide(rng: np.random.Generator) -> dict[str, float]:
    X = rng.standard_normal((200, 20_000)) + 0.2 * np.repeat(rng.standard_normal((4, 20_000)), 50, axis=0)
    known = Constraints.from_labels(np.repeat(np.arange(4), 50), n_pairs=300, random_state=0)
    rows, ratios = [], {}
    for cls in (BWDR, WBDR):
        for name, peer in (("PCA(2)", PCA(2)), ("PCA(2, full)", PCA(2, svd_solver="full"))):
            a, b = paired_times(lambda cls=cls: cls(2).fit(X, constraints=known), lambda peer=peer: peer.fit(X), 5)
            ratios[f"wide {cls.__name__} / {name}"] = a / b
            memory = peak_memory(lambda cls=cls: cls(2).fit(X, constraints=known))
            rows.append(
                (cls.__name__, name, f"{a:.3f} s", f"{b:.3f} s", f"{a / b:.2f}", "2", f"{memory / MIB:.0f} MiB")
            )
    report("Fit on 200 x 20,000", rows, ("", "peer", "ours", "peer's", "ratio", "at most", "memory"))
    return ratios


def _text(rng: np.random.Generator) -> dict[str, float]:
    columns, starts = rng.integers(0, 50_000, 1_000_000), np.arange(0, 1_000_001, 50)
    X = sparse.csr_matrix((rng.random(1_000_000), columns, starts), shape=(20_000, 50_000))
    pairs = rng.permutation(20_000)[:1000].reshape(-1, 2)
    known = Constraints(pairs[:250], pairs[250:], n_samples=20_000)
    rows, times = [], {}
    for model in (WBDR(2, shrinkage=0.0), WBDR(2)):
        times[f"text {model}"] = best_time(lambda model=model: model.fit(X, constraints=known), 1)
        memory = peak_memory(lambda model=model: model.fit(X, constraints=known))
        rows.append((str(model), f"{times[f'text {model}']:.2f} s", f"{memory / MIB:.0f} MiB"))
    report("Fit on sparse 20,000 x 50,000, a million entries, 500 pairs", rows, ("", "time", "memory"))
    return times


if __name__ == "__main__":
    main()

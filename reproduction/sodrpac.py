"""The protocols of the paper of SODRPaC; ``sodrpac.toml`` has the experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
from sklearn.decomposition import PCA

from pairlens.datasets import make_subclass_blobs
from pairlens.engines import column_means
from pairlens.graphs.edges import default_gamma
from pairlens.judging import pair_auc
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID, SODRPaC, Terms, held_out_scores
from pairlens.metrics import cumulative_purity
from pairlens.spectral.rowspace import RowSpace, difference, row_space
from pairlens.spectral.scatters import mean_pair_scatters
from pairlens.supervision import Constraints
from reproduction.experiment import Array, Codes, Result, Unit, Value
from reproduction.protocols import fold

LAMS = (0.0, 2.0**-5, 0.5, 2.0, 8.0, 32.0, 128.0)
WIDTHS = (4.0, 0.25)
"""The grid of the tables: theta is a width times the default of SODRPaC."""
BETAS = 4.0 ** np.arange(-3, 4)
N_RANDOM = 14


class Training:
    """The rows of a training fold and those held out, both scaled; what depends on the pairs takes them as argument.

    Views are matrices with directions in columns, best first, from which the leading columns can be taken.
    """

    def __init__(self, X: Array, y: Codes, X_test: Array, y_test: Codes, dims: Iterable[int]) -> None:
        self.X, self.y, self.X_test, self.y_test = X, y, X_test, y_test
        self.dims = tuple(dims)
        self.most = max(self.dims)

    @cached_property
    def space(self) -> RowSpace:
        return row_space(self.X, column_means(self.X))

    @cached_property
    def terms(self) -> Terms:
        """Neighbours and scatters, which depend on neither pairs nor parameters."""
        return Terms.of(self.space, 3, 5)

    @cached_property
    def width(self) -> float:
        """The default theta: the squared mean length of the centred rows."""
        return 1 / default_gamma(self.X)

    @cached_property
    def _manifold(self) -> dict[float, Array]:
        return {}

    def sodrpac(self, pairs: Constraints, lams: Iterable[float], widths: Iterable[float]) -> dict[tuple, Array]:
        """Views by lam and width, for any grid: neighbours are found once, and what the pairs generate once."""
        made, spread = self.terms.generate(pairs), self.space.covariance()
        found = {}
        for width in widths:
            theta = width * self.width
            if theta not in self._manifold:
                self._manifold[theta] = self.terms.manifold(1 / theta)
            repel = self.terms.apart(pairs, made, 1 / theta) + spread
            for lam in lams:
                attract = self.terms.together + lam * self._manifold[theta] + spread
                found[lam, width] = self.space.lift(difference(attract, repel, self.most)[1]).T
        return found

    def searched(self, pairs: Constraints, seed: int) -> Iterator[Array]:
        """For each dimension the view at the parameters that held-out pairs choose."""
        scores = held_out_scores(
            self.terms,
            pairs,
            lams=LAM_GRID,
            gammas=1 / (self.width * THETA_GRID),
            dims=np.array(self.dims),
            n_splits=5,
            random_state=seed,
        )
        for place, d in enumerate(self.dims):
            lam, gamma, _ = replace(scores, dims=np.array([d]), values=scores.values[..., [place]]).best()
            yield next(iter(self.sodrpac(pairs, [lam], [1 / (gamma * self.width)]).values()))

    def ssdr_family(self, pairs: Constraints) -> list[Array]:
        """SSDR and CMM with fourteen weights of the must-links."""
        together, apart = mean_pair_scatters(self.space, pairs)
        spread = self.space.covariance()
        return [
            self.space.lift(difference(beta * together + spread, apart + (1 + share) * spread, self.most)[1]).T
            for beta in BETAS
            for share in (0.0, 1.0)
        ]

    def random(self, seed: int) -> list[Array]:
        """Orthonormal directions drawn at random: a control."""
        rng, f = np.random.default_rng(seed), self.X.shape[1]
        return [np.linalg.qr(rng.standard_normal((f, f)))[0][:, : self.most] for _ in range(N_RANDOM)]

    def accuracy(self, W: Array, d: int) -> float:
        """Of the nearest training row, in the leading d directions."""
        return nearest(self.X @ W[:, :d], self.y, self.X_test @ W[:, :d], self.y_test)

    def chosen(self, views: Iterable[Array], d: int) -> float:
        """Accuracy of the view whose leave-one-out accuracy on the training rows is best."""
        return self.accuracy(max(views, key=lambda W: nearest(self.X @ W[:, :d], self.y)), d)


def nearest(Z: Array, y: Codes, Z_test: Array | None = None, y_test: Codes | None = None) -> float:
    """1-NN accuracy on held-out rows, or leave-one-out where none are given."""
    queries, truth = (Z, y) if Z_test is None else (Z_test, y_test)
    squared = queries @ (-2 * Z.T)
    squared += (Z**2).sum(axis=1)
    if Z_test is None:
        np.fill_diagonal(squared, np.inf)
    return float((y[squared.argmin(axis=1)] == truth).mean())


def draw(y: Codes, n_must: int, n_cannot: int, seed: int) -> Constraints:
    """Must-links and cannot-links, in the numbers given, each drawn uniformly from all there are."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(len(y), 1)
    same = y[first] == y[second]
    chosen = (rng.choice(np.flatnonzero(kind), n, replace=False) for kind, n in ((same, n_must), (~same, n_cannot)))
    must, cannot = (np.column_stack([first[pick], second[pick]]) for pick in chosen)
    return Constraints(must, cannot, len(y))


def training(unit: Unit) -> Training:
    """The fold that is this part of the run: rows encoded, split, and scaled as the set says."""
    params = unit.data.params
    X, y = unit.X, unit.y
    if "merge" in params:
        rows = np.random.default_rng(0).permutation(len(X))[: params["rows"]]
        X = X[rows]
        y = (y[rows] == 1 if params["merge"] == "second" else y[rows] % 2).astype(np.int64)
    if params.get("codes") == "one-hot":
        X = np.concatenate([column[:, None] == np.unique(column) for column in X.T], axis=1).astype(np.float64)
    train, test = fold(unit, unit.settings["folds"], y)
    A, B = X[train], X[test]
    if "codes" not in params:
        mean, spread = A.mean(axis=0), A.std(axis=0)
        spread[spread == 0] = 1
        A, B = (A - mean) / spread, (B - mean) / spread
    return Training(A, y[train], B, y[test], params["dims"])


# ---------------------------------------------------------------------------------------------------------- protocols


def toy(unit: Unit) -> Iterator[Result]:
    """One draw of the motivating example: leave-one-out 1-NN accuracy in one dimension, and where the line points."""
    # The run is the seed: so the draws are those of the golden values.
    X, y, pairs = make_subclass_blobs(**unit.data.params, random_state=unit.run)
    cannot_only = Constraints(cannot_link=pairs.cannot_link, n_samples=len(X))
    yield Result("horizontal line", float(cumulative_purity(X[:, :1], y, 1)[0]), "accuracy")
    for method in unit.methods:
        known = cannot_only if method.name in unit.settings["cannot_links_only"] else pairs
        model = method.build(n_components=1)
        model = model.fit(X) if isinstance(model, PCA) else model.fit(X, constraints=known)
        across, up = model.components_[0]
        yield Result(method.name, float(cumulative_purity(model.transform(X), y, 1)[0]), "accuracy")
        yield Result(method.name, float(np.degrees(np.arctan2(abs(up), abs(across)))), "angle")
        if unit.run == 0:
            yield Result(method.name, float(np.degrees(np.arctan(up / across) if across else np.pi / 2)), "line")


def toy_rows(seed: int) -> tuple[Array, Codes]:
    """Rows of the toy; its pairs come with them from the same draw."""
    X, y, _ = make_subclass_blobs(kind="inter", sy=1.5, random_state=seed)
    return X, y


def cross_validated(unit: Unit) -> Iterator[Result]:
    """One fold: views from several numbers or shares of pairs of the training rows, 1-NN on the held-out rows."""
    data, settings = training(unit), unit.settings
    everything = nearest(data.X, data.y, data.X_test, data.y_test)
    random = data.random(unit.seed("random", unit.part)) if "controls" in settings["columns"] else []
    pca = PCA(data.most, svd_solver="full").fit(data.X).components_.T
    for n_must, n_cannot in settings["pairs"]:
        pairs = draw(data.y, n_must, n_cannot, unit.seed("pairs", unit.part, n_must, n_cannot))
        condition = _condition(settings["by"], n_must, n_cannot)
        views = {"PCA": pca}
        for method in unit.methods:
            views[method.name] = method.build(n_components=data.most).fit(data.X, constraints=pairs).components_.T
        grid = data.sodrpac(pairs, LAMS, WIDTHS)
        views |= {"Disc": grid[0.0, 4.0], "SODfix": grid[8.0, 4.0]}
        family = data.ssdr_family(pairs) if "controls" in settings["columns"] else []
        searched = _searched(data, pairs, unit) if "cv" in settings["columns"] else {}
        for d in data.dims:
            at = {**condition, "l": d}
            for name, W in views.items():
                yield Result(name, data.accuracy(W, d), "accuracy", at)
            for (lam, width), W in grid.items():
                yield Result("SOD*", data.accuracy(W, d), "accuracy", {**at, "point": f"{lam:g}, {width:g}"})
            yield Result("SOD_loo", data.chosen(grid.values(), d), "accuracy", at)
            if searched:
                yield Result("SOD_cv", searched[d], "accuracy", at)
            if "controls" in settings["columns"]:
                yield Result("SSDR_loo", data.chosen(family, d), "accuracy", at)
                yield Result("rand_loo", data.chosen(random, d), "accuracy", at)
            yield Result("all features", everything, "accuracy", at)


def _condition(by: str, n_must: int, n_cannot: int) -> dict[str, Value]:
    return {by: n_must + n_cannot if by == "constraints" else round(n_must / (n_must + n_cannot), 2)}


def _searched(data: Training, pairs: Constraints, unit: Unit) -> dict[int, float]:
    """Accuracy with lam and theta chosen by the pairs alone, by dimension."""
    views = data.searched(pairs, unit.seed("search", unit.part))
    return {d: data.accuracy(W, d) for d, W in zip(data.dims, views)}


def surface(unit: Unit) -> Iterator[Result]:
    """One fold: 1-NN accuracy at every point of the paper's grid of lambda and theta, and of PCA."""
    data, (n_must, n_cannot) = training(unit), unit.settings["pairs"]
    pairs = draw(data.y, n_must, n_cannot, unit.seed("pairs", unit.part))
    pca = PCA(data.most, svd_solver="full").fit(data.X).components_.T
    grid = data.sodrpac(pairs, LAM_GRID, THETA_GRID)
    for d in data.dims:
        yield Result("PCA", data.accuracy(pca, d), "accuracy", {"l": d})
        for (lam, width), W in grid.items():
            at = {"l": d, "log2 lambda": float(np.log2(lam)), "log2 theta": float(np.log2(width))}
            yield Result("SODRPaC", data.accuracy(W, d), "accuracy", at)


def dimension(unit: Unit) -> Iterator[Result]:
    """One fold: how many directions are kept by three rules, and how good they are."""
    data, (n_must, n_cannot) = training(unit), unit.settings["pairs"]
    pairs = draw(data.y, n_must, n_cannot, unit.seed("pairs", unit.part))
    seed = unit.seed("search", unit.part)
    most = int(np.linalg.matrix_rank(data.X - data.X.mean(axis=0)))
    W = SODRPaC(most).fit(data.X, constraints=pairs).components_.T
    auto = SODRPaC("auto", random_state=seed).fit(data.X, constraints=pairs).n_components_
    auc = np.zeros(most)
    for known, held_out in pairs.split(5, random_state=seed):
        Z = data.X @ SODRPaC(most).fit(data.X, constraints=known).components_.T
        auc += [pair_auc(Z[:, : k + 1], held_out) for k in range(most)]
    for rule, k in (("all", most), ("auto", int(auto)), ("score", int(auc.argmax()) + 1)):
        yield Result(rule, float(k), "directions")
        yield Result(rule, data.accuracy(W, k), "accuracy")

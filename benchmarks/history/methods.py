"""Time as a ratio to PCA in the same process, and quality, of the methods that most people use."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import Constraints

SETS = {"wine": load_wine, "iris": load_iris, "breast_cancer": load_breast_cancer, "digits": load_digits}
METHODS = ["BWDR", "WBDR", "LPP", "DSP", "SODRPaC", "LinearPairLens", "PairLens"]


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """Processor time of the fastest of some calls: other load on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


class Fit:
    """A fit of 2,000 rows of 50 features from 200 pairs."""

    params: ClassVar[list[str]] = METHODS
    param_names: ClassVar[list[str]] = ["method"]
    n_rows: ClassVar[int] = 2000

    def setup(self, method: str) -> None:
        """Data, and a model that has not been fitted."""
        rng = np.random.default_rng(0)
        y = np.arange(self.n_rows) % 5
        self.X = rng.standard_normal((self.n_rows, 50)) + 2 * np.eye(5, 50)[y]
        self.pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
        self.model = getattr(pairlens, method)(n_components=2)
        warnings.simplefilter("ignore")

    def track_ratio_to_pca(self, method: str) -> float:
        """How many times longer than PCA."""
        fit = seconds(lambda: self.model.fit(self.X, constraints=self.pairs), 1)
        return fit / seconds(lambda: PCA(2, svd_solver="covariance_eigh").fit(self.X))

    track_ratio_to_pca.unit = "times PCA"  # type: ignore[attr-defined]

    def peakmem_fit(self, method: str) -> None:
        """Memory of the process at its highest."""
        self.model.fit(self.X, constraints=self.pairs)


class View:
    """Adjusted Rand index of k-means in a view of a data set from 60 pairs."""

    params: ClassVar[tuple[list[str], list[str]]] = (["PCA", *METHODS], list(SETS))
    param_names: ClassVar[list[str]] = ["method", "set"]

    def track_ari(self, method: str, name: str) -> float:
        """Of all rows, standardised; views have two directions."""
        warnings.simplefilter("ignore")
        X, y = SETS[name](return_X_y=True)
        X = StandardScaler().fit_transform(X.astype(np.float64))
        pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
        if method == "PCA":
            Z = PCA(2).fit_transform(X)
        else:
            Z = getattr(pairlens, method)(n_components=2).fit(X, constraints=pairs).transform(X)
        clusters = KMeans(len(np.unique(y)), n_init=4, random_state=0).fit_predict(Z)
        return float(adjusted_rand_score(y, clusters))

"""The answers decide: views of what was asked for, where the structure with most variance is another one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from pairlens import Constraints, LinearPairLens, PairLens, PairMap, TableEncoder
from pairlens.datasets import load_penguins

DRAWS = range(5)
METHODS = [LinearPairLens(1, random_state=0), PairLens(1, random_state=0), PairMap(max_iter=250, random_state=0)]


def ari(Z, y):
    """Agreement of k-means with the groups."""
    return adjusted_rand_score(y, KMeans(len(np.unique(y)), n_init=4, random_state=0).fit_predict(Z))


def fitted(method, X, y, n_pairs, draw):
    if type(method) is PairMap:
        pytest.importorskip("openTSNE", reason="pip install 'pairlens[map]'")
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=draw)
    return method.fit(X, constraints=pairs)


@pytest.fixture(scope="module")
def animals():
    """200 animals of any size: 98 % of the variance is their size, and species and sex are small differences."""
    rng = np.random.default_rng(0)
    notions = {"species": np.repeat([0, 0, 1, 1], 50), "sex": np.tile(np.repeat([0, 1], 50), 2)}
    X = np.outer(rng.standard_normal(200), [1.0, 0.9, 1.1, 1.0, 0.8])
    X += 0.11 * np.outer(2 * notions["species"] - 1, [1, -1, 0, 0, 1])
    X += 0.11 * np.outer(2 * notions["sex"] - 1, [0, 1, -1, 1, 0])
    return X + 0.045 * rng.standard_normal((200, 5)), notions


def test_the_dominant_structure_shows_neither_notion(animals):
    X, notions = animals
    Z = StandardScaler().fit_transform(X)
    principal = PCA().fit(Z)
    assert 0.97 < principal.explained_variance_ratio_[0] < 0.99
    plain = {"PCA": principal.transform(Z)[:, :2], "t-SNE": TSNE(random_state=0).fit_transform(Z)}
    for y in notions.values():
        assert LinearDiscriminantAnalysis().fit(Z, y).score(Z, y) > 0.99
        for view in plain.values():
            assert ari(view, y) < 0.1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("notion", ["species", "sex"])
def test_thirty_answers_show_the_notion_that_was_asked_for(animals, notion, method):
    X, notions = animals
    found = [ari(fitted(method, X, notions[notion], 30, draw).transform(X), notions[notion]) for draw in DRAWS]
    assert np.count_nonzero(np.array(found) >= 0.8) >= 3, found
    other = notions["sex" if notion == "species" else "species"]
    assert ari(method.transform(X), other) < 0.1


def test_the_answers_take_the_weight_from_the_rows(animals):
    X, notions = animals
    model = fitted(PairMap(max_iter=20, random_state=0), X, notions["sex"], 60, 0)
    weights = {name: space["weight"] for name, space in model.space_weights_.items()}
    assert weights["rows"] < 0.25 < weights["linear"]
    assert model.space_weights_["rows"]["auc"] < 0.6
    assert model.space_weights_["linear"]["auc"] > 0.95


@pytest.mark.parametrize(
    "method",
    [PairLens(2, standardize=False, random_state=0), PairMap(standardize=False, max_iter=250, random_state=0)],
    ids=lambda method: type(method).__name__,
)
def test_penguins_with_all_their_columns_by_species(method):
    """Island, sex and year are columns as loud as the measurements; sixty pairs say what is meant."""
    pytest.importorskip("pandas", reason="TableEncoder needs pandas")
    penguins = load_penguins(as_frame=True)
    X = TableEncoder().fit_transform(penguins.frame.drop(columns="species"))
    y = penguins.target.to_numpy()
    found = [ari(fitted(method, X, y, 60, draw).transform(X), y) for draw in DRAWS]
    assert np.count_nonzero(np.array(found) >= 0.8) >= 3, found

"""Views drawn with matplotlib."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pairlens
from pairlens import WBDR, Constraints, LinearPairLens, PairClusters, PairLens, view_pipeline
from pairlens.exceptions import InputError

matplotlib = pytest.importorskip("matplotlib", reason="plot needs matplotlib: pip install 'pairlens[report]'")


@pytest.fixture(autouse=True)
def figures():
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    matplotlib.pyplot.close("all")
    matplotlib.use(before)


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = pd.DataFrame(rng.standard_normal((90, 4)) + 6 * np.eye(4)[y], columns=list("abcd"))
    return X, y, Constraints.from_labels(y, n_pairs=60, random_state=0)


@pytest.fixture(scope="module")
def view(known):
    X, _, pairs = known
    return LinearPairLens(random_state=0).fit(X, constraints=pairs)


def lines(ax):
    return {each.get_label(): each for each in ax.collections if hasattr(each, "get_segments")}


def dots(ax):
    return [each for each in ax.collections if not hasattr(each, "get_segments")]


def test_groups_have_colours_and_names(view, known):
    X, y, _ = known
    ax = pairlens.plot(view, X, color=[None if k == 0 else f"group {label}" for k, label in enumerate(y)])
    assert [each.get_text() for each in ax.get_legend().get_texts()] == ["group 0", "group 1", "group 2"]
    assert [len(each.get_offsets()) for each in dots(ax)] == [1, 29, 30, 30]
    drawn = np.concatenate([each.get_offsets() for each in dots(ax)[1:]])
    Z = view.transform(X)
    np.testing.assert_allclose(drawn, np.concatenate([Z[1:][y[1:] == label] for label in range(3)]))
    assert ax.get_title() == f"LinearPairLens, held-out AUC {view.auc_:.2f}"


def test_a_column_of_numbers_has_a_bar(view, known):
    X = known[0]
    ax = pairlens.plot(view, X, color="b")
    (points,) = dots(ax)
    np.testing.assert_array_equal(points.get_array(), X["b"])
    assert points.colorbar.ax.get_ylabel() == "b"
    assert ax.get_legend() is None
    assert pairlens.plot(view, X, color=[None] * len(X)).get_legend() is None


def test_names_of_groups_are_no_formulas(view, known):
    names = np.array(["$5 or \\frac{ $", "_hidden", "plain"])
    ax = pairlens.plot(view, known[0], color=names[known[1]])
    ax.figure.canvas.draw()
    assert sorted(each.get_text() for each in ax.get_legend().get_texts()) == [" _hidden", r"\$5 or \frac{ \$", "plain"]


def test_pairs_are_drawn_and_those_that_look_wrong_are_marked(known, monkeypatch):
    X, _, pairs = known
    mistakes = pairs.cannot_link[:2]
    wrong = Constraints(np.concatenate([pairs.must_link, mistakes]), pairs.cannot_link[2:], len(X), on_conflict="drop")
    view = PairLens(random_state=0).fit(X, constraints=wrong)
    # The two come first; so few answers do not suffice to let any stand out.
    judged = view.suspicious_pairs()
    between = (judged.suspicion[1] + judged.suspicion[2]) / 2
    monkeypatch.setattr(view, "suspicious_pairs", lambda: replace(judged, threshold=between))
    found = lines(pairlens.plot(view, X, constraints=wrong))
    Z = view.transform(X)
    segments = found["belong together"].get_segments()
    assert len(segments) == wrong.n_must_link
    np.testing.assert_allclose(segments[0], Z[wrong.must_link[0]])
    assert len(found["do not"].get_segments()) == wrong.n_cannot_link
    marked = {tuple(map(tuple, segment)) for segment in found["look wrong"].get_segments()}
    assert marked == {tuple(map(tuple, Z[pair])) for pair in judged.pairs[:2]}
    assert "look wrong" not in lines(pairlens.plot(view, X, constraints=wrong, suspicious=False))
    # Of other pairs nothing is said.
    assert "look wrong" not in lines(pairlens.plot(view, X, constraints=Constraints([(7, 8)], [(7, 9)], len(X))))


def test_any_method_and_any_pipeline_in_axes_that_are_there(known):
    X, y, pairs = known
    ax = matplotlib.pyplot.subplots()[1]
    one = WBDR(1).fit(X, constraints=pairs)
    assert pairlens.plot(one, X, ax=ax, s=7) is ax
    (points,) = dots(ax)
    np.testing.assert_allclose(points.get_offsets()[:, 0], one.transform(X)[:, 0])
    assert points.get_sizes().tolist() == [7]
    assert ax.get_title() == "WBDR"
    whole = view_pipeline(X, random_state=0).fit(X, method__constraints=pairs)
    drawn = dots(pairlens.plot(whole, color=y))
    assert sum(len(each.get_offsets()) for each in drawn) == 90
    np.testing.assert_allclose(drawn[0].get_offsets(), whole[-1].embedding_[y == 0])


def test_what_cannot_be_drawn_is_said(view, known):
    X, _, pairs = known
    with pytest.raises(InputError) as caught:
        pairlens.plot(view)
    assert caught.value.argument == "X"
    for wrong in ("e", np.zeros(4)):
        with pytest.raises(InputError) as refused:
            pairlens.plot(view, X, color=wrong)
        assert refused.value.argument == "color"
    with pytest.raises(InputError) as groups:
        pairlens.plot(PairClusters(random_state=0).fit(X, constraints=pairs), X)
    assert groups.value.argument == "model"
    with pytest.raises(InputError) as other:
        pairlens.plot(view, X[:20], constraints=pairs)
    assert other.value.argument == "constraints"

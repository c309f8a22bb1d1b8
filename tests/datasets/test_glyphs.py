"""Pictures of letters: four notions, balanced, repeatable, and each of them in the pixels."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pairlens.datasets import make_glyphs
from pairlens.exceptions import ArgumentError, MissingExtraError


@pytest.fixture(scope="module", autouse=True)
def matplotlib():
    return pytest.importorskip("matplotlib", reason="letters are drawn with Matplotlib")


@pytest.fixture(scope="module")
def glyphs():
    return make_glyphs(random_state=0)


def test_shapes(glyphs):
    n = 2 * 16 * 26
    assert glyphs.data.shape == (n, 576)
    assert glyphs.images.shape == (n, 24, 24)
    assert glyphs.data.min() == 0
    assert glyphs.data.max() == 1
    for name in ("target", "letter", "bold", "italic", "serif", "font"):
        assert glyphs[name].shape == (n,)
    assert len(glyphs.feature_names) == 576
    assert "".join(glyphs.target_names) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert "STIXGeneralBol" in glyphs.DESCR


def test_notions_are_balanced_within_each_other(glyphs):
    styles = 4 * glyphs.bold + 2 * glyphs.italic + glyphs.serif
    every, count = np.unique(np.column_stack([glyphs.letter, styles]), axis=0, return_counts=True)
    assert len(every) == 26 * 8
    assert set(count) == {4}


def test_styles_are_those_of_the_fonts(glyphs):
    bold, italic = (
        np.array([any(w in name for w in words) for name in glyphs.font_names])
        for words in (("Bold", "Bol"), ("Oblique", "Ita"))
    )
    np.testing.assert_array_equal(glyphs.bold, bold[glyphs.font])
    np.testing.assert_array_equal(glyphs.italic, italic[glyphs.font])
    ink = glyphs.data.mean(axis=1)
    assert ink[glyphs.bold == 1].mean() > 1.3 * ink[glyphs.bold == 0].mean()


def test_letters_stand_upright_in_the_middle():
    glyphs = make_glyphs(1, letters="LT", jitter=0, side=32)
    ink = glyphs.images.sum(axis=2)
    top, bottom = ink[:, :16].sum(axis=1), ink[:, 16:].sum(axis=1)
    assert (bottom[glyphs.letter == 0] > top[glyphs.letter == 0]).all()
    assert (top[glyphs.letter == 1] > bottom[glyphs.letter == 1]).all()
    columns, rows = (glyphs.images.any(axis=axis) for axis in (1, 2))
    for one in (columns, rows):
        first, last = one.argmax(axis=1), one[:, ::-1].argmax(axis=1)
        assert (abs(first - last) <= 1).all()


def test_widest_letters_are_not_cut():
    images = make_glyphs(1, letters="WMQ", jitter=0).images
    assert images[:, [0, -1]].max() == 0
    assert images[:, :, [0, -1]].max() == 0


def test_repeatable():
    first, second = (make_glyphs(1, letters="AB", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.data, second.data)
    np.testing.assert_array_equal(first.target, second.target)
    assert not np.array_equal(first.data, make_glyphs(1, letters="AB", random_state=4).data)
    X, y = make_glyphs(1, letters="AB", random_state=3, return_X_y=True)
    np.testing.assert_array_equal(X, first.data)
    np.testing.assert_array_equal(y, first.letter)


def test_without_jitter_pictures_of_a_glyph_are_equal():
    glyphs = make_glyphs(3, letters="R", jitter=0)
    assert len(np.unique(glyphs.data, axis=0)) == 16
    assert len(np.unique(make_glyphs(3, letters="R").data, axis=0)) == 48


@pytest.mark.parametrize(("notion", "least"), [("letter", 0.85), ("bold", 0.85), ("italic", 0.75), ("serif", 0.7)])
def test_each_notion_can_be_learned(glyphs, notion, least):
    half = len(glyphs.data) // 2
    model = LogisticRegression(max_iter=300).fit(glyphs.data[:half], glyphs[notion][:half])
    assert model.score(glyphs.data[half:], glyphs[notion][half:]) > least


@pytest.mark.parametrize(
    ("argument", "value"),
    [("letters", ""), ("letters", "AA"), ("letters", "Ä"), ("n_per_glyph", 0), ("side", 7), ("jitter", -0.1)],
)
def test_errors_name_the_argument(argument, value):
    with pytest.raises(ArgumentError) as caught:
        make_glyphs(**{argument: value})
    assert (caught.value.argument, caught.value.value) == (argument, value)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"drawing letters needs matplotlib.*pairlens\[report\]"):
        make_glyphs(letters="A")

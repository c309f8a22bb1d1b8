"""TableEncoder: the weights of every column, new rows, roles, and what it says about a table."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

pandas = pytest.importorskip("pandas")

import pairlens  # noqa: E402
from pairlens import TableEncoder  # noqa: E402
from pairlens.exceptions import InputError  # noqa: E402
from pairlens.tables import Role  # noqa: E402


@parametrize_with_checks([TableEncoder(), TableEncoder(sparse_output=True)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def _mixed(n: int = 200, seed: int = 0):
    rng = np.random.default_rng(seed)
    mass = rng.normal(50, 5, n)
    mass[rng.random(n) < 0.2] = np.nan
    size = rng.normal(1e6, 1.0, n)
    size[:3] = np.nan
    return pandas.DataFrame(
        {
            "mass": mass,
            "size": size,
            "island": rng.choice(["A", "B", "C", "D"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "sex": rng.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1]),
            "ok": rng.random(n) < 0.3,
            "day": pandas.date_range("2020-01-01", periods=n, freq="5D").strftime("%d.%m.%Y"),
            "title": [" ".join(rng.choice(["red", "green", "blue", "fish", "dog"], 7)) for _ in range(n)],
            "name": [f"person {a}{b}" for a, b in rng.integers(0, 999, (n, 2))],
            "row_id": np.arange(n),
            "same": "x",
            "none": [None] * n,
        }
    )


def _blocks(encoder):
    """Slices of the result by name of column."""
    result, start = {}, 0
    for column in encoder.columns_:
        result[column.name] = slice(start, start + column.n_features)
        start += column.n_features
    return result


def test_roles_and_total_variances():
    table = _mixed()
    encoder = TableEncoder(balance=0).fit(table)
    roles = {column.name: column.role for column in encoder.columns_}
    assert roles == {
        "mass": Role.number,
        "size": Role.number,
        "island": Role.category,
        "sex": Role.boolean,
        "ok": Role.boolean,
        "day": Role.date,
        "title": Role.long_text,
        "name": Role.short_text,
        "row_id": Role.identifier,
        "same": Role.constant,
        "none": Role.constant,
    }
    Z = encoder.transform(table)
    assert Z.shape[1] == len(encoder.get_feature_names_out())
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    for column in encoder.columns_:
        block = Z[:, _blocks(encoder)[column.name]]
        assert block.var(axis=0).sum() == pytest.approx(column.weight, abs=1e-9)
        assert column.weight == float(Role(column.role).is_used)


@pytest.mark.parametrize("balance", [0, 0.5, 1])
def test_weights_are_those_of_factor_analysis_of_mixed_data(balance):
    """Against the textbook, which is balance 1: z-scores, and (1[k] - p_k) / sqrt(p_k) of total variance K - 1."""
    table = _mixed().loc[:, ["size", "island", "sex"]].dropna().reset_index(drop=True)
    table["three"] = np.where(np.arange(len(table)) % 7 == 0, "p", np.where(np.arange(len(table)) % 3 == 0, "q", "r"))
    encoder = TableEncoder(balance=balance).fit(table)
    Z, blocks, n = encoder.transform(table), _blocks(encoder), len(table)
    z = (table["size"] - table["size"].mean()) / table["size"].std(ddof=0)
    np.testing.assert_allclose(Z[:, blocks["size"]][:, 0], z, atol=1e-8)
    for name in ("island", "three", "sex"):
        levels = sorted(set(table[name]))
        textbook = np.empty((n, len(levels)))
        for k, level in enumerate(levels):
            p = sum(cell == level for cell in table[name]) / n
            textbook[:, k] = [((cell == level) - p) / np.sqrt(p) for cell in table[name]]
        textbook *= (len(levels) - 1) ** ((balance - 1) / 2)
        ours = Z[:, blocks[name]]
        # Words are in another order, and two words make one feature: the inner products of rows are what counts.
        np.testing.assert_allclose(ours @ ours.T, textbook @ textbook.T, atol=1e-10)
        assert ours.shape[1] == (1 if len(levels) == 2 else len(levels))


def test_balance_counts_features_of_equal_strength():
    """r = (sum of eigenvalues)^2 / sum of their squares; two yes/no columns and a number have one feature each."""
    table = _mixed()
    plain, whole = (TableEncoder(balance=balance).fit(table) for balance in (0, 1))
    A, B, blocks = plain.transform(table), whole.transform(table), _blocks(plain)
    for column in plain.columns_:
        block = A[:, blocks[column.name]]
        if not block.shape[1]:
            continue
        values = np.linalg.eigvalsh(np.cov(block.T, bias=True).reshape(block.shape[1], -1))
        strong = values.sum() ** 2 / (values**2).sum()
        np.testing.assert_allclose(B[:, blocks[column.name]], block * np.sqrt(strong), rtol=1e-8, atol=1e-10)
        assert strong >= 1 - 1e-9


def test_weights_change_the_total_variance():
    table = _mixed()
    encoder = TableEncoder(weights={"island": 4.0, "mass": 0.0}, balance=0).fit(table)
    Z, blocks = encoder.transform(table), _blocks(encoder)
    assert Z[:, blocks["island"]].var(axis=0).sum() == pytest.approx(4.0)
    assert blocks["mass"].stop == blocks["mass"].start


def test_missing_numbers_get_the_median_and_common_ones_an_indicator():
    table = _mixed()
    encoder = TableEncoder().fit(table)
    names = list(encoder.get_feature_names_out())
    assert "mass=(missing)" in names
    assert "size=(missing)" not in names
    Z = encoder.transform(table)
    missing = table["mass"].isna().to_numpy()
    at_median = encoder.transform(table.assign(mass=table["mass"].median()))[:, names.index("mass")]
    np.testing.assert_allclose(Z[missing, names.index("mass")], at_median[missing])
    assert set(np.sign(Z[missing, names.index("mass=(missing)")])) == {1.0}


def test_new_rows():
    """Columns in another order, others beside them, unseen words, new missing cells."""
    table = _mixed()
    encoder = TableEncoder().fit(table)
    Z = encoder.transform(table)
    shuffled = table[list(table.columns[::-1])].assign(more=1)
    np.testing.assert_array_equal(encoder.transform(shuffled), Z)
    new = table.iloc[:4].assign(island="never seen", sex="never", ok=None, day="soon", title=None, name="", mass="?")
    encoded, blocks = encoder.transform(new), _blocks(encoder)
    assert np.isfinite(encoded).all()
    np.testing.assert_allclose(encoded[:, blocks["island"]], 0, atol=1e-12)
    np.testing.assert_allclose(encoded[:, blocks["day"]], 0, atol=1e-9)
    for rows in (slice(0, 1), slice(3, 9)):
        np.testing.assert_allclose(encoder.transform(table.iloc[rows]), Z[rows], atol=1e-12)
    with pytest.raises(ValueError, match=r"lacks columns.*'island'"):
        encoder.transform(table.drop(columns="island"))


def test_rare_words_are_pooled():
    n = 400
    words = ["common"] * 150 + [f"w{i % 60}" for i in range(n - 150)]
    table = pandas.DataFrame({"word": words, "x": np.arange(n) % 7})
    encoder = TableEncoder(max_categories=10, roles={"word": "category"}).fit(table)
    names = [name for name in encoder.get_feature_names_out() if name.startswith("word=")]
    assert len(names) == 10
    assert names[0] == "word=common"
    assert names[-1] == "word=(other)"
    unseen = encoder.transform(pandas.DataFrame({"word": ["zzz", "w59"], "x": [1, 1]}))
    np.testing.assert_array_equal(unseen[0], unseen[1])


def test_the_order_of_the_rows_does_not_matter():
    table = _mixed()
    order = np.random.default_rng(3).permutation(len(table))
    a = TableEncoder().fit(table)
    b = TableEncoder().fit(table.iloc[order].reset_index(drop=True).drop(columns="row_id").assign(row_id=0))
    columns = [name for name in a.get_feature_names_out() if "~" not in name]
    index = [list(a.get_feature_names_out()).index(name) for name in columns]
    other = [list(b.get_feature_names_out()).index(name) for name in columns]
    np.testing.assert_allclose(a.transform(table)[:, index], b.transform(table)[:, other], atol=1e-8)


def test_sparse_output_keeps_distances():
    table = _mixed()
    dense = TableEncoder().fit_transform(table)
    thin = TableEncoder(sparse_output=True).fit_transform(table)
    assert thin.format == "csr"
    a, b = dense[:20], thin[:20].toarray()
    np.testing.assert_allclose(a - a[0], b - b[0], atol=1e-9)


def test_polars_and_pandas_agree():
    polars = pytest.importorskip("polars")
    table = _mixed().drop(columns="none")
    other = polars.DataFrame({name: [None if cell != cell else cell for cell in table[name]] for name in table.columns})
    a, b = TableEncoder().fit(table), TableEncoder().fit(other)
    np.testing.assert_allclose(a.transform(table), b.transform(other), atol=1e-10)
    assert [c.role for c in a.columns_] == [c.role for c in b.columns_]


def test_columns_with_the_same_name():
    table = pandas.DataFrame([[1.0, 5, 0], [2, 3, 1], [3, 9, 0]], columns=["a", "a", ""])
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["a", "a.2", "(unnamed)"]


def test_high_cardinality_words_are_read_by_their_characters():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(5000)]
    table = pandas.DataFrame({"word": [words[i] for i in rng.integers(0, 5000, 12_000)]})
    encoder = TableEncoder().fit(table)
    assert encoder.columns_[0].role == Role.short_text
    assert encoder.columns_[0].n_features <= 100


def _descriptions(n, rng):
    """Texts of three subjects, each of its own words and common ones, and of very different lengths."""
    own = [[f"{subject}{k}" for k in range(60)] for subject in ("bird", "tool", "cake")]
    common = [f"word{k}" for k in range(40)]
    y = rng.integers(3, size=n)
    texts = []
    for subject in y:
        length = int(rng.choice([6, 60]))
        words = [*rng.choice(own[subject], length // 3), *rng.choice(common, length - length // 3)]
        texts.append(" ".join(rng.permutation(words)))
    return pandas.DataFrame({"text": texts}), y


def test_texts_against_scikit_learn():
    """TF-IDF of damped counts, its leading directions, and rows of length 1: centred and scaled by one number."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    table, _ = _descriptions(400, np.random.default_rng(0))
    ours = TableEncoder().fit_transform(table)
    peer = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), TruncatedSVD(40, random_state=0), Normalizer()
    ).fit_transform(table["text"])
    peer -= peer.mean(axis=0)
    assert ours.shape == peer.shape
    peer *= np.linalg.norm(ours) / np.linalg.norm(peer)
    np.testing.assert_allclose(ours @ ours.T, peer @ peer.T, atol=1e-8)


@pytest.mark.parametrize(("n", "most", "found"), [(120, 100, 20), (600, 100, 60), (1200, 100, 100), (600, 30, 30)])
def test_directions_of_a_text(n, most, found):
    table, _ = _descriptions(n, np.random.default_rng(n))
    encoder = TableEncoder(text_components=most).fit(table)
    assert encoder.columns_[0].n_features == found


def test_the_length_of_a_text_does_not_count():
    table, y = _descriptions(1000, np.random.default_rng(1))
    Z = TableEncoder().fit_transform(table)
    nearest = KNeighborsClassifier(10)
    assert cross_val_score(nearest, Z, y, cv=3).mean() > 0.9


def test_a_text_of_unknown_words_is_encoded_like_an_empty_one():
    table, _ = _descriptions(200, np.random.default_rng(2))
    encoder = TableEncoder().fit(table)
    new = encoder.transform(pandas.DataFrame({"text": ["entirely different vocabulary here", None, ""]}))
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(new[0], new[1])


def test_files_pickle_clone_and_pandas_output(tmp_path):
    table = _mixed()
    encoder = TableEncoder(weights={"mass": 2.0}).fit(table)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))
    pairlens.save(encoder, tmp_path / "encoder.pairlens")
    stored = pairlens.load(tmp_path / "encoder.pairlens")
    np.testing.assert_array_equal(stored.transform(table), encoder.transform(table))
    assert stored.columns_ == encoder.columns_
    framed = clone(encoder).set_output(transform="pandas").fit_transform(table)
    assert list(framed.columns) == list(encoder.get_feature_names_out())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"roles": {"mas": "number"}}, r"roles= names the column 'mas'.*did you mean 'mass'\?"),
        ({"roles": {"mass": "numbr"}}, r"roles\['mass'\] is 'numbr'; it must be one of 'number'"),
        ({"weights": {"mass": -1.0}}, r"weights\['mass'\] is -1.0; it must be a finite number from 0 on"),
        ({"weights": {"nothing": 1.0}}, "weights= names the column 'nothing'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**parameters).fit(_mixed())


def test_bad_tables():
    with pytest.raises(ValueError, match=r"no column can be learned from \('a': one value"):
        TableEncoder().fit(pandas.DataFrame({"a": ["x", "x", "x"]}))
    with pytest.raises(ValueError, match=r"the column 'a' holds infinity in row 1"):
        TableEncoder().fit(pandas.DataFrame({"a": [1.0, np.inf, 2.0, 5.0]}))
    with pytest.raises(ValueError, match="minimum of 2"):
        TableEncoder().fit(pandas.DataFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="complex"):
        TableEncoder().fit(pandas.DataFrame({"a": [1j, 2j, 3j]}))


def test_collections_in_cells_are_left_out_and_said():
    table = pandas.DataFrame({"n": [1.0, 2.5, 3.0], "l": [[1, 2], [3], []], "d": [{"a": 1}, {}, None]})
    encoder = TableEncoder().fit(table)
    assert [(column.name, column.role) for column in encoder.columns_[1:]] == [("l", "dropped"), ("d", "dropped")]
    assert "give their entries as columns" in encoder.columns_[1].note
    np.testing.assert_array_equal(encoder.transform(table), TableEncoder().fit_transform(table[["n"]]))
    assert TableEncoder(roles={"l": "category"}).fit_transform(table).shape == (3, 4)


def test_tables_of_other_kinds_are_those_of_pandas():
    columns = {"n": [1.0, 2.5, 3.0, 2.0], "w": ["a", "b", "a", "b"]}
    expected = TableEncoder().fit_transform(pandas.DataFrame(columns))
    np.testing.assert_array_equal(TableEncoder().fit_transform(columns), expected)
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for table in (polars.DataFrame(columns).lazy(), arrow.table(columns)):
        np.testing.assert_array_equal(TableEncoder().fit_transform(table), expected)
    with_struct = polars.DataFrame({**columns, "s": [{"a": 1}] * 4})
    np.testing.assert_array_equal(TableEncoder().fit_transform(with_struct), expected)


def test_a_table_without_columns_is_said_to_have_none():
    with pytest.raises(ValueError, match="the table has no columns"):
        TableEncoder().fit(pandas.DataFrame(index=range(5)))


def test_numbers_may_keep_their_values():
    """Words are encoded all the same, missing numbers take the median, and columns of one value are left out."""
    frame = pandas.DataFrame(
        {
            "big": np.linspace(1000, 2000, 60),
            "flag": np.arange(60) % 2,
            "same": 3.0,
            "gap": [np.nan, *np.arange(59.0)],
            "word": ["x", "y", "z"] * 20,
        }
    )
    kept, scaled = (TableEncoder(standardize=standardize).fit(frame) for standardize in (False, True))
    assert [column.role for column in kept.columns_] == ["number", "yes/no", "constant", "number", "category"]
    found = kept.transform(frame)
    np.testing.assert_array_equal(found[:, :2], frame[["big", "flag"]])
    np.testing.assert_array_equal(found[:, 2], frame["gap"].fillna(29.0))
    np.testing.assert_array_equal(found[:, 3:], scaled.transform(frame)[:, 3:])
    assert kept.number_blocks() is None
    assert len(TableEncoder().fit(frame.drop(columns="word")).number_blocks()) == 3


def test_an_error_names_the_row_of_the_table():
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0]}).set_axis([10, 11, 12])
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InputError, match="the column 'a' holds infinity in row 12") as caught:
        encoder.transform(frame.assign(a=[1.0, 2.0, np.inf]))
    assert caught.value.value == np.inf

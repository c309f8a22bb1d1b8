"""Put the page together."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._atomic import write_atomically
from pairlens._markup import Markup, joined, packed, plain, policy_hash, script_data, tag
from pairlens._optional import require
from pairlens._text import count
from pairlens._version import __version__
from pairlens.engines import IntArray
from pairlens.report import _sections as sections
from pairlens.report._pairs import ConstraintPart, Material, PreferencePart, rank
from pairlens.report._points import cards, choose_rows, colours, names
from pairlens.report._views import MAX_AXES, feature_weights, look
from pairlens.selection.comparison import ViewJudgement, judge_view
from pairlens.supervision import Constraints, Preferences
from pairlens.supervision.combined import combine, combine_preferences
from pairlens.tables.islands import TextIndex
from pairlens.tables.pictures import PictureFolder

EQUAL_UP_TO = 1.25
"""Ratio of the widths of two axes up to which one scale for both does not squeeze the points."""
Part = ConstraintPart | PreferencePart

POLICY = (
    "default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'"
)
"""No network, and no script but ours. Plotly's WebGL compiles its drawing functions, which is what needs eval."""


def build_report(
    model: Any,
    X: Any,
    *,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    ids: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    beside: Mapping[str, ArrayLike] | None = None,
    pictures: PictureFolder | None = None,
    texts: Sequence[str] | None = None,
    columns: Sequence[Mapping[str, Any]] | None = None,
    feature_names: ArrayLike | None = None,
    title: str = "",
    run: Mapping[str, Any] | None = None,
    random_state: int = 0,
    judgement: ViewJudgement | None = None,
    n_splits: int = 5,
) -> str:
    """Return one self-contained HTML page about a fitted model: its view beside PCA's, the pairs, the features.

    A :class:`~pairlens.PairMap` is shown beside a t-SNE of the rows alone, too. Of the pairs, those that are most
    violated and those that look wrong are drawn; the others can be added.

    Equal input gives equal bytes. The page asks the network for nothing, and all that comes from the data is escaped.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted. One that ranks and has no view (``RankSVM``) is shown by its scores.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows, as the model takes them (before the scaler of a pipeline).
    constraints : Constraints, optional
        The pairs that the model was fitted with.
    preferences : Preferences, optional
        The preferences that it was fitted with.
    ids : array-like of shape (n_samples,), optional
        What to call the rows; their numbers by default.
    labels : array-like of shape (n_samples,), optional
        Colours the rows; -1 or missing where unknown. Many different numbers make a scale of colours.
    beside : mapping of str to array-like of shape (n_samples,), optional
        What people know of the rows, by the name of the column: shown with them, at most 8 columns.
    pictures : PictureFolder, optional
        Pictures of rows, as :class:`pairlens.tables.pictures.PictureFolder` finds them. At most 300 go into the page,
        those of rows in pairs first, none larger than 64 pixels and 16 KiB.
    texts : sequence of str, optional
        A text for each row. In a view of two directions, each island has the words that tell its texts from the others.
    columns : sequence of mappings, optional
        What a :class:`~pairlens.TableEncoder` did with each column of the table that X was made of: its `columns_`, as
        mappings.
    feature_names : array-like of shape (n_features,), optional
        Names of the features of X; by default those of its columns, or of the fit.
    title : str, default=""
        The heading; the name of the method by default.
    run : mapping, optional
        What was run, to be shown: versions, parameters, seeds, timings. Mappings in it become tables of their own.
    random_state : int, default=0
        For the folds over pairs, and for the samples of what is too much to draw.
    judgement : ViewJudgement, optional
        The result of :func:`pairlens.selection.comparison.judge_view`, if it is known already.
    n_splits : int, default=5
        Number of folds over the pairs, for methods that do not hold out pairs in `fit`; below 2 these are not judged.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import WBDR, Constraints
    >>> from pairlens.report import build_report
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=30, random_state=0)
    >>> page = build_report(WBDR(2).fit(X, constraints=pairs), X, constraints=pairs, labels=y)
    >>> page.startswith("<!doctype html>")
    True
    """
    plotly = require("plotly.offline", extra="report", purpose="The report").get_plotlyjs()
    fitted = look(model, X, feature_names)
    n, n_dims = fitted.Z.shape
    if judgement is None:
        judgement = judge_view(
            model, X, constraints=constraints, preferences=preferences, n_splits=n_splits, random_state=random_state
        )
    others = judgement.controls
    told = cards(beside, pictures, combine(None, constraints, n).rows, n)
    called = names(ids, n, {} if told is None else told.pictures)
    material = Material(fitted, judgement, called, colours(labels, n), random_state)
    parts = _parts(material, constraints, preferences)
    needed = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(part.rows for part in parts)]))
    drawn = choose_rows(n, needed, random_state)
    place = np.full(n, -1)
    place[slice(None) if drawn is None else drawn] = np.arange(n if drawn is None else len(drawn))
    islands = [] if texts is None or n_dims != 2 else TextIndex.of(texts).islands(fitted.Z)
    views = (("view", material.method, fitted.axes, fitted.Z), *((c.key, c.name, c.axes, c.Z) for c in others))
    payload = {
        "n": n if drawn is None else len(drawn),
        "rows": None if drawn is None else packed(drawn, "i4"),
        "ids": material.names.as_text(drawn),
        "colours": material.colours.payload(drawn),
        "beside": None if told is None else told.payload(drawn, n),
        "islands": [asdict(island) for island in islands],
        "equal": all(_alike_wide(Z) for _, _, _, Z in views),
        "views": [{"key": key, "axes": axes[:MAX_AXES], "columns": _columns(Z, drawn)} for key, _, axes, Z in views],
        "pairs": [
            {
                "kind": lines.kind,
                "a": packed(place[lines.pairs[:, 0]], "i4"),
                "b": packed(place[lines.pairs[:, 1]], "i4"),
                "judged": [packed(one, "u1") for one in lines.judged],
                "listed": packed(lines.listed, "u1"),
            }
            for part in parts
            for lines in part.lines
        ],
    }
    heading = plain(title) if title else f"{material.method}: {count(n, 'row')} in {count(n_dims, 'direction')}"
    captions = _captions(material, bool(islands))
    panels = [
        sections.panel(
            key, name, axes[:MAX_AXES], ". ".join(filter(None, (part.described[k] for part in parts))), caption
        )
        for k, ((key, name, axes, _), caption) in enumerate(zip(views, captions))
    ]
    n_drawn = n if drawn is None else len(drawn)
    plots = sections.view_section(
        panels,
        [lines.kind for part in parts for lines in part.lines],
        [control.name for control in others],
        has_colours=material.colours.codes is not None,
        n_axes=n_dims,
        n_drawn=n_drawn,
        n_rows=n,
    )
    more = [
        *([] if told is None else [told.section(combine(None, constraints, n).rows, called, n)]),
        *([] if columns is None else [sections.columns_section(columns)]),
    ]
    return _fill(heading, _body(material, heading, plots, parts, place, more, run), payload, plotly)


def write_report(path: str | PathLike[str], model: Any, X: Any, **options: Any) -> None:
    """Write the page of :func:`build_report` to a file, all of it or nothing.

    Parameters
    ----------
    path : str or path
        Where to.
    model, X, **options
        Those of :func:`build_report`.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LPP
    >>> from pairlens.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(os.path.join(folder, "report.html"), LPP(2).fit(X), X, labels=y)
    ...     os.listdir(folder)
    ['report.html']
    """
    write_atomically(path, build_report(model, X, **options))


class Report:
    """Show the page of a fitted model in a notebook, in a frame of its own.

    Parameters
    ----------
    model, X, **options
        Those of :func:`build_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LPP
    >>> from pairlens.report import Report
    >>> X, y = load_iris(return_X_y=True)
    >>> Report(LPP(2).fit(X), X, labels=y)._repr_html_()[:7]
    '<iframe'
    """

    def __init__(self, model: Any, X: Any, **options: Any) -> None:
        self.html = build_report(model, X, **options)

    def _repr_html_(self) -> str:
        return str(
            tag(
                "iframe",
                srcdoc=self.html,
                title="pairlens report",
                style="width:100%;height:800px;border:0",
                sandbox="allow-scripts",
            )
        )


def _parts(material: Material, constraints: Constraints | None, preferences: Preferences | None) -> list[Part]:
    fitted, n = material.fitted, len(material.fitted.Z)
    parts: list[Part] = []
    known, preferred = combine(None, constraints, n), combine_preferences(None, preferences, n)
    if known.n_pairs:
        parts.append(ConstraintPart(material, known))
    if preferred.n_pairs and (ranked := rank(fitted.estimator, fitted.rows, preferred, material.seed)) is not None:
        parts.append(PreferencePart(material, ranked))
    return parts


def _columns(Z: NDArray[np.float64], drawn: IntArray | None) -> list[dict[str, str]]:
    chosen = Z[:, :MAX_AXES] if drawn is None else Z[drawn, :MAX_AXES]
    return [{(kind := _precision(column)): packed(column, kind)} for column in chosen.T]


def _precision(column: NDArray[np.float64]) -> str:
    """Return four bytes a number, eight where the points would leave their range or fall together."""
    size, width = np.abs(column).max(), np.ptp(column)
    single = np.finfo(np.float32)
    fits = size < single.max and (width == 0 or (width > 1e-3 * size and width > 1e3 * single.tiny))
    return "f4" if fits else "f8"


def _alike_wide(Z: NDArray[np.float64]) -> bool:
    """Return whether the first two axes are about as wide, so that one scale for both leaves room."""
    width = np.ptp(Z[:, :2], axis=0)
    return bool(width.max() <= EQUAL_UP_TO * width.min())


def _captions(material: Material, has_words: bool) -> tuple[str, ...]:
    fitted, colour = material.fitted, material.colours
    steps = [type(step).__name__ for step in fitted.steps]
    after = f", after {' and '.join(steps)}" if steps else ""
    heights = ""
    words = " The words tell the texts of an island from the others." if has_words else ""
    if fitted.Z.shape[1] == 1:
        heights = " The height of a point means nothing."
        if colour.numbers is not None:
            heights = " The height of a point is its label."
        elif colour.given:
            heights = " Rows of one label share a band; the height inside it means nothing."
    return (
        f"What {material.method} makes of the rows{after}.{heights}{words}",
        *(f"{control.name} of the same rows{after}. It sees no pair." for control in material.judgement.controls),
    )


def _body(
    material: Material,
    heading: str,
    plots: Markup,
    parts: Sequence[Part],
    place: IntArray,
    more: Sequence[Markup],
    run: Mapping[str, Any] | None,
) -> Markup:
    fitted, method = material.fitted, material.method
    n, n_dims = fitted.Z.shape
    rows = sections.figure("rows", f"{n:,}", f"{count(fitted.rows.shape[1], 'feature')} → {count(n_dims, 'direction')}")
    chain = [*fitted.steps, fitted.estimator]
    values, spaces = (getattr(fitted.estimator, name, None) for name in ("eigenvalues_", "space_weights_"))
    content = [part for each in parts for part in each.sections(place)]
    steps = [type(step).__name__ for step in fitted.steps]
    return joined(
        tag(
            "header",
            tag(
                "div",
                tag("h1", tag("bdi", heading)),
                tag("p", " → ".join(type(step).__name__ for step in chain), class_="lead"),
            ),
            tag("button", "Dark", id="theme", type="button"),
        ),
        tag(
            "main",
            tag("dl", rows, *(one for part in parts for one in part.figures), class_="figures"),
            plots,
            None if spaces is None else sections.spaces_section(spaces, fitted.estimator.auc_),
            *content,
            *more,
            sections.features_section(*feature_weights(fitted), fitted.axes, fitted.names, steps),
            None if values is None or len(values) == 0 else sections.eigenvalues_section(np.asarray(values), method),
            sections.run_section([(type(step).__name__, changed_parameters(step)) for step in chain], run),
            id="content",
        ),
        tag(
            "footer", tag("p", f"pairlens {__version__}, drawn with plotly.js. This page asks the network for nothing.")
        ),
        tag("div", id="tip", role="status", hidden=True),
    )


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(estimator).__init__).parameters.items()
    }
    given = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    written = {name: (type(value), repr(value)) for name, value in defaults.items()}
    return {name: value for name, value in given.items() if (type(value), repr(value)) != written.get(name)}


def _fill(heading: str, body: Markup, payload: Mapping[str, Any], plotly: str) -> str:
    """Fill the places of the template, all in one pass: what is filled in is not looked at again."""
    scripts = {"theme": _resource("theme.js"), "plotly": plotly.replace("\r\n", "\n"), "code": _resource("page.js")}
    filled = {
        "policy": html.escape(POLICY.format(hashes=" ".join(policy_hash(text) for text in scripts.values()))),
        "version": html.escape(__version__),
        "title": html.escape(heading),
        "style": _resource("page.css"),
        "body": body,
        "data": script_data(payload),
        **scripts,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filled[place[1]], _resource("page.html"))


def _resource(name: str) -> str:
    return files("pairlens.report").joinpath(name).read_text(encoding="utf-8")

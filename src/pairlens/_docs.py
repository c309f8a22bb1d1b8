"""Complete the docstrings of classes by what their base classes say."""

from __future__ import annotations

import inspect
import re

SHARED = {
    "Parameters": """\
neighbors : {"auto", "exact", "approx"}, default="auto"
    How neighbours are found. "exact" compares all rows with all; "approx" finds at least 95 % of them in an index,
    in time that grows little faster than n, and needs ``pairlens[ann]``. "auto" takes the index for more than
    25,000 dense rows in memory (docs/scaling.md).
shrinkage : float in [0, 1] or "auto", default="auto"
    How far :math:`S_W` moves towards the identity and :math:`S_B` towards the total scatter of all rows; see
    :class:`BWDR`. 0.0 is the method of the paper, for which only the rows in pairs count.
shrinkage_factor : float, default=1.0
    Factor c of the number p of coordinates in "auto". 1 to 3 suits clean pairs, 10 and more noisy ones.
standardize : bool, default=True
    Whether to divide each feature by its deviation; those in which few rows differ, such as pixels at the border of
    pictures, count less than that. Choose False for features on one scale of their own: principal components,
    embeddings, pixels, and the rows of a :class:`TableEncoder`.""",
    "Attributes": """\
n_features_in_ : int
    Number of features seen in :meth:`fit`.
feature_names_in_ : array of str
    Names of the features, if X had any.""",
}
"""What parameters and attributes mean that classes without a common base have."""

HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def complete_docstring(cls: type) -> None:
    """Add the parameters and attributes that the docstring of a class leaves to its base classes, or to `SHARED`.

    So a class describes what is its own, or other than in its base class, and `help` and the pages show everything:
    parameters in the order of ``__init__``, attributes those of the class first.
    """
    if not vars(cls).get("__doc__"):
        return
    own = _sections(cls)
    bases = [_sections(base) for base in cls.__mro__[1:] if base.__module__.startswith("pairlens.") and base.__doc__]
    parameters, attributes = (_described(name, own, [*bases, SHARED]) for name in ("Parameters", "Attributes"))
    accepted = [name for name in inspect.signature(cls).parameters if name in parameters]
    parameters = {name: parameters[name] for name in accepted} | _entries(own.get("Parameters", ""))
    complete = {"": own[""], "Parameters": _joined(parameters), "Attributes": _joined(attributes)}
    complete |= {name: body for name, body in own.items() if name not in complete}
    cls.__doc__ = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{body}" if name else body for name, body in complete.items() if body
    )


def _sections(cls: type) -> dict[str, str]:
    """Return the sections of a docstring by name; what stands before the first has none."""
    summary, *rest = HEADER.split(inspect.cleandoc(cls.__doc__ or ""))
    return {"": summary.strip("\n")} | {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2])}


def _entries(body: str) -> dict[str, str]:
    """Return what a section says of each name; "a, b : float" stands under both."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", body) if body else ():
        names = entry.partition("\n")[0].partition(" :")[0]
        found |= {name.strip().lstrip("*"): entry for name in names.split(",")}
    return found


def _described(section: str, own: dict[str, str], bases: list[dict[str, str]]) -> dict[str, str]:
    """Return what the class or else the nearest of its bases says of each name."""
    found: dict[str, str] = {}
    for sections in (own, *bases):
        for name, entry in _entries(sections.get(section, "")).items():
            found.setdefault(name, entry)
    return found


def _joined(entries: dict[str, str]) -> str:
    return "\n".join(dict.fromkeys(entries.values()))

"""First words of docstrings: functions and methods begin with a verb, classes and properties with a verb or a noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pairlens

ROOT = Path(pairlens.__path__[0])
# Modules beside the packages count as the package ".".
PACKAGES = [".", *sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))]
# What a function can do. Add a verb that is missing, in the form of "Return the number of rows."
VERBS = set((Path(__file__).parent / "fixtures" / "verbs.txt").read_text("utf-8").split())
NO_NOUN = ("what", "whether", "how", "which", "who", "whose", "where", "when", "why", "if", "there", "their", "those")
NO_NOUN += ("something", "it", "this", "that")
# Plurals of nouns, and not the third person of a verb.
PLURALS = ("answers", "bounds", "counts", "folds", "groups", "labels", "links", "maps", "marks", "names", "numbers")
PLURALS += (
    "orders",
    "places",
    "ranks",
    "reports",
    "samples",
    "scales",
    "scores",
    "shares",
    "signs",
    "slices",
    "squares",
)
PLURALS += ("sums", "tests", "times", "weights")


@cache
def first_words() -> tuple[tuple[str, str, str, bool], ...]:
    """Return the package, the place and the first word of every docstring, and whether it is that of a function."""
    return tuple(_first_words())


def _first_words() -> Iterator[tuple[str, str, str, bool]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            text = ast.get_docstring(node)
            if text is None:
                continue
            like_a_noun = isinstance(node, ast.ClassDef) or any(
                "property" in ast.unparse(one) for one in node.decorator_list
            )
            place = f"{'/'.join(parts)}:{node.lineno} {node.name}: {text.splitlines()[0]}"
            yield (
                parts[0] if len(parts) > 1 else ".",
                place,
                re.split(r"[\s,.:;]", text, maxsplit=1)[0],
                not like_a_noun,
            )


def is_right(word: str, *, function: bool) -> bool:
    """Return whether a docstring may begin with this word."""
    plain = word.lower()
    if function:
        return plain in VERBS
    third_person = plain.endswith("s") and {plain[:-1], plain[:-2]} & VERBS and plain not in PLURALS
    return bool(re.match(r"\w|:math:", word)) and plain not in NO_NOUN and not third_person


def wrong_places(package: str) -> list[str]:
    """Return the docstrings of a package that begin with another word."""
    return [
        place
        for home, place, word, function in first_words()
        if home == package and not is_right(word, function=function)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_a_verb(package):
    assert any(home == package for home, *_ in first_words())
    assert not (wrong := wrong_places(package)), "\n".join(wrong)


@pytest.mark.parametrize(
    ("word", "function", "right"),
    [
        ("Return", True, True),
        ("Returns", True, False),
        ("The", True, False),
        ("Whether", True, False),
        ("Number", False, True),
        ("Encode", False, True),
        ("A", False, True),
        ("Names", False, True),
        ("Keeps", False, False),
        ("What", False, False),
        ("``np.flatnonzero``", False, False),
    ],
)
def test_the_rule(word, function, right):
    assert is_right(word, function=function) is right


if __name__ == "__main__":  # how many are left, by package: python -m tests.test_docstrings
    for one in sorted({home for home, *_ in first_words()}):
        print(f"{one:12} {len(wrong_places(one)):4} of {sum(home == one for home, *_ in first_words())}")

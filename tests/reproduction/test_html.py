"""The HTML page of a folder of results: complete, the same for equal runs, and safe whatever names and notes hold."""

from __future__ import annotations

import base64
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reproduction import Claim, Column, DataSet, Experiment, Figure, Method, Result, Results, Table, command
from reproduction.command import REPORT, UNITS, reproduce, write_report
from reproduction.html import Entry, report_html
from reproduction.results import Row
from reproduction.tables import Section, section
from tests.reproduction import tiny

VOID = {"br", "hr", "img", "link", "meta"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)></style></td>&amp;\ud800\u202e`<b>`"


class Page(HTMLParser):
    """A page taken apart; every element must be closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def checked(text: str) -> Page:
    """The page, which needs and runs nothing, and whose links all lead somewhere."""
    page = Page(text)
    assert not {name for name, _ in page.tags} & {"script", "iframe", "object", "svg", "form", "base"}
    assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on") or key == "style"]
    assert all(re.match(r"data:image/(png|svg\+xml);base64,", one["src"]) for one in page.of("img"))
    assert all(one["href"] == "data:," for one in page.of("link"))
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert set(ids.values()) == {1}
    assert {one["href"].removeprefix("#") for one in page.of("a")} <= set(ids)
    (policy,) = [one["content"] for one in page.of("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "url(" not in text
    assert "http://" not in text
    assert "https://" not in text
    return page


def other() -> Experiment:
    return replace(tiny.experiment(), name="other", title="Another one", version=2)


@pytest.fixture
def catalogue(monkeypatch):
    found = [tiny.experiment(), other()]
    monkeypatch.setattr(command, "experiments", lambda names=None: found)
    return found


def run(names, folder, **options) -> str:
    said: list[str] = []
    assert reproduce(names, out=folder, quiet=True, say=said.append, **{"profile": "full", **options}) == 0
    assert said
    return (folder / REPORT).read_text(encoding="utf-8")


def made_up(limit: float = 0.15, **changes) -> Section:
    table = Table(
        "Accuracy",
        (
            Column("M", "M", "accuracy", printed={"a": 0.5, "b": 0.9, "c": 0.7}),
            Column("N", "N", "accuracy", printed={"a": 0.5}, compared=False),
        ),
        notes={("b", "M"): "Known, see `that`.", ("", "N"): "Ours."},
        limits={"M": limit, "N": 1.0},
    )
    experiment = Experiment(
        name="made-up",
        title="Made up",
        protocol=tiny.measure,
        sets=(DataSet("a"), DataSet("b"), DataSet("c")),
        text=("Paper: A. Uthor.",),
        tables=(table,),
    )
    rows = [Row(name, 0, 0, Result("M", value, "accuracy")) for name, value in (("a", 0.6), ("b", 0.6))]
    rows += [Row(name, 0, 0, Result("N", 0.25, "accuracy")) for name in "abc"]
    return section(replace(experiment, **changes), Results(rows))


def test_cells_say_without_colour_whether_they_are_within_the_limit():
    text = report_html([Entry(made_up())])
    page = checked(text)
    assert '<td>0.600<span class="printed">0.500 / <span class="within">+0.100 ✓</span></span></td>' in text
    assert '<td>0.600<sup> [2]</sup><span class="printed">0.900 / ' in text
    assert '<span class="outside">\N{MINUS SIGN}0.300 ✗</span></span></td>' in text
    assert '<td>not measured<span class="printed">0.700</span></td>' in text
    # A column that does not count among the differences has no verdict.
    assert '<td>0.250<span class="printed">0.500 / \N{MINUS SIGN}0.250</span></td>' in text
    assert "<li>Ours.</li><li>Known, see <code>that</code>.</li>" in text
    assert "0.15: not within ✗" in page.text
    assert "limits kept: 0 of 1" in page.text
    assert "0.2: within ✓" in checked(report_html([Entry(made_up(0.2))])).text
    assert "Paper: A. Uthor." in page.text


def test_statements():
    def check(holds):
        def found(results):
            if holds is None:
                raise LookupError
            return holds, "0.5 < 1"

        return found

    claims = tuple(Claim(f"claim {holds}", check(holds)) for holds in (True, False, None))
    page = checked(report_html([Entry(made_up(claims=claims))]))
    assert "✓holds: claim True (0.5 < 1)" in page.text
    assert "✗does not hold: claim False (0.5 < 1)" in page.text
    assert "?open (not all of it was run): claim None" in page.text
    assert "statements of the paper that hold: 1 of 3" in page.text


def test_hostile_names_and_notes(tmp_path):
    experiment = replace(
        tiny.experiment(),
        name=HOSTILE,
        title=HOSTILE,
        sets=(DataSet("left", title=HOSTILE, note=HOSTILE),),
        methods=(Method(HOSTILE, tiny.Shifted, note=HOSTILE),),
        text=(HOSTILE,),
        notes=(HOSTILE,),
        tables=(
            Table(
                HOSTILE,
                (Column(HOSTILE, HOSTILE, "score", printed={"left": 0.4}),),
                notes={("left", HOSTILE): HOSTILE},
                text=HOSTILE,
                limits={HOSTILE: 0.1},
            ),
        ),
        figures=(Figure(HOSTILE, "score", "dim", x_label=HOSTILE), Figure(HOSTILE, "score", "dim", name="b")),
        claims=(Claim(HOSTILE, lambda results: (True, HOSTILE)),),
    )
    rows = [Row("left", run_, 0, Result(HOSTILE, 0.4, "score", {"dim": d})) for run_ in (0, 1) for d in (1, 2)]
    picture = tmp_path / "picture.svg"
    picture.write_text("<svg><script>alert(3)</script></svg>")
    shown = section(experiment, Results(rows), missing=[HOSTILE], state=HOSTILE)
    text = report_html([Entry(shown, {"": [picture]}, reason=HOSTILE)], left_out=[HOSTILE])
    page = checked(text)
    assert "<script" not in text
    assert text.encode("utf-8")
    # Each is on the page as the text that it is; what cannot be shown is replaced.
    safe = HOSTILE.replace("\ud800", "\ufffd").replace("\u202e", "\ufffd")
    assert page.text.count(safe) + page.text.count(safe.replace("`", "")) >= 20
    assert len(page.of("img")) == 1


@pytest.mark.usefixtures("catalogue")
def test_the_command_writes_one_page_of_all(tmp_path):
    first = checked(run(["tiny"], tmp_path))
    assert "Another one" not in first.text
    together = run(["tiny", "other"], tmp_path)
    page = checked(together)
    assert [one["id"] for one in page.of("section") if "experiment" in (one.get("class") or "")] == [
        "experiment-tiny",
        "experiment-other",
    ]
    assert [one["href"] for one in page.of("a")][1:3] == ["#experiment-tiny", "#experiment-other"]
    assert len(page.of("img")) == 2
    assert "right: the other one." in page.text
    # One after the other gives the same page as both at once, in another folder as well.
    apart = tmp_path / "apart"
    run(["other"], apart)
    assert run(["tiny"], apart) == together
    assert run(["other"], apart) == together


def test_equal_runs_equal_bytes(tmp_path, catalogue):
    assert run(["tiny"], tmp_path / "one") == run(["tiny"], tmp_path / "two", jobs=2)
    catalogue[0] = replace(catalogue[0], timed=True)
    assert "not the same from run to run" in run(["tiny"], tmp_path / "one")


def experiment_of(text: str, name: str = "tiny") -> str:
    found = re.search(rf'<section class="experiment" id="experiment-{name}">.*?</section>', text, re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": 5}, "5 runs of 2 parts each on each data set."),
        ({"runs": 2}, "2 runs of 2 parts each on each data set."),
        ({"sets": ["left"]}, "Not run: right."),
        ({"profile": "quick"}, "1 run of 2 parts each on each data set."),
    ],
)
def test_earlier_results_are_shown_as_they_were_run(tmp_path, options, words):
    before = experiment_of(run(["tiny"], tmp_path, **options))
    text = run(["other"], tmp_path, profile=options.get("profile", "full"))
    after = checked(text)
    assert words in after.text
    # Only that something was not asked for is not known any more.
    assert experiment_of(text).replace("<p>Not run: right.</p>", "") == before
    # Limits are for the whole experiment only.
    assert ("limits kept" in after.text.partition("other ·")[0]) == (options == {"runs": 5})


def test_what_cannot_be_shown_is_named(tmp_path, catalogue):
    run(["tiny", "other"], tmp_path)
    units = sorted((tmp_path / UNITS).glob("*/*.json"))
    stored = units[0].read_text()
    catalogue[0] = replace(catalogue[0], version=7)
    page = checked(run(["other"], tmp_path))
    assert "tiny.md: no results of the experiment as it is defined now are stored." in page.text
    assert "A tiny experiment" not in page.text

    catalogue[0] = tiny.experiment()
    broken = [path for path in units if path.parent.name.endswith(tiny.experiment().fingerprint(catalogue[0].sets[0]))]
    broken[0].write_text(stored[:5])
    page = checked(run(["other"], tmp_path))
    assert "is not a file of results" in page.text
    assert "A tiny experiment" not in page.text

    broken[0].unlink()
    (tmp_path / "tiny.png").unlink()
    (tmp_path / "tiny.svg").unlink()
    write_report(tmp_path, profile="full")
    page = checked((tmp_path / REPORT).read_text(encoding="utf-8"))
    assert "Incomplete: 1 of 12 units have no results." in page.text
    assert "No picture: its file is not in the folder." in page.text


@pytest.mark.usefixtures("catalogue")
def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = checked(run(["tiny"], tmp_path))
    assert page.of("img") == []
    assert "No picture: " in page.text
    assert "pip install 'pairlens[report]'" in page.text
    # The numbers stand in for the picture.
    assert [one for one in page.of("details") if "open" in one]


def test_the_smallest_picture_is_taken_and_numbers_are_folded(tmp_path):
    files = [tmp_path / "x.svg", tmp_path / "x.png"]
    files[0].write_bytes(b"vector")
    files[1].write_bytes(b"pixels!")
    figure = Figure("Curves", "score", "dim")
    rows = [Row("left", 0, 0, Result("A", 0.123, "score", {"dim": d})) for d in (1, 2)]
    shown = section(replace(tiny.experiment(), figures=(figure,)), Results(rows))
    page = checked(report_html([Entry(shown, {"": files})]))
    (picture,) = page.of("img")
    assert picture == {"alt": "Curves", "src": f"data:image/svg+xml;base64,{base64.b64encode(b'vector').decode()}"}
    assert page.of("details") == [{}]
    assert "0.123" in page.text
    files[0].write_bytes(b"vector and more")
    assert "data:image/png" in report_html([Entry(shown, {"": files})])


def test_no_results():
    assert "There are no results." in checked(report_html([])).text

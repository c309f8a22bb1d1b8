"""Tables, figures and the page: what is printed is what was measured, and equal results give equal files."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from reproduction import Claim, Column, DataSet, Experiment, Figure, Result, Results, Table, run
from reproduction.command import UNITS, write_output
from reproduction.figures import save_all
from reproduction.markdown import markdown, page_text
from reproduction.results import Archive, Row
from reproduction.tables import ClaimShown, Difference, section
from reproduction.tasks import Store
from tests.reproduction import tiny

EXPERIMENT = Experiment(
    name="made-up",
    title="Made up",
    protocol=tiny.measure,
    sets=(DataSet("a", title="1 a", scaling="minmax"), DataSet("b", fill="zero", note="odd.")),
    runs=2,
    tables=(
        Table(
            "Accuracy",
            (
                Column("M 5", "M", "accuracy", {"pairs": 5}, {"a": 0.5, "b": 0.9}, best_over="dim"),
                Column("N", "N", "accuracy", best_over="dim"),
            ),
            notes={("b", "M 5"): "Known.", ("", "N"): "Ours.", ("a", ""): "Known."},
            limits={"M": 0.25},
        ),
    ),
)


def results() -> Results:
    rows = []
    for name, level in (("a", 0.5), ("b", 0.6)):
        for run_ in (0, 1):
            for d, gain in ((1, 0.0), (2, 0.1)):
                spread = 0.02 * run_
                rows.append(Row(name, run_, 0, Result("M", level + gain + spread, "accuracy", {"pairs": 5, "dim": d})))
                rows.append(Row(name, run_, 0, Result("M", 0.0, "accuracy", {"pairs": 20, "dim": d})))
        rows.append(Row(name, 0, 0, Result("N", float("nan") if name == "b" else 0.25, "accuracy", {"dim": 1})))
    return Results(rows)


def test_cells_differences_and_notes():
    text = markdown(section(EXPERIMENT, results()))
    assert "| set | M 5 | N [1] |" in text
    # Means over runs are 0.51 and 0.61 at dimensions 1 and 2 on a: the second is the best.
    assert "| 1 a [2] | 0.500 / 0.610 ± 0.010 / +0.110 | 0.250 |" in text
    assert "| b | 0.900 / 0.710 ± 0.010 / -0.190 [2] |  |" in text
    assert "1. Ours.\n2. Known." in text
    assert "- M: 0.1500 over 2 numbers; within the limit 0.25" in text
    assert "- 1 a: each feature to [0, 1]." in text
    assert "- b: raw; missing cells are 0." in text
    assert "- b: odd." in text
    assert "2 runs on each data set." in text


def differences(experiment: Experiment) -> tuple[Difference, ...]:
    return section(experiment, results()).tables[0].differences


def test_limits_are_for_the_whole_experiment():
    (found,) = differences(EXPERIMENT)
    assert (found.method, found.count, found.reproduced) == ("M", 2, True)
    assert found.mean == pytest.approx(0.15)
    strict = replace(EXPERIMENT.tables[0], limits={"M": 0.1})
    assert differences(replace(EXPERIMENT, tables=(strict,)))[0].reproduced is False
    for part in (EXPERIMENT.only(sets=["a"]), EXPERIMENT.only(runs=1), EXPERIMENT.with_profile("quick")):
        assert differences(part)[0].reproduced is None
    assert EXPERIMENT.only(runs=2).tables == EXPERIMENT.tables


def test_rows_by_condition_and_only_some_sets():
    table = Table("By dimension", (Column("M", "M", "accuracy", {"pairs": 5}, {"2": 0.6}),), row="dim", sets=("a",))
    text = markdown(section(replace(EXPERIMENT, tables=(table,)), results()))
    assert "| dim | M |\n|---|---|\n| 1 a, 1 | 0.510 ± 0.010 |\n| 1 a, 2 | 0.600 / 0.610 ± 0.010 / +0.010 |" in text


def test_claims():
    def true(found: Results) -> tuple[bool, str]:
        return found.mean("M", "accuracy", set="a", at={"pairs": 5}, best_over="dim") > 0.6, "0.610"

    def false(found: Results) -> tuple[bool, str]:
        return False, "no"

    def unknown(found: Results) -> tuple[bool, str]:
        return found.mean("other", "accuracy") > 0, "?"

    claims = (Claim("M is good", true), Claim("N is good", false), Claim("other is good", unknown))
    text = markdown(section(replace(EXPERIMENT, claims=claims), results()))
    assert "- holds: M is good (0.610)" in text
    assert "- does not hold: N is good (no)" in text
    assert "- open (not all of it was run): other is good" in text


def test_csv():
    lines = results().to_csv().splitlines()
    assert lines[0] == "set,run,part,method,measure,pairs,dim,value"
    assert lines[1] == "a,0,0,M,accuracy,5,1,0.5"
    assert len(lines) == 1 + len(results())


FIGURE = Figure("Curves", "accuracy", "dim", panel="pairs", name="curves")


def test_figures_repeat(tmp_path):
    experiment = replace(EXPERIMENT, figures=(FIGURE, Figure("Drawn", name="drawn", draw=scatter)))
    for folder in ("one", "two"):
        written = save_all(experiment, results(), tmp_path / folder)
        assert written == {"curves": "made-up-curves.png", "drawn": "made-up-drawn.png"}
    for kind in ("curves.png", "curves.svg", "drawn.png", "drawn.svg"):
        content = (tmp_path / "one" / f"made-up-{kind}").read_bytes()
        assert content == (tmp_path / "two" / f"made-up-{kind}").read_bytes()
        assert len(content) > 1000


def scatter(canvas, found):
    canvas.add_subplot().scatter(found.numbers(), found.numbers())


def test_curves_without_the_condition_are_in_every_panel():
    shown = section(replace(EXPERIMENT, figures=(FIGURE,)), results())
    pictured = markdown(shown, images={"curves": "x.png"})
    assert "![Curves](x.png)" in pictured
    assert "1 a, pairs 5" not in pictured
    text = markdown(shown)
    assert "1 a, pairs 5\n\n| dim | M | N |\n|---|---|---|\n| 1 | 0.510 ± 0.010 | 0.250 |" in text
    assert "1 a, pairs 20\n\n| dim | M | N |\n|---|---|---|\n| 1 | 0.000 ± 0.000 | 0.250 |" in text


def test_no_results_no_figure(tmp_path):
    assert save_all(replace(EXPERIMENT, figures=(FIGURE,)), Results([]), tmp_path) == {}


def test_output_says_what_is_missing_and_what_is_incomplete(tmp_path):
    experiment = tiny.experiment()
    store = Store(tmp_path / UNITS)
    run([experiment.only(runs=1)], store, quiet=True)
    write_output(experiment, store, tmp_path, missing=["right"])
    text = (tmp_path / "tiny.md").read_text()
    assert "Incomplete: 4 of 6 units have no results." in text
    assert "Left out, because the data are not there: right." in text
    assert "| right |" not in text
    assert "limit" not in text


def test_timed_output_is_marked(tmp_path):
    assert "not the same from run to run" in markdown(section(replace(EXPERIMENT, timed=True), results()))


def test_page_holds_what_is_stored(tmp_path):
    store, archive = Store(tmp_path / "units"), Archive(tmp_path / "stored")
    experiment = tiny.experiment()
    other = replace(experiment, name="never", version=9)
    run([experiment.only(sets=["left"])], store, quiet=True)
    slow = replace(experiment, name="slow", timed=True)
    paper = SimpleNamespace(name="p", title="P", claims=(), pictures=(), experiments=[experiment, other, slow])
    archive.add("p", paper.experiments, store)
    claims = [("p", "P", ClaimShown("it works", "in part", "3 of 4; a, b, c", "Table 1"))]
    text = page_text([paper], archive, {}, claims)
    assert "| P | Table 1 | it works | **holds in part** | 3 of 4 |" in text
    assert "Of 1 statements, holds in part: 1." in text
    assert "| tiny | Scores | A | 0.0" in text
    assert text.count("## A tiny experiment") == 2
    assert "not the same from run to run" in text
    assert "Not run: right." in text
    assert "Only 6 of 12 parts of all runs are stored" in text
    assert "in part only, and what is said of them rests on that: tiny (6 of 12), slow (6 of 12)." in text
    assert "| left |" in text
    assert "| right |" not in text
    assert "## Not run\n\n- never: A tiny experiment" in text
    assert text == page_text([paper], Archive(tmp_path / "stored"), {}, claims)


def test_archive_keeps_what_was_measured(tmp_path):
    store, archive = Store(tmp_path / "units"), Archive(tmp_path / "stored")
    experiment = tiny.experiment()
    run([experiment], store, quiet=True)
    archive.add("p", [experiment], store)
    bytes_before = (tmp_path / "stored" / "p.json.gz").read_bytes()
    again = Archive(tmp_path / "stored")
    assert not again.unfinished(experiment.units())
    measured, kept = (Results.stored(experiment, found).rows for found in (store, again))
    assert [(row.set, row.run, row.part, row.result.method, row.result.at) for row in measured] == [
        (row.set, row.run, row.part, row.result.method, row.result.at) for row in kept
    ]
    assert [row.result.value for row in kept] == pytest.approx([row.result.value for row in measured], rel=1e-5)
    # Written again without the units, the file keeps them; of another definition nothing is found.
    again.add("p", [experiment], Store(tmp_path / "nothing"))
    assert (tmp_path / "stored" / "p.json.gz").read_bytes() == bytes_before
    assert len(again.unfinished(replace(experiment, version=9).units())) == len(experiment.units())

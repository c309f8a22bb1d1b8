"""Every claim of the papers has a verdict and a number, and the pages show what is stored."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pairlens import DSP, WSDR, SODRPaC
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from reproduction.catalogue import experiments, papers
from reproduction.checks import bwdr, dsp, sodrpac
from reproduction.command import PAGE, pages
from reproduction.experiment import Result
from reproduction.prose import MARK, all_claims, generated
from reproduction.results import Archive, Results, Row

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def archive() -> Archive:
    return Archive()


@pytest.fixture(scope="module")
def claims(archive):
    return [claim for _, _, claim in all_claims(archive)]


def test_no_claim_lacks_a_verdict_or_a_number(claims):
    assert len([claim for claim in claims if claim.where != "ours"]) >= 35
    for claim in claims:
        assert claim.where, claim
        assert claim.holds is not None, claim
        assert re.search(r"\d", claim.summary), claim


def test_claims_are_said_once(claims):
    said = [(claim.where, claim.text) for claim in claims]
    assert len(said) == len(set(said))


def test_every_set_of_every_experiment_has_results(archive):
    for experiment in experiments():
        missing = {unit.key for unit in archive.unfinished(experiment.units())}
        for data in experiment.sets:
            assert any(unit.key not in missing for unit in experiment.units() if unit.data is data), experiment.name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", archive.date(experiment)), experiment.name


@pytest.mark.parametrize("experiment", experiments(), ids=lambda one: one.name)
def test_claims_are_open_without_results(experiment):
    for claim in experiment.claims:
        with pytest.raises(LookupError):
            claim.check(Results([]))


def test_pages_show_what_is_stored(archive):
    found = pages(DOCS, archive)
    assert {path.name for path in found} >= {PAGE, "bwdr.md", "dsp.md", "sodrpac.md", "preference.md"}
    for path, text in found.items():
        assert path.read_text("utf-8") == text, f"{path.name} is stale: python -m reproduction --docs docs"


def test_a_changed_number_is_noticed(archive):
    text = (DOCS / "sodrpac.md").read_text("utf-8")
    mark = next(found for found in MARK.finditer(text) if "sodrpac-dimension" in found[2])
    assert generated(mark[2], archive) == mark[3]
    assert re.fullmatch(r"\d+\.\d+", mark[3])


def test_the_page_has_no_empty_heading_and_all_pictures():
    text = (DOCS / PAGE).read_text("utf-8")
    blocks = [block for block in text.split("\n\n") if block.strip()]
    for block, after in zip(blocks, [*blocks[1:], "# end"]):
        if block.startswith("#") and "\n" not in block:
            level = len(block) - len(block.lstrip("#"))
            deeper = after.startswith("#" * (level + 1))
            assert not after.startswith("#") or deeper, block
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    wanted = {f"{paper.name}-{picture.name}" for paper in papers() for picture in paper.pictures}
    wanted |= {f"{one.name}{'-' * bool(figure.name)}{figure.name}" for one in experiments() for figure in one.figures}
    assert {Path(name).stem for name in shown} == wanted
    for name in shown:
        assert 1_000 < (DOCS / name).stat().st_size < 100_000, name


@pytest.mark.parametrize(
    ("method", "name", "reading"),
    [
        (DSP, "dsp-readings", "Neighbours in the input"),
        (SODRPaC, "sodrpac-readings", "not centred"),
        (WSDR, "wsdr-readings", "no ridge"),
        (WSDR, "wsdr-readings", "alternating, mu adapts"),
        (WSDR, "wsdr-readings", "alternating, mu constant"),
    ],
)
def test_docstrings_say_how_far_other_readings_turn_the_view(archive, method, name, reading):
    (experiment,) = experiments([name])
    results = Results.stored(experiment, archive)
    angles = [results.mean(reading, "angle", set=data.name) for data in experiment.sets]
    assert f"{min(angles):.1f} to {max(angles):.1f} rad" in method.__doc__


def test_best_on_most_counts_sets_and_clear_losses():
    (table,) = (one for one in experiments(["bwdr-table2"]))
    check = next(claim.check for claim in table.claims if "almost all sets" in claim.text)

    def results(other: float) -> Results:
        values = {"PCA": other, "cFLD": 0.5, "SSDR": 0.5, "BWDR": 0.8, "WBDR": 0.7}
        return Results(
            Row(data.name, 0, part, Result(method, value + 0.001 * part, "accuracy", {"dim": 1}))
            for data in table.sets
            for part in range(3)
            for method, value in values.items()
        )

    assert check(results(0.6)) == (
        True,
        "best on 16 of 16 sets, behind by more than two standard errors on 0 (15 in print)",
    )
    holds, words = check(results(0.9))
    assert holds is False
    assert words.startswith(
        "best on 0 of 16 sets, behind by more than two standard errors on 16 (15 in print); behind on"
    )


def rows(values: dict[str, float], measure: str = "accuracy", **at) -> list[Row]:
    """Results on two sets that differ a little, by method."""
    return [
        Row(name, 0, 0, Result(method, value + shift, measure, at))
        for name, shift in (("a", 0.0), ("b", 0.001))
        for method, value in values.items()
    ]


def test_both_methods_must_be_superior():
    def judged(wbdr: float) -> object:
        values = {"PCA": 0.5, "cFLD": 0.7, "SSDR": 0.5, "BWDR": 0.8, "WBDR": wbdr}
        scores = rows(values, "accuracy", dim=1) + rows(values, "balanced rand", dim=1)
        return bwdr.superior(Results(scores))[0]

    assert judged(0.75) is True
    assert judged(0.6) == "in part"


def test_accuracy_that_falls_does_not_grow():
    def judged(step: float) -> object:
        methods = ("BWDR", "WBDR", "PCA", "cFLD", "SSDR")
        return bwdr.saturates(
            Results(row for d in (1, 5, 9) for row in rows(dict.fromkeys(methods, 0.5 + step / d), dim=d))
        )[0]

    assert judged(-0.2) is True
    assert judged(0.2) is False


def test_purity_is_low_below_three_others():
    def judged(ours: float) -> object:
        values = {"PCA": 0.2, "cFLD": 0.7, "SSDR": 0.8, "BWDR": ours, "WBDR": 0.9}
        return bwdr.low_but_not_worst(Results(rows(values, "purity", k=10)), sets=["a", "b"], method="BWDR")[0]

    assert judged(0.6) is True
    assert judged(0.75) == "in part"


def test_stable_means_a_smaller_range():
    found = rows({"BWDR": 0.8, "WBDR": 0.7}, dim=9)
    found += [
        Row(name, 0, 0, Result("SSDR", value, "accuracy", {"dim": 9})) for name, value in (("a", 0.9), ("b", 0.3))
    ]
    assert bwdr.steadier(Results(found), sets=["a", "b"], than="SSDR")[0] is True
    assert bwdr.steadier(Results(found), sets=["a", "b"], than="WBDR")[0] is False


def test_regions_must_beat_chance():
    def judged(best: tuple[int, int]) -> tuple[object, str]:
        found = [
            Row("a", 0, 0, Result("SODRPaC", float((i, j) == best), "accuracy", at))
            for i, lam in enumerate(np.log2(LAM_GRID))
            for j, theta in enumerate(np.log2(THETA_GRID))
            for at in [{"l": 2, "log2 lambda": float(lam), "log2 theta": float(theta)}]
        ]
        return sodrpac.best_regions(Results(found))

    assert judged((0, 0))[0] is True
    holds, words = judged((len(LAM_GRID) - 1, 0))
    assert holds is False
    assert words.startswith("0 of 1 inside, while the two regions are 65 % of the grid")


def test_constraints_of_one_kind():
    def judged(must: float) -> object:
        found = [row for share, value in ((0.0, 0.8), (1.0, must)) for row in rows({"SODfix": value}, share=share, l=2)]
        return sodrpac.cannot_links_matter_more(Results(found))[0]

    assert judged(0.7) is True
    assert judged(0.79) is False


def test_satisfactory_counts_lost_sets_only():
    def judged(ours: float) -> tuple[object, str]:
        found = rows({"PCA": 0.5, "LPP": 0.6}, "F") + rows({"SLPP": 0.4, "LPPSI": 0.7}, "F", pairs=20)
        return dsp.satisfactory(Results(found + rows({"DSP": ours}, "F", pairs=20)), pairs=20, within=0.03)

    assert judged(0.71) == (True, "on 0 of the 0 sets where it is not the best")
    assert judged(0.68) == (True, "on 2 of the 2 sets where it is not the best: a -0.020, b -0.020")
    assert judged(0.65)[0] is False


def test_few_pairs_must_improve_on_none():
    def judged(ours: float) -> object:
        found = rows({"PCA": 0.5, "LPP": 0.6}, "F") + [
            Row(name, 0, 0, Result("DSP", value, "F", {"pairs": 5}))
            for name, value in (("a", ours), ("b", ours + 0.02))
        ]
        return dsp.improves_on_unsupervised(Results(found), pairs=5)[0]

    assert judged(0.8) is True
    assert judged(0.55) == "in part"
    assert judged(0.4) is False

"""The benchmarks that are measured for each commit run, and the configuration finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

methods = pytest.importorskip("benchmarks.history.methods", reason="needs the folder benchmarks of the repository")
ROOT = Path(methods.__file__).parents[2]


def test_the_configuration_finds_the_benchmarks():
    settings = json.loads((ROOT / "asv.conf.json").read_text())
    assert (ROOT / settings["benchmark_dir"] / "methods.py").exists()


@pytest.mark.parametrize("method", ["WBDR", "PairLens"])
def test_fit(method, monkeypatch):
    monkeypatch.setattr(methods.Fit, "n_rows", 200)
    benchmark = methods.Fit()
    benchmark.setup(method)
    assert benchmark.track_ratio_to_pca(method) > 0
    benchmark.peakmem_fit(method)


@pytest.mark.parametrize("method", ["PCA", "WBDR"])
def test_view(method):
    assert methods.View().track_ari(method, "wine") > 0.5

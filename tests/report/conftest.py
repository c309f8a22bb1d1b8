"""Pages of a readable size."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_plotly(monkeypatch):
    """Five megabytes of JavaScript in every page would test nothing here but patience."""
    import plotly.offline

    monkeypatch.setattr(plotly.offline, "get_plotlyjs", lambda: "/* plotly.js */")

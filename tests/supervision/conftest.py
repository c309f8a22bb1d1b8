"""Property tests here are about results: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("pairlens", deadline=None)
settings.load_profile("pairlens")

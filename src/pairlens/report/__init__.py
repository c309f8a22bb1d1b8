"""The report: one self-contained HTML page about a fitted model."""

from pairlens.report._page import Report, build_report, write_report

__all__ = ["Report", "build_report", "write_report"]

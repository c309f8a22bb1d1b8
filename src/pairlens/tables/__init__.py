"""Any table to numbers: what each column is, and how it is encoded."""

from pairlens.tables.cells import MISSING_WORDS, distinct_names
from pairlens.tables.encoder import TableEncoder
from pairlens.tables.roles import ColumnSummary, Role

__all__ = ["MISSING_WORDS", "ColumnSummary", "Role", "TableEncoder", "distinct_names"]

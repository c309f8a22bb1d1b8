"""Any table to numbers: what each column is, and how it is encoded."""

from pairlens.tables.encoder import TableEncoder
from pairlens.tables.roles import ColumnSummary, Role

__all__ = ["ColumnSummary", "Role", "TableEncoder"]

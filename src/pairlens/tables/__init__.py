"""Turn any table into numbers: decide what each column is, and encode it."""

from pairlens.tables.encoder import TableEncoder
from pairlens.tables.roles import ColumnSummary, Role

__all__ = ["ColumnSummary", "Role", "TableEncoder"]

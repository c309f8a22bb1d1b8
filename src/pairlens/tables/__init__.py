"""Any table to numbers: what each column is, and how it is encoded."""

from pairlens.tables.cells import MISSING_WORDS, are_plain_numbers, distinct_names
from pairlens.tables.encoder import TableEncoder
from pairlens.tables.roles import ColumnSummary, Role, role_of

__all__ = ["MISSING_WORDS", "ColumnSummary", "Role", "TableEncoder", "are_plain_numbers", "distinct_names", "role_of"]

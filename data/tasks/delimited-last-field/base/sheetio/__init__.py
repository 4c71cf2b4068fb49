"""Delimited text."""

from sheetio.dialect import COMMA, SEMICOLON, TAB, Dialect
from sheetio.reader import FormatError, read
from sheetio.table import Table
from sheetio.writer import write

__all__ = ["COMMA", "SEMICOLON", "TAB", "Dialect", "FormatError", "Table", "read", "write"]

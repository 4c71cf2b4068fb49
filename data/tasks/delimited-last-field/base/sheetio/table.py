"""Rows under a header."""

from sheetio.dialect import COMMA
from sheetio.reader import FormatError, read


class Table:
    """A header and the rows below it."""

    def __init__(self, header, rows):
        self.header = header
        self.rows = rows

    @classmethod
    def parse(cls, text, dialect=COMMA):
        """Read a text whose first record is the header."""
        records = read(text, dialect)
        if not records:
            raise FormatError("there is no header")
        header, *rows = records
        for number, row in enumerate(rows, start=1):
            if len(row) != len(header):
                raise FormatError(f"row {number} has {len(row)} fields, the header has {len(header)}")
        return cls(header, rows)

    def dictionaries(self):
        """Each row as a dictionary from column to value."""
        return [dict(zip(self.header, row)) for row in self.rows]

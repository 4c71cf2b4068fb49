"""From rows to text."""

from sheetio.dialect import COMMA


def write(rows, dialect=COMMA):
    """The text of rows of strings; every record ends with a line feed."""
    return "".join(_record(row, dialect) + "\n" for row in rows)


def _record(row, dialect):
    if list(row) == [""]:
        return dialect.quote * 2  # an empty line would be no record
    return dialect.delimiter.join(_field(value, dialect) for value in row)


def _field(value, dialect):
    special = {dialect.delimiter, dialect.quote, "\n", "\r"}
    if not special.intersection(value):
        return value
    return dialect.quote + value.replace(dialect.quote, dialect.quote * 2) + dialect.quote

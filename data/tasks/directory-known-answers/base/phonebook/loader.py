"""From a file to a book."""

from pathlib import Path

from phonebook.book import Book


def load(path):
    """The book in a file of lines "name<TAB>number"; ValueError names the line that does not fit."""
    book = Book()
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 2:
            raise ValueError(f"line {number}: expected a name and a number")
        try:
            book.add(*fields)
        except ValueError as error:
            raise type(error)(f"line {number}: {error}") from error
    return book

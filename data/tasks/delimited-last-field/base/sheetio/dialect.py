"""What differs between one partner's files and another's."""

from typing import NamedTuple


class Dialect(NamedTuple):
    """A delimiter and a quote character, one character each."""

    delimiter: str = ","
    quote: str = '"'


COMMA = Dialect()
SEMICOLON = Dialect(delimiter=";")
TAB = Dialect(delimiter="\t")

"""What a page is made of, whatever it is printed as: sections with paragraphs, facts, notes, tables and figures.

What belongs here: the parts. What does not: what they say (``sections``), and how they look (``page``, ``templates``).
Texts are as others wrote them; they are escaped where they are printed, all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

Kind = Literal["text", "number", "code"]


@dataclass(frozen=True)
class Paragraph:
    """A sentence or a few."""

    text: str
    kind: str = "paragraph"


@dataclass(frozen=True)
class Fact:
    """One number at the top of a page: what it is, the number, and what it is out of. ``alarming``: look here."""

    name: str
    value: str
    beside: str
    alarming: bool = False


@dataclass(frozen=True)
class Facts:
    """A few numbers at a glance."""

    facts: Sequence[Fact]
    kind: str = "facts"


@dataclass(frozen=True)
class Notes:
    """Sentences, one below the other."""

    notes: Sequence[str]
    kind: str = "notes"


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand below each other, code is what a person types."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """Rows of texts; the first cell of a row names it. ``beyond`` rows more are not shown, ``more`` shows them."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    beyond: int = 0
    more: str = ""
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    """A picture; what it shows stands in a table beside it too."""

    picture: Markup
    caption: str
    kind: str = "figure"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; ``abreast`` sections inside stand beside each other where there is room."""

    title: str
    key: str
    blocks: Sequence["Block"] = ()
    sections: Sequence["Section"] = ()
    abreast: bool = False
    kind: str = "section"


Block = Paragraph | Facts | Notes | Table | Figure

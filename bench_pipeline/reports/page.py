"""A report's document as a page: HTML that stands alone, Markdown for a comment, a few lines for a preview.

What belongs here: the templates' environment, and escaping for each form. What does not: what a page says
(``sections``). Every text is escaped where it is printed, whoever wrote it: control characters, marks that reorder text
and halves of surrogate pairs become visible escapes, and nothing becomes markup. The page asks for nothing and runs
nothing; it says so to browsers as well.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from bench_pipeline.reports.blocks import Section
from bench_pipeline.reports.escaping import one_line, shortened
from bench_pipeline.reports.sections import facts, sections
from bench_pipeline.reports.text import UNKNOWN

# A comment on a pull request holds 65,536 characters.
_MARKDOWN_ROWS = 12
_UNKNOWN_HTML = Markup('<span class="unknown">unknown</span>')
_UNKNOWN_MARKDOWN = Markup("_unknown_")
_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_[]<>|~&"}
# What GitHub makes a mention, a reference or a link of, except in code.
_LINKING = re.compile(r"@|://|www\.|#\d|\bGH-\d", re.IGNORECASE)
_FENCES = re.compile("`+")
# An interval is read as a whole.
_PARENTHESES = re.compile(r"\([^()]*\)")


def html_page(document: Mapping[str, Any]) -> str:
    """One HTML page, well-formed XML too, without anything that has to be fetched."""
    return _environment("html").get_template("report.html.jinja").render(_shown(document))


def markdown_page(document: Mapping[str, Any]) -> str:
    """The same as Markdown, with fewer rows and without pictures."""
    return (
        _environment("markdown").get_template("report.md.jinja").render(_shown(document), rows=_MARKDOWN_ROWS)
    )


def preview(document: Mapping[str, Any]) -> str:
    """The numbers at the top as a Markdown list."""
    lines = [
        f"- {fact.name}: **{_markdown(fact.value)}** {_markdown(fact.beside)}" for fact in facts(document)
    ]
    return "\n".join(lines)


def _shown(document: Mapping[str, Any]) -> dict[str, Any]:
    made: list[Section] = sections(document)
    return {
        "title": f"Report of {document['project']}",
        "name": document["report"],
        "made_at": _moment(document["made_at"]),
        "since": document["since"] and _moment(document["since"]["made_at"]),
        "facts": facts(document),
        "sections": made,
    }


def _moment(text: str) -> str:
    return f"{text[:10]} {text[11:16]} UTC"


@cache
def _environment(form: str) -> jinja2.Environment:
    html = form == "html"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bench_pipeline.reports", "templates"),
        autoescape=True,
        finalize=_html if html else _markdown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code": _code, "kept_together": _kept_together}
    return environment


def _html(value: object) -> object:
    """What is printed into HTML: markup of ours as it is, everything else as text, which the template escapes."""
    if isinstance(value, Markup):
        return value
    return _UNKNOWN_HTML if value is None or value == UNKNOWN else shortened(one_line(str(value)))


def _kept_together(value: str) -> str:
    """A number whose line does not break between parentheses."""
    return _PARENTHESES.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), value)


def _markdown(value: object) -> Markup:
    """What is printed into Markdown: markup of ours as it is, everything else as text that stays text."""
    if isinstance(value, Markup):
        return value
    if value is None or value == UNKNOWN:
        return _UNKNOWN_MARKDOWN
    text = shortened(one_line(str(value)))
    return _code(text) if _LINKING.search(text) else Markup(text.translate(_MARKS))  # noqa: S704 - escaped


def _code(value: str) -> Markup:
    """A text as Markdown code, in which nothing is a link or a mention; a bar would end the cell of a table."""
    text = one_line(value).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, _FENCES.findall(text)), default=0))
    space = " " if len(fence) > 1 else ""
    return Markup(f"{fence}{space}{text}{space}{fence}")  # noqa: S704 - fenced

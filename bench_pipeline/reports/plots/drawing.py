"""A picture as it is drawn: an SVG element with a title and a description, lines, texts and marks.

What belongs here: elements. What does not: what they mean. Elements are built as a tree, so that no text of others can
become markup, and control characters are shown as escapes.
"""

import xml.etree.ElementTree as ET

from markupsafe import Markup

from bench_pipeline.reports.escaping import one_line, shortened

_SHAPES = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z",
    "diamond": "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
    "square": "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "triangle": "M0,-6L5.5,4.5H-5.5Z",
    "down": "M0,6L5.5,-4.5H-5.5Z",
    "bar": "M-2,-6H2V6H-2Z",
    "plus": "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "cross": "M-5,-5L5,5M-5,5L5,-5",
}
SERIES = ("circle", "square", "triangle", "diamond", "down", "plus", "bar")
# A description of all rows of a picture is longer than a text beside others.
_TOLD = 4000
# About the width of a character of the labels, for the places of texts.
_CHARACTER = 7.2


class Drawing:
    """A picture of ``width`` x ``height``; ``key`` tells it from the others of its page."""

    def __init__(self, key: str, width: float, height: float, title: str, description: str) -> None:
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {width:g} {height:g}",
                "role": "img",
                "aria-labelledby": f"{key}-title {key}-description",
                "class": "plot",
            },
        )
        for name, text in (("title", title), ("desc", description)):
            full = "title" if name == "title" else "description"
            ET.SubElement(self._root, name, {"id": f"{key}-{full}"}).text = shortened(one_line(text), _TOLD)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A line; ``style`` is the class by which the page gives it its look."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        ET.SubElement(
            self._root, "line", {"class": style} | {name: f"{value:g}" for name, value in ends.items()}
        )

    def path(self, points: list[tuple[float, float]], style: str) -> None:
        """A line through points."""
        steps = "L".join(f"{x:g},{y:g}" for x, y in points)
        ET.SubElement(self._root, "path", {"class": style, "d": f"M{steps}"})

    def mark(self, x: float, y: float, shape: str, style: str, told: str = "") -> None:
        """A mark of one of the shapes; ``told`` is what a pointer that rests on it is told."""
        place = {"class": f"mark {style}", "d": _SHAPES[shape], "transform": f"translate({x:g},{y:g})"}
        mark = ET.SubElement(self._root, "path", place)
        if told:
            ET.SubElement(mark, "title").text = shortened(one_line(told))

    def text(self, x: float, y: float, text: str, style: str = "label", anchor: str = "start") -> None:
        """A text from, around (``middle``) or up to (``end``) a place."""
        place = {"class": style, "x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor}
        ET.SubElement(self._root, "text", place).text = one_line(text)

    def markup(self) -> Markup:
        """The picture as part of a page."""
        return Markup(ET.tostring(self._root, encoding="unicode"))  # noqa: S704 - built as a tree


def fitting(text: str, width: float) -> str:
    """A text cut to about a width, in the middle: names of one family differ at their ends. The cut is shown."""
    most = max(4, int(width / _CHARACTER))
    if len(text) <= most:
        return text
    start = most // 2
    return f"{text[:start]}…{text[len(text) - (most - start - 1) :]}"

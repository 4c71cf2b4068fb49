"""What counts as the expected answer: equal after normalisation, and nothing cleverer.

Punctuation, digits, units and composed accents count. White space is Unicode's ``White_Space`` property, which
Python's ``split`` widens by U+001C to U+001F.
"""

import re

_SPACES = "".join(map(chr, range(0x2000, 0x200B)))
_WHITE = f"\t\n\v\f\r \x85\xa0\u1680{_SPACES}\u2028\u2029\u202f\u205f\u3000"
_SPACE = re.compile(f"[{_WHITE}]+")


def is_blank(text: str) -> bool:
    """Whether ``text`` has nothing but white space."""
    return not text.strip(_WHITE)


def normalise(text: str) -> str:
    """``text`` with single spaces between its words, each character in its simple lower case."""
    words = text.strip(_WHITE)
    if not words.isalnum():
        words = _SPACE.sub(" ", words)
    # The two characters that Python lowers by more than the simple mapping: I with a dot becomes two, and a capital
    # sigma depends on its place in the word.
    return words.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()


def is_correct(expected: str, answer: str) -> bool:
    """Whether ``answer`` is the expected one; nothing is expected of a blank expectation."""
    wanted = normalise(expected)
    return wanted != "" and wanted == normalise(answer)

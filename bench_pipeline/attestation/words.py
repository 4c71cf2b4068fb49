"""Text as the words that are compared: case, width, composition and punctuation tell no two texts apart.

What belongs here: normalising and splitting. What does not: windows over words (``windows``) and what is
compared with what.

NFKC and case folding; invisible characters dropped; words and identifiers are runs of letters, digits and
inner underscores, split on everything else. Scripts that are written without spaces give one word a character.
"""

import re
import unicodedata
from typing import Final

# Soft hyphens, joiners, direction marks, variation selectors: they change no word that a reader sees.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
# Han, kana, Thai, Lao, Tibetan, Myanmar, Khmer, and the ideographs beyond the basic plane.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u30ff"
    "\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Python's \\w leaves combining marks out, and with them the vowels of most Indic scripts.
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0dff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_WORD: Final = re.compile(f"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\\w{_MARKS}])+")
_SPACED: Final = re.compile(f"[\\w{_MARKS}]+")
_ANY_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_"
_ASCII_TABLE: Final = bytes(byte if byte in _ASCII_WORD else 32 for byte in bytes(range(256)).lower())


def words_of(text: str) -> list[bytes]:
    """The words of a text in order, as UTF-8; empty only when no letter, digit or mark is in it."""
    if text.isascii():
        found = text.encode("ascii").translate(_ASCII_TABLE).split()
    else:
        found = [word.encode("utf-8", "replace") for word in _other_words(text)]
    if "_" in text or not text.isascii():
        return [word for each in found if (word := each.strip(b"_"))]
    return found


def _other_words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    # Folding can undo a composition, which NFKC does again.
    text = unicodedata.normalize("NFKC", text.casefold())
    return (_WORD if _ANY_UNSPACED.search(text) else _SPACED).findall(text)


def is_unspaced(word: bytes) -> bool:
    """Whether the word is one character of a script that is written without spaces."""
    return _ANY_UNSPACED.match(word.decode("utf-8", "replace")) is not None

"""Windows of words as numbers: a keyed hash of every window of a text, in columns.

What belongs here: hashing words and windows fast. What does not: which windows count. The numbers only sort
windows into likely and unlikely ones; what is stored of a window is its HMAC-SHA256 (``commitment``).

A word's number comes from a keyed hash. A window's is the sum of its words' numbers, each times an odd number
of its place, modulo 2**64: two different windows agree in their top bits no more often than by chance.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]

# Words of one text: a vocabulary of natural size fits many times; an endless one is forgotten now and then.
_MAX_VOCABULARY: Final = 1 << 19
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class WindowHasher:
    """The hashes of words and windows under one key."""

    def __init__(self, key: bytes) -> None:
        self._vocabulary = _Vocabulary(key)
        self._places: list[int] = []
        self._key = key

    def numbers(self, words: Sequence[bytes]) -> Numbers:
        """One number a word."""
        vocabulary = self._vocabulary
        if len(vocabulary) > _MAX_VOCABULARY:
            vocabulary.clear()
        return np.fromiter(map(vocabulary.__getitem__, words), np.uint64, len(words))

    def windows(self, numbers: Numbers, length: int) -> Numbers:
        """One number for each window of ``length`` words, by where it begins."""
        count = len(numbers) - length + 1
        if count <= 0:
            return np.empty(0, np.uint64)
        total = np.zeros(count, np.uint64)
        for place in range(length):
            total += numbers[place : place + count] * np.uint64(self._place(place))
        return (total ^ (total >> np.uint64(32))) * _MIX

    def _place(self, place: int) -> int:
        while len(self._places) <= place:
            message = b"place %d" % len(self._places)
            self._places.append(_number(message, self._key) | 1)
        return self._places[place]


class _Vocabulary(dict[bytes, int]):
    """Numbers by word, each made when it is first asked for."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def __missing__(self, word: bytes) -> int:
        value = self[word] = _number(b"word " + word, self._key)
        return value


def _number(message: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(message, digest_size=8, key=key).digest(), "little")

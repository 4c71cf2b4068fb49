"""One compiled pass over the bytes of a ledger: which lines are certainly rows, and what these say.

What belongs here: functions that numba compiles (https://numba.readthedocs.io); so importing this module takes half a
second, and several where nothing was compiled before. What does not: what an odd line says (``parsing``).

A line is odd unless it is certain that the exact decoder takes it, and reads what is read here: one object in UTF-8,
every number finite, every escape text, no key twice. Nothing checks that a place is within the bytes. The last one is a
line feed, which stands in no string, number, word or key, so that whatever goes on byte by byte ends there.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types

Function = TypeVar("Function", bound=Callable[..., Any])

# The names of fields, one after the other; and a table of what is known of each.
Fields = tuple[bytes, Any]
# What rows say: values by column and row, NaN where a row says nothing; the last columns are for texts. The bytes of
# these, and where that of each row ends: the route and, where there are more, the task and all that is no field of
# ours. The value of a text is 1, or 0 where it is JSON that is not spelled as we spell it.
Columns = tuple[Any, Any, Any]
# What a field takes.
FLAG, SHARE, COUNT, TEXT = range(4)
# The table's lines.
NAME_START, NAME_SIZE, COLUMN, KIND = range(4)

# Beyond these a line is odd.
MOST_KEYS, _MOST_DEPTH, _MOST_DIGITS = 256, 64, 300
# The rows of ``work``: of each key, where its quotes and its value begin, and its spelling; of each depth, what closes
# it, and its first key.
_OPENED, _CLOSED, _VALUE, _SPELLING, _CLOSER, _FIRST = range(6)
WORK_SHAPE = (6, MOST_KEYS)
_ODD, _UNLIKE = -1, -2
_FEED, _QUOTE, _COMMA, _MINUS, _POINT, _COLON, _BACKSLASH = b'\n",-.:\\'
_BRACKET, _BRACE, _END_OF_OBJECT = b"[{}"
_E, _U, _ZERO, _NINE = b"eu09"
_LARGEST_EXACT = 2**53
_POWERS = np.array([float(10**exponent) for exponent in range(23)])

# Without what numba adds for callers in Python and C.
_compiled: Callable[[Function], Function] = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _entered(function: Function) -> Function:
    """Compile the function that Python calls, and those that it calls; or load what was compiled before."""
    data, number, table = types.Bytes(types.uint8, 1, "C", readonly=True), types.int64, types.int64[:, ::1]
    fields = types.Tuple((data, table))
    out = types.Tuple((types.float64[:, ::1], types.uint8[:, ::1], table))
    signature = types.UniTuple(number, 4)(
        data, number, number, number, fields, table, types.int64[::1], out, table
    )
    try:
        compiled: Function = njit(signature, nogil=True, cache=True)(function)
    except (RuntimeError, OSError):
        # No folder in which a later process would find it can be written.
        compiled = njit(signature, nogil=True)(function)
    return compiled


@_compiled
def _skip(data: bytes, at: int) -> int:
    """Where whitespace ends that stands within a line."""
    while data[at] == 32 or data[at] == 9 or data[at] == 13:
        at += 1
    return at


@_compiled
def _same(data: bytes, at: int, other: bytes, start: int, size: int) -> bool:
    """Whether the same bytes stand at two places."""
    for place in range(size):
        if data[at + place] != other[start + place]:
            return False
    return True


@_compiled
def _wide(data: bytes, at: int) -> int:
    """Where a character of several bytes ends: table 3-7 of the Unicode standard."""
    first, second = data[at], data[at + 1]
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if first < 0xC2 or first > 0xF4 or second < low or second > high:
        return _ODD
    size = 2 + (first >= 0xE0) + (first >= 0xF0)
    for place in range(at + 2, at + size):
        if data[place] < 0x80 or data[place] > 0xBF:
            return _ODD
    return at + size


@_compiled
def _unit(data: bytes, at: int) -> int:
    """The number that four hexadecimal digits are."""
    value = 0
    for place in range(at, at + 4):
        byte = data[place]
        if _ZERO <= byte <= _NINE:
            value = value * 16 + (byte - _ZERO)
        elif 65 <= byte <= 70 or 97 <= byte <= 102:
            value = value * 16 + (byte & 7) + 9
        else:
            return _ODD
    return value


@_compiled
def _escape(data: bytes, at: int) -> int:
    """Where an escape ends whose backslash is at ``at``; that of a surrogate goes with its other half."""
    kind = data[at + 1]
    for short in b'"\\/bfnrt':
        if kind == short:
            return at + 2
    if kind != _U:
        return _ODD
    unit = _unit(data, at + 2)
    if unit < 0xD800 or unit > 0xDFFF:
        return at + 6 if unit >= 0 else _ODD
    if unit > 0xDBFF or data[at + 6] != _BACKSLASH or data[at + 7] != _U:
        return _ODD
    unit = _unit(data, at + 8)
    return at + 12 if 0xDC00 <= unit <= 0xDFFF else _ODD


@_compiled
def _string(data: bytes, at: int) -> tuple[int, bool]:
    """Where the closing quote of a string is, and whether there are escapes in it."""
    escaped = False
    while True:
        byte = data[at]
        if byte == _QUOTE:
            return at, escaped
        if byte < 32:
            return _ODD, escaped
        if byte == _BACKSLASH:
            escaped = True
            at = _escape(data, at)
        elif byte < 0x80:
            at += 1
            continue
        else:
            at = _wide(data, at)
        if at < 0:
            return _ODD, escaped


@_compiled
def _number(data: bytes, at: int) -> tuple[int, int, int]:
    """Where a number ends, and which it is: ``mantissa * 10**exponent``, the exponent 999 where that is not known."""
    negative = data[at] == _MINUS
    at += negative
    start = at
    mantissa = digits = 0
    point = _ODD
    while True:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            digits += digits > 0 or byte > _ZERO
            if digits <= 18:
                mantissa = mantissa * 10 + (byte - _ZERO)
        elif byte == _POINT and point < 0:
            point = at
        else:
            break
        at += 1
    size = (at if point < 0 else point) - start
    if size == 0 or size > _MOST_DIGITS or (data[start] == _ZERO and size > 1) or point == at - 1:
        return _ODD, 0, 0
    exponent = 0 if point < 0 else point + 1 - at
    if data[at] == _E or data[at] == 69:
        at += 1
        sign = 1
        if data[at] == 43 or data[at] == _MINUS:
            sign = 44 - data[at]
            at += 1
        power, start = 0, at
        while _ZERO <= data[at] <= _NINE and power <= _MOST_DIGITS:
            power = power * 10 + (data[at] - _ZERO)
            at += 1
        if at == start or sign * power + size > _MOST_DIGITS:
            return _ODD, 0, 0
        exponent += sign * power
    if digits > 18 or (negative and digits == 0 and exponent != 0):
        # Of more digits than are kept, or a zero with a sign.
        exponent = 999
    return at, -mantissa if negative else mantissa, exponent


@_compiled
def _nearest(mantissa: int, exponent: int) -> tuple[float, bool]:
    """The double nearest to ``mantissa * 10**exponent``, and whether that is certain.

    Both are exact in doubles mostly, and division rounds correctly. Otherwise what the division left over is computed
    exactly (Dekker, 1971), and its quotient added.
    """
    if exponent < -22 or exponent > 22:
        return 0.0, False
    high, exact = float(mantissa), abs(mantissa) <= _LARGEST_EXACT
    if exponent >= 0:
        return high * _POWERS[exponent], exact
    power = _POWERS[-exponent]
    quotient = high / power
    if exact:
        return quotient, True
    product = quotient * power
    split = 134217729.0 * quotient
    upper = split - (split - quotient)
    lower = quotient - upper
    split = 134217729.0 * power
    left = split - (split - power)
    right = power - left
    error = ((upper * left - product) + upper * right + lower * left) + lower * right
    rest = ((high - product) - error + float(mantissa - int(high))) / power
    value = quotient + rest
    return value, quotient + rest * (1 - 1e-12) == value and quotient + rest * (1 + 1e-12) == value


@_compiled
def _word(data: bytes, at: int) -> tuple[int, float]:
    """Where true, false or null ends, and its value: NaN is none."""
    if data[at] == 116 and data[at + 1] == 114 and data[at + 2] == _U and data[at + 3] == _E:
        return at + 4, 1.0
    if data[at] == 110 and data[at + 1] == _U and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4, np.nan
    if data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108:
        return at + 5 if data[at + 3] == 115 and data[at + 4] == _E else _ODD, 0.0
    return _ODD, 0.0


@_compiled
def _scalar(data: bytes, at: int, kind: int) -> tuple[int, float]:
    """Where a number or word ends, and its value for a field of a kind; ``kind`` is -1 when it is nobody's."""
    if data[at] != _MINUS and data[at] > _NINE:
        at, value = _word(data, at)
        return at if value != value or kind <= FLAG else _ODD, value
    at, mantissa, exponent = _number(data, at)
    if at < 0 or kind < 0:
        return at, np.nan
    value, certain = _nearest(mantissa, exponent)
    if not certain or kind == TEXT:
        return _ODD, value
    if kind == COUNT and (abs(value) >= _LARGEST_EXACT or value != np.floor(value)):
        return _ODD, value
    return at, value


@_compiled
def _twice(data: bytes, work: Any, first: int, key: int) -> bool:
    """Whether a key is one of those since ``first``."""
    start = work[_OPENED, key]
    size = work[_CLOSED, key] - start
    for other in range(first, key):
        before = work[_OPENED, other]
        if work[_CLOSED, other] - before == size and _same(data, start, data, before, size):
            return True
    return False


@_compiled
def _spelling(data: bytes, work: Any, key: int, fields: Fields) -> int:
    """Which spelling of a field a key is; -1 when it is none."""
    names, spellings = fields
    start = work[_OPENED, key] + 1
    size = work[_CLOSED, key] - start
    for number in range(spellings.shape[1]):
        name = spellings[NAME_START, number]
        if spellings[NAME_SIZE, number] == size and _same(data, start, names, name, size):
            return number
    return -1


@_compiled
def _compact(data: bytes, start: int, end: int, texts: Any, to: int) -> tuple[int, bool]:
    """Copy JSON without its whitespace; where the copy ends, and whether it is spelled as we spell it."""
    text = texts.shape[0] - 1
    alike, inside = True, False
    place = start
    while place < end:
        byte = data[place]
        if byte == _QUOTE:
            inside = not inside
        elif inside:
            if byte == _BACKSLASH:
                texts[text, to] = byte
                to += 1
                place += 1
                byte = data[place]
                alike = alike and byte != _U and byte != 47
        elif byte == 32 or byte == 9 or byte == 13:
            place += 1
            continue
        elif byte == _POINT or byte == _MINUS or byte == 69 or (byte == _E and data[place - 1] <= _NINE):
            alike = False
        texts[text, to] = byte
        to += 1
        place += 1
    return to, alike


@_compiled
def _value(data: bytes, at: int, kind: int, column: int, row: int, out: Columns) -> int:
    """Where a value ends that is no object and no array; it goes to its field's column, if it is a field's."""
    values, texts, ends = out
    if data[at] == _QUOTE:
        start = at + 1
        at, escaped = _string(data, start)
        if at < 0 or (kind >= 0 and (kind != TEXT or escaped)):
            return _ODD
        if kind == TEXT:
            text = column - values.shape[0] + texts.shape[0]
            end = ends[text, row]
            for place in range(start, at):
                texts[text, end] = data[place]
                end += 1
            ends[text, row + 1] = end
            values[column, row] = 1.0
        return at + 1
    at, value = _scalar(data, at, kind)
    if at >= 0 and kind >= 0 and value == value:
        before = values[column, row]
        if before == before and before != value:
            return _ODD
        values[column, row] = value
    return at


@_compiled
def _keep(data: bytes, start: int, end: int, row: int, out: Columns) -> None:
    """Add an item that is no field of ours to the row's extra text, which is the last one."""
    values, texts, ends = out
    text, column = texts.shape[0] - 1, values.shape[0] - 1
    to = ends[text, row + 1]
    first = to == ends[text, row]
    texts[text, to] = _BRACE if first else _COMMA
    to, plain = _compact(data, start, end, texts, to + 1)
    ends[text, row + 1] = to
    values[column, row] = 1.0 if plain and (first or values[column, row] == 1.0) else 0.0


@_compiled
def _known(data: bytes, at: int, work: Any, alike: int, item: int) -> int:
    """Where the value begins of an item whose key is the known one, and stands there as it did before."""
    if item == alike:
        return _UNLIKE
    start = work[_OPENED, item]
    size = work[_VALUE, item] - start
    return at + size if _same(data, at, data, start, size) else _UNLIKE


@_compiled
def _new(data: bytes, at: int, work: Any, key: int, first: int) -> int:
    """Where the value begins of an item whose key becomes a known one; ``first`` is the first key of its object."""
    if data[at] != _QUOTE or key == MOST_KEYS:
        return _ODD
    end, escaped = _string(data, at + 1)
    if end < 0 or escaped:
        return _ODD
    work[_OPENED, key], work[_CLOSED, key] = at, end
    at = _skip(data, end + 1)
    if data[at] != _COLON or _twice(data, work, first, key):
        return _ODD
    at = _skip(data, at + 1)
    work[_VALUE, key] = at
    return at


@_compiled
def _row(
    data: bytes, at: int, fields: Fields, work: Any, alike: int, row: int, out: Columns
) -> tuple[int, int]:
    """Where the line ends whose brace is at ``at``, and how many keys it has; what it says goes to ``row``.

    The first ``alike`` keys in ``work`` are those of a line before. As long as the same bytes stand before each value,
    they need no second look; otherwise the line has to be read again without.
    """
    spellings, keeps = fields[1], out[1].shape[0] > 1
    depth, item, keys, own = 0, 0, alike, -1
    work[_CLOSER, 0], work[_FIRST, 0] = _END_OF_OBJECT, 0
    at = _skip(data, at + 1)
    empty = data[at] == _END_OF_OBJECT
    while True:
        spelling = -1
        if not empty and work[_CLOSER, depth] == _END_OF_OBJECT:
            start = at
            if depth == 0 and alike > 0:
                at = _known(data, start, work, alike, item)
            else:
                at = _new(data, start, work, keys, work[_FIRST, depth])
            if at < 0:
                return at, 0
            if depth == 0:
                if alike == 0:
                    work[_SPELLING, item] = _spelling(data, work, item, fields)
                spelling = work[_SPELLING, item]
                own = start if spelling < 0 else -1
                item += 1
            if depth > 0 or alike == 0:
                keys += 1
        kind = spellings[KIND, spelling] if spelling >= 0 else -1
        byte = data[at]
        if byte == _BRACE or byte == _BRACKET:
            depth += 1
            if kind >= 0 or depth == _MOST_DEPTH:
                return _ODD, 0
            work[_CLOSER, depth], work[_FIRST, depth] = byte + 2, keys
            at = _skip(data, at + 1)
            if data[at] != byte + 2:
                continue
        elif not empty:
            column = spellings[COLUMN, spelling] if spelling >= 0 else -1
            at = _value(data, at, kind, column, row, out)
            if at < 0:
                return _ODD, 0
        while True:
            if keeps and depth == 0 and own >= 0:
                _keep(data, own, at, row, out)
                own = -1
            at = _skip(data, at)
            byte = data[at]
            if byte == _COMMA:
                at = _skip(data, at + 1)
                break
            if byte != work[_CLOSER, depth]:
                return _ODD, 0
            at = _skip(data, at + 1)
            if depth == 0:
                return at if data[at] == _FEED else _ODD, keys
            keys = work[_FIRST, depth]
            depth -= 1


@_entered
def scan(
    data: bytes, at: int, row: int, alike: int, fields: Fields, work: Any, lines: Any, out: Columns, odd: Any
) -> tuple[int, int, int, int]:
    """Read lines from ``at`` on until there is no more room: the place where that is, lines, rows, odd lines.

    ``data`` ends with a line feed. The first row goes to ``row``; ``alike`` keys are known. The number of each row's
    line goes to ``lines``; ``odd`` gets that of each odd line, and where it begins and ends. Blank lines are nothing.
    """
    values, texts, ends = out
    line = odds = 0
    while at < len(data) and row < lines.size and odds < odd.shape[1]:
        start = at
        at = _skip(data, at)
        if data[at] != _FEED:
            end, found = _UNLIKE, 0
            while end == _UNLIKE:
                for column in range(values.shape[0]):
                    values[column, row] = np.nan
                for text in range(texts.shape[0]):
                    ends[text, row + 1] = ends[text, row]
                end = _ODD
                if data[at] == _BRACE:
                    end, found = _row(data, at, fields, work, alike, row, out)
                alike = found
            if end >= 0:
                if values[-1, row] == values[-1, row] and texts.shape[0] > 1:
                    texts[-1, ends[-1, row + 1]] = _END_OF_OBJECT
                    ends[-1, row + 1] += 1
                lines[row] = line
                row += 1
                at = end
            else:
                while data[at] != _FEED:
                    at += 1
                odd[0, odds], odd[1, odds], odd[2, odds] = line, start, at
                odds += 1
        at += 1
        line += 1
    return at, line, row, odds

"""The book of recipes of the example's agent: what it looks for, and what it writes instead.

A recipe belongs to a chapter (the small model knows only the short one) and has a symptom, a text in a file of the tree.
Its edits replace one text in one file, in order; ``care`` says with which degree of care an edit is made.
"""

RECIPES = [
    {
        "name": "anchor the periods",
        "chapter": "short",
        "file": "billing/periods.py",
        "symptom": "end = next_month(start)",
        "edits": [
            {
                "care": "both",
                "file": "billing/periods.py",
                "find": '''\
        end = next_month(start)
        found.append(Period(start, end))
''',
                "replace": '''\
        end = _next(start, anchor)
        found.append(Period(start, end))
''',
            },
            {
                "care": "both",
                "file": "billing/periods.py",
                "find": '''\
        end = next_month(start)
        period = Period(start, end)
''',
                "replace": '''\
        end = _next(start, anchor)
        period = Period(start, end)
''',
            },
            {
                "care": "both",
                "file": "billing/periods.py",
                "find": "from billing.calendar import next_month",
                "replace": "from billing.calendar import clamp, next_month",
            },
            {
                "care": "both",
                "file": "billing/periods.py",
                "find": "def periods(anchor, count):",
                "replace": '''\
def _next(start, anchor):
    end = next_month(start)
    return clamp(end.year, end.month, anchor.day)


def periods(anchor, count):''',
            },
        ],
    },
    {
        "name": "sum by person and project",
        "chapter": "short",
        "file": "lib/Timesheet/Report.pm",
        "symptom": "push @blocks, block(",
        "edits": [
            {
                "care": "both",
                "file": "lib/Timesheet/Report.pm",
                "find": '''\
    my @blocks;
    my ($person, $project, @lines);
    my ($sum, $total, $everybody) = (0, 0, 0);

    for my $record (@records) {
        if (defined $person && $record->{person} ne $person) {
            push @lines, row($project, $sum);
            push @blocks, block($person, $total, @lines);
            @lines = ();
            ($sum, $total) = (0, 0);
            undef $project;
        }
        if (defined $project && $record->{project} ne $project) {
            push @lines, row($project, $sum);
            $sum = 0;
        }
        ($person, $project) = ($record->{person}, $record->{project});
        $sum += $record->{minutes};
        $total += $record->{minutes};
        $everybody += $record->{minutes};
    }
    push @blocks, block($person, $total, @lines) if defined $person;
''',
                "replace": '''\
    my (%rows, %total, @blocks);
    my $everybody = 0;
    for my $record (@records) {
        my ($person, $project) = @{$record}{qw(person project)};
        $rows{$person} ||= {};
        $rows{$person}{$project} = ($rows{$person}{$project} || 0) + $record->{minutes};
        $total{$person} = ($total{$person} || 0) + $record->{minutes};
        $everybody += $record->{minutes};
    }
    foreach my $person (sort keys %total) {
        my @lines;
        foreach my $project (sort keys %{ $rows{$person} }) {
            push @lines, row($project, $rows{$person}{$project});
        }
        push @blocks, block($person, $total{$person}, @lines);
    }
''',
            },
        ],
    },
    {
        "name": "count generations as numbers",
        "chapter": "short",
        "file": "lib/generations.sh",
        "symptom": "| sort -r |",
        "edits": [
            {
                "care": "both",
                "file": "lib/generations.sh",
                "find": '''\
    generations "$1" | sort -r | while read -r number; do
        mv "$1.$number" "$1.$((number + 1))"
    done
''',
                "replace": '''\
    highest=0
    for number in $(generations "$1"); do
        [ "$number" -gt "$highest" ] && highest=$number
    done
    while [ "$highest" -gt 0 ]; do
        if [ -e "$1.$highest" ]; then
            mv "$1.$highest" "$1.$((highest + 1))"
        fi
        highest=$((highest - 1))
    done
''',
            },
            {
                "care": "both",
                "file": "lib/generations.sh",
                "find": '''\
    generations "$1" | tail -n "+$(($2 + 1))" | while read -r number; do
        rm -f "$1.$number"
    done
''',
                "replace": '''\
    for number in $(generations "$1"); do
        if [ "$number" -gt "$2" ]; then
            rm -f "$1.$number"
        fi
    done
''',
            },
        ],
    },
    {
        "name": "keep the status of the last try",
        "chapter": "short",
        "file": "bin/retry.sh",
        "symptom": "if ! \"$@\"",
        "edits": [
            {
                "care": "both",
                "file": "bin/retry.sh",
                "find": '''\
    if ! "$@" > "$output" 2> "$errors"; then
        status=$?
''',
                "replace": '''\
    "$@" > "$output" 2> "$errors"
    status=$?
    if [ "$status" -ne 0 ]; then
''',
            },
            {
                "care": "thorough",
                "file": "bin/retry.sh",
                "find": '''\
        pause "$try"
        : > "$errors"
''',
                "replace": '''\
        case $status in
            126 | 127) TRIES=$try ;;
        esac
        if [ "$try" -lt "$TRIES" ]; then
            pause "$try"
        fi
''',
            },
        ],
    },
    {
        "name": "fold the case of names",
        "chapter": "short",
        "file": "phonebook/keys.py",
        "symptom": "name.strip().lower()",
        "edits": [
            {
                "care": "quick",
                "file": "phonebook/keys.py",
                "find": "return name.strip().lower()",
                "replace": "return name.strip().casefold()",
            },
            {
                "care": "quick",
                "file": "phonebook/book.py",
                "find": "if name.lower().startswith(beginning.lower())]",
                "replace": "if name.casefold().startswith(beginning.casefold())]",
            },
            {
                "care": "thorough",
                "file": "phonebook/keys.py",
                "find": '''\
"""What a name is looked up by."""
''',
                "replace": '''\
"""What a name is looked up by."""

import unicodedata
''',
            },
            {
                "care": "thorough",
                "file": "phonebook/keys.py",
                "find": "return name.strip().lower()",
                "replace": "return unicodedata.normalize(\"NFC\", name).strip().casefold()",
            },
        ],
    },
    {
        "name": "quote names",
        "chapter": "long",
        "file": "bin/backup.sh",
        "symptom": "cp -p $source/$file",
        "edits": [
            {
                "care": "quick",
                "file": "bin/backup.sh",
                "find": '''\
    cp -p $source/$file $backup/files/$file
''',
                "replace": '''\
    cp -p "$source/$file" "$backup/files/$file"
''',
            },
            {
                "care": "quick",
                "file": "bin/backup.sh",
                "find": "ignored \"$source/.backupignore\" $file;",
                "replace": "ignored \"$source/.backupignore\" \"$file\";",
            },
            {
                "care": "thorough",
                "file": "bin/backup.sh",
                "find": '''\
newer=
if [ -e "$backup/.stamp" ]; then
    newer="-newer $backup/.stamp"
fi
: > "$backup/.stamp.next"
''',
                "replace": '''\
mkdir -p "$backup"
backup=$(cd "$backup" && pwd)
[ -e "$backup/.stamp" ] || touch -d '1970-01-01' "$backup/.stamp"
: > "$backup/.stamp.next"

# Split on line feeds only and leave patterns alone.
set -f
IFS='
'
''',
            },
            {
                "care": "thorough",
                "file": "bin/backup.sh",
                "find": "for file in $(cd \"$source\" && find . -type f $newer | sed 's|^\\./||'); do",
                "replace": "for file in $(cd \"$source\" && find . -type f -newer \"$backup/.stamp\" | sed 's|^\\./||'); do",
            },
            {
                "care": "thorough",
                "file": "bin/backup.sh",
                "find": "ignored \"$source/.backupignore\" $file;",
                "replace": "ignored \"$source/.backupignore\" \"$file\";",
            },
            {
                "care": "thorough",
                "file": "bin/backup.sh",
                "find": '''\
$(dirname $file)"
    cp -p $source/$file $backup/files/$file
''',
                "replace": '''\
$(dirname -- "$file")"
    cp -p "$source/$file" "$backup/files/$file"
''',
            },
            {
                "care": "thorough",
                "file": "lib/ignore.sh",
                "find": "basename $2",
                "replace": "basename -- \"$2\"",
            },
            {
                "care": "thorough",
                "file": "lib/ignore.sh",
                "find": "while read pattern",
                "replace": "while read -r pattern",
            },
            {
                "care": "thorough",
                "file": "lib/manifest.sh",
                "find": '''\
        size=$(wc -c < $1/$path)
        printf '%d\\t%s\\n' $size $path
''',
                "replace": '''\
        size=$(wc -c < "$1/$path")
        printf '%d\\t%s\\n' "$size" "$path"
''',
            },
        ],
    },
    {
        "name": "read records, not lines",
        "chapter": "long",
        "file": "sheetio/reader.py",
        "symptom": "text.splitlines()",
        "edits": [
            {
                "care": "quick",
                "file": "sheetio/reader.py",
                "find": '''\
    if field:
        fields.append(field)
    return fields''',
                "replace": '''\
    fields.append(field)
    return fields''',
            },
            {
                "care": "thorough",
                "file": "sheetio/reader.py",
                "find": '''\
from sheetio.dialect import COMMA
''',
                "replace": '''\
import re

from sheetio.dialect import COMMA
''',
            },
            {
                "care": "thorough",
                "file": "sheetio/reader.py",
                "find": '''\
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            rows.append(_fields(line, number, dialect))
    return rows


def _fields(line, number, dialect):
    fields = []
    field = ""
    quoted = False
    closed = False
    position = 0
    while position < len(line):
        char = line[position]
        following = line[position + 1 : position + 2]
        if quoted:
            if char != dialect.quote:
                field += char
            elif following == dialect.quote:
                field += char
                position += 1
            else:
                quoted = False
                closed = True
        elif char == dialect.delimiter:
            fields.append(field)
            field = ""
            closed = False
        elif closed:
            raise FormatError(f"line {number}: {char!r} after a closing quote")
        elif char == dialect.quote and not field:
            quoted = True
        else:
            field += char
        position += 1
    if quoted:
        raise FormatError(f"line {number}: a quoted field does not end")
    if field:
        fields.append(field)
    return fields
''',
                "replace": '''\
    quote, delimiter = re.escape(dialect.quote), re.escape(dialect.delimiter)
    pattern = re.compile(
        rf"(?P<open>{quote})(?P<data>(?:[^{quote}]|{quote}{quote})*)(?P<close>{quote})?"
        rf"|(?P<plain>(?:(?!\\r?\\n|{delimiter}).)*)",
        re.DOTALL,
    )
    ending = re.compile(rf"{delimiter}|\\r?\\n|\\Z")
    rows, fields = [], []
    position, began, line = 0, 1, 1
    while position < len(text) or fields:
        found = pattern.match(text, position)
        if found["open"] and not found["close"]:
            raise FormatError(f"line {began}: a quoted field does not end")
        value = found["data"].replace(dialect.quote * 2, dialect.quote) if found["open"] else found["plain"]
        stop = ending.match(text, found.end())
        if stop is None:
            raise FormatError(f"line {began}: {text[found.end()]!r} after a closing quote")
        line += text.count("\\n", position, stop.end())
        position = stop.end()
        fields.append(value)
        if stop.group() != dialect.delimiter:
            if fields != [""] or found["open"]:
                rows.append(fields)
            fields, began = [], line
    return rows
''',
            },
        ],
    },
    {
        "name": "round half a cent up",
        "chapter": "long",
        "file": "till/money.py",
        "symptom": "round(amount, 2)",
        "edits": [
            {
                "care": "quick",
                "file": "till/money.py",
                "find": "return round(amount, 2)",
                "replace": "return round(amount + 1e-9, 2)",
            },
            {
                "care": "thorough",
                "file": "till/money.py",
                "find": '''\
def cents(amount):
    """Round an amount to whole cents."""
    return round(amount, 2)
''',
                "replace": '''\
import decimal


def cents(amount):
    """Round an amount to whole cents."""
    return amount.quantize(decimal.Decimal("0.01"), decimal.ROUND_HALF_UP)
''',
            },
            {
                "care": "thorough",
                "file": "till/invoice.py",
                "find": "        return self.quantity * self.price * (1 - self.discount / 100)",
                "replace": "        return cents(self.quantity * self.price * (1 - self.discount / 100))",
            },
            {
                "care": "thorough",
                "file": "till/invoice.py",
                "find": '''\
            net = sum(line.amount for line in self.lines if line.vat == rate)
''',
                "replace": '''\
            net = sum(line.amount for line in self.lines if line.vat == rate)
            rate = rate.normalize()
''',
            },
            {
                "care": "thorough",
                "file": "till/invoice.py",
                "find": "return cents(sum(group.net + group.vat for group in self.groups()))",
                "replace": "return sum([group.net + group.vat for group in self.groups()], Decimal(\"0.00\"))",
            },
            {
                "care": "thorough",
                "file": "till/invoice.py",
                "find": '''\
from typing import NamedTuple
''',
                "replace": '''\
from decimal import Decimal
from typing import NamedTuple
''',
            },
            {
                "care": "thorough",
                "file": "till/invoice.py",
                "find": "discount: float = 0.0",
                "replace": "discount: Decimal = Decimal(0)",
            },
            {
                "care": "thorough",
                "file": "till/loader.py",
                "find": '''\
    return float(value)
''',
                "replace": '''\
    text = str(value)
    float(text)  # a ValueError for what is no number
    return Decimal(text)
''',
            },
            {
                "care": "thorough",
                "file": "till/loader.py",
                "find": '''\
import json
''',
                "replace": '''\
import json
from decimal import Decimal
''',
            },
            {
                "care": "thorough",
                "file": "till/render.py",
                "find": "{group.rate:g} %':<28}{show(group.net)",
                "replace": "{group.rate:f} %':<28}{show(group.net)",
            },
            {
                "care": "thorough",
                "file": "till/render.py",
                "find": "{group.rate:g} %':<28}{show(group.vat)",
                "replace": "{group.rate:f} %':<28}{show(group.vat)",
            },
        ],
    },
    {
        "name": "evict the oldest",
        "chapter": "long",
        "file": "pagecache/cache.py",
        "symptom": "self._entries.popitem()",
        "edits": [
            {
                "care": "both",
                "file": "pagecache/cache.py",
                "find": '''\
        self.stats.count(entry is not None)
        return default if entry is None else entry.value

    def peek''',
                "replace": '''\
        self.stats.count(entry is not None)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry.value
        return default

    def peek''',
            },
            {
                "care": "both",
                "file": "pagecache/cache.py",
                "find": "self._entries.popitem()",
                "replace": "self._entries.popitem(False)",
            },
            {
                "care": "thorough",
                "file": "pagecache/cache.py",
                "find": '''\
        self._entries[key] = Entry(value, weight)
        self.weight += weight
        self._shrink()
''',
                "replace": '''\
        old = self._entries.get(key, Entry(None, 0))
        self._entries[key] = Entry(value, weight)
        self._entries.move_to_end(key)
        self.weight += weight - old.weight
        self._shrink()
''',
            },
        ],
    },
    {
        "name": "take refunds off",
        "chapter": "short",
        "file": "receipts.py",
        "symptom": "amount += int(cents)",
        "edits": [
            {
                "care": "quick",
                "file": "receipts.py",
                "find": "        amount += int(cents)",
                "replace": "        amount += int(cents) if name != \"refund\" else -int(cents)",
            },
            {
                "care": "thorough",
                "file": "receipts.py",
                "find": "        amount += int(cents)",
                "replace": "        amount += int(cents) * (-1 if name.split()[0] == \"refund\" else 1)",
            },
        ],
    },
]

#!/bin/sh
# The tests of nightly: prints one TAP line for each, exits 1 when one fails.
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failures=0

check() { # check NAME EXPECTED ACTUAL
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        printf 'expected: %s\ngot:      %s\n' "$2" "$3" | sed 's/^/# /'
        failures=$((failures + 1))
    fi
}

mkdir -p "$work/src/docs"
printf 'one' > "$work/src/a.txt"
printf 'three' > "$work/src/docs/b.txt"
printf 'x' > "$work/src/docs/b.tmp"
printf '# scratch\n*.tmp\n' > "$work/src/.backupignore"

check "the first backup copies everything" "copied 2" "$(sh bin/backup.sh "$work/src" "$work/dst")"
check "the content arrives" three "$(cat "$work/dst/files/docs/b.txt")"
check "the manifest has sizes and paths" "$(printf '3\ta.txt\n5\tdocs/b.txt')" "$(cat "$work/dst/manifest")"
check "nothing new, nothing copied" "copied 0" "$(sh bin/backup.sh "$work/src" "$work/dst")"

echo "1..$count"
[ "$failures" -eq 0 ]

#!/bin/sh
# The tests of steady: prints one TAP line for each, exits 1 when one fails (see tests/settings).
cd "$(dirname "$0")/.." || exit 1
. tests/settings
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

for suite in $SUITES; do
    . "tests/$suite.sh"
done
echo "1..$count"
[ "$failures" -eq 0 ] || [ "$STRICT" != yes ]

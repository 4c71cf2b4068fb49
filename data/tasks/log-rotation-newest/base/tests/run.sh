#!/bin/sh
# The tests of logkeeper: prints one TAP line for each, exits 1 when one fails.
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

log=$work/app.log
echo "$log keep=3" > "$work/conf"
for day in mon tue wed thu fri; do
    echo "$day" > "$log"
    sh bin/rotate.sh "$work/conf" > "$work/out"
done
check "the newest generation" fri "$(cat "$log.1")"
check "the oldest generation that is kept" wed "$(cat "$log.3")"
check "no more than that" no "$([ -e "$log.4" ] && echo yes || echo no)"
check "the log starts again" 0 "$(wc -c < "$log" | tr -d ' ')"
check "the line that is printed" "$(printf '%s\t3' "$log")" "$(cat "$work/out")"

echo "$log keep=3 size=100" > "$work/conf"
check "a small log is left alone" "" "$(sh bin/rotate.sh "$work/conf")"
echo "$log keep=three" > "$work/conf"
check "an unreadable line is an error" failed "$(sh bin/rotate.sh "$work/conf" 2> /dev/null || echo failed)"

echo "1..$count"
[ "$failures" -eq 0 ]

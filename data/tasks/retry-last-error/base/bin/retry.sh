#!/bin/sh
# Run a command until it succeeds: see README.md.
set -u

here=$(dirname "$0")
. "$here/../lib/backoff.sh"
. "$here/../lib/options.sh"

parse_options "$@"
shift "$OPTIONS_READ"
if [ $# -eq 0 ]; then
    usage
    exit 2
fi

output=$(mktemp) || exit 1
errors=$(mktemp) || exit 1
trap 'rm -f "$output" "$errors"' EXIT

try=1
while [ "$try" -le "$TRIES" ]; do
    if ! "$@" > "$output" 2> "$errors"; then
        status=$?
        echo "retry: try $try of $TRIES failed with status $status" >&2
        pause "$try"
        : > "$errors"
    else
        cat "$output"
        cat "$errors" >&2
        exit 0
    fi
    try=$((try + 1))
done

cat "$errors" >&2
exit "$status"

#!/bin/sh
# Rotate the logs of a configuration: sh bin/rotate.sh CONFIGURATION
set -eu

here=$(dirname "$0")
. "$here/../lib/generations.sh"

if [ $# -ne 1 ]; then
    echo "usage: sh bin/rotate.sh CONFIGURATION" >&2
    exit 2
fi

plan=$(mktemp)
trap 'rm -f "$plan"' EXIT
awk -f "$here/../lib/configuration.awk" "$1" > "$plan"

while read -r keep size log; do
    [ -f "$log" ] || continue
    [ "$(wc -c < "$log")" -ge "$size" ] || continue
    shift_generations "$log"
    renew "$log"
    prune "$log" "$keep"
    printf '%s\t%d\n' "$log" "$(generations "$log" | wc -l)"
done < "$plan"

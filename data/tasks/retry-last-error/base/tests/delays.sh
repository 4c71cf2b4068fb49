# How long pauses are.
. lib/backoff.sh

DELAY=1 LONGEST=60
check "the first pause" 1 "$(delay_after 1)"
check "pauses double" 4 "$(delay_after 3)"
DELAY=5 LONGEST=12
check "pauses are capped" 12 "$(delay_after 3)"

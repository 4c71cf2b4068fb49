# What comes out of retry.sh.
RETRY_SLEEP=true
export RETRY_SLEEP

check "success goes through" hello "$(sh bin/retry.sh echo hello)"
sh bin/retry.sh -n 2 sh -c 'exit 7' 2> /dev/null
check "the status of a command that never succeeds" 7 $?

# How long to wait between two tries.

# delay_after TRY: the seconds to wait after that try.
delay_after() {
    delay=$DELAY
    step=1
    while [ "$step" -lt "$1" ]; do
        delay=$((delay * 2))
        step=$((step + 1))
    done
    if [ "$delay" -gt "$LONGEST" ]; then
        delay=$LONGEST
    fi
    echo "$delay"
}

# pause TRY: wait after that try.
pause() {
    ${RETRY_SLEEP:-sleep} "$(delay_after "$1")"
}

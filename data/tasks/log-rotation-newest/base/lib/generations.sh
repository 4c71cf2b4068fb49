# The old generations of a log: LOG.1 is the newest.

# generations LOG: the numbers of its generations, newest first.
generations() {
    for path in "$1".*; do
        number=${path#"$1".}
        case $number in
            '' | 0* | *[!0-9]*) continue ;;
        esac
        echo "$number"
    done | sort
}

# shift_generations LOG: make room for a new generation 1.
shift_generations() {
    generations "$1" | sort -r | while read -r number; do
        mv "$1.$number" "$1.$((number + 1))"
    done
}

# renew LOG: the log becomes generation 1 and starts again, empty.
renew() {
    cp -p "$1" "$1.1"
    : > "$1"
}

# prune LOG KEEP: delete generations until KEEP are left.
prune() {
    generations "$1" | tail -n "+$(($2 + 1))" | while read -r number; do
        rm -f "$1.$number"
    done
}

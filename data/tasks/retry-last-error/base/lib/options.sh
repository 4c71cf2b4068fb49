# The command line of retry.sh.

usage() {
    echo "usage: sh bin/retry.sh [-n TRIES] [-d SECONDS] [-m SECONDS] COMMAND [ARGUMENT...]" >&2
}

# whole NAME VALUE: leaves with status 2 unless the value is a whole number.
whole() {
    case $2 in
        '' | *[!0-9]*)
            echo "retry: -$1 wants a whole number, not '$2'" >&2
            exit 2
            ;;
    esac
}

# parse_options WORD...: sets TRIES, DELAY, LONGEST, and OPTIONS_READ, the number of words that were options.
parse_options() {
    TRIES=3
    DELAY=1
    LONGEST=60
    OPTIND=1
    while getopts n:d:m: option; do
        case $option in
            n) whole n "$OPTARG" && TRIES=$OPTARG ;;
            d) whole d "$OPTARG" && DELAY=$OPTARG ;;
            m) whole m "$OPTARG" && LONGEST=$OPTARG ;;
            *)
                usage
                exit 2
                ;;
        esac
    done
    if [ "$TRIES" -eq 0 ]; then
        echo "retry: -n wants at least 1" >&2
        exit 2
    fi
    OPTIONS_READ=$((OPTIND - 1))
}

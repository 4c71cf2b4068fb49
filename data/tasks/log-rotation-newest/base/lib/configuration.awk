# From a configuration to lines "keep size log"; a line that cannot be read ends the program with status 1.

/^[ \t]*(#|$)/ { next }

{
    keep = 5
    size = 1
    for (field = 2; field <= NF; field++) {
        if ($field ~ /^keep=[0-9]+$/) keep = substr($field, 6) + 0
        else if ($field ~ /^size=[0-9]+$/) size = substr($field, 6) + 0
        else {
            printf "rotate: %s:%d: unknown setting %s\n", FILENAME, FNR, $field > "/dev/stderr"
            failed = 1
            exit 1
        }
    }
    plan[++count] = keep " " size " " $1
}

END {
    if (failed) exit 1
    for (i = 1; i <= count; i++) print plan[i]
}

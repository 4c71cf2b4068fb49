# Which files stay out of the backup.

# ignored PATTERNS NAME: succeeds when the last part of NAME matches a pattern of the file PATTERNS.
ignored() {
    name=$(basename $2)
    [ "$name" = .backupignore ] && return 0
    [ -f "$1" ] || return 1
    while read pattern; do
        case $pattern in
            '' | '#'*) continue ;;
        esac
        case $name in
            $pattern) return 0 ;;
        esac
    done < "$1"
    return 1
}

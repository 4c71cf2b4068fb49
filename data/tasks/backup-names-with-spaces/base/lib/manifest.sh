# The list of what a backup holds.

# write_manifest FOLDER OUTPUT: one line "size<TAB>path" for each file below FOLDER, sorted by path.
write_manifest() {
    for path in $(cd "$1" && find . -type f | sed 's|^\./||' | LC_ALL=C sort); do
        size=$(wc -c < $1/$path)
        printf '%d\t%s\n' $size $path
    done > "$2"
}

#!/bin/sh
# Copy what changed since the last time: sh bin/backup.sh SOURCE BACKUP
set -eu

here=$(dirname "$0")
. "$here/../lib/ignore.sh"
. "$here/../lib/manifest.sh"

if [ $# -ne 2 ]; then
    echo "usage: sh bin/backup.sh SOURCE BACKUP" >&2
    exit 2
fi
source=$1
backup=$2

if [ ! -d "$source" ]; then
    echo "backup: $source: not a folder" >&2
    exit 1
fi
mkdir -p "$backup/files"

newer=
if [ -e "$backup/.stamp" ]; then
    newer="-newer $backup/.stamp"
fi
: > "$backup/.stamp.next"

copied=0
for file in $(cd "$source" && find . -type f $newer | sed 's|^\./||'); do
    if ignored "$source/.backupignore" $file; then
        continue
    fi
    mkdir -p "$backup/files/$(dirname $file)"
    cp -p $source/$file $backup/files/$file
    copied=$((copied + 1))
done

write_manifest "$backup/files" "$backup/manifest"
mv "$backup/.stamp.next" "$backup/.stamp"
echo "copied $copied"

#!/usr/bin/env bash
# beside.sh FOLDER: copies there what fuzzers open below the folder in which they start: specs/, and
# the fixtures that their sources name.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
to=${1:?FOLDER}
fixtures=$(sed -n 's/.*VERNIER_SOURCE "\/\([^"]*\)".*/\1/p' "$root"/tests/fuzz/fuzz_*.c | sort -u)
for path in $fixtures; do
	[ -e "$root/$path" ] || continue # the beginning of a name
	mkdir -p "$to/$(dirname "$path")"
	cp -r "$root/$path" "$to/$(dirname "$path")/"
done
cp -r "$root/specs" "$to/"

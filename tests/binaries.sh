#!/usr/bin/env bash
# binaries.sh BUILD: what the dynamic section of every program and shared library in BUILD, and of what `cmake --install`
# makes of it, must say: no library search path with an empty or relative element, through which the loader would
# take code from the current folder. Then the attack itself: a hostile library in the current folder does not run.
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null

bad=0
complain() { # file, what is wrong
	echo "$1: $2"
	bad=1
}

# Prints the ELF files below a folder that the loader maps: programs and shared libraries, no object files.
mapped_files() {
	find "$1" -type f ! -name '*.o' ! -name '*.a' -print0 | while IFS= read -r -d '' file; do
		case $(head -c 4 "$file" | od -An -c | tr -d ' ') in 177ELF) echo "$file" ;; esac
	done
}

check_search_path() { # file
	local line path element
	readelf -dW "$1" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p' >"$work/paths"
	while IFS= read -r line; do
		path=$line:
		while [ -n "$path" ]; do
			element=${path%%:*}
			path=${path#*:}
			case $element in
			/* | '$ORIGIN' | '$ORIGIN/'*) ;;
			*) complain "$1" "library search path [$line] has the element '$element', which is not an absolute folder" ;;
			esac
		done
	done <"$work/paths"
}

checked=0
while IFS= read -r file; do
	check_search_path "$file"
	checked=$((checked + 1))
done < <(mapped_files "$build"; mapped_files "$work/usr")

# A library of the name of each one that the program needs, in the current folder: its constructor leaves a file.
mkdir "$work/here"
cat >"$work/hostile.c" <<'C'
#include <stdio.h>
__attribute__((constructor)) static void run(void) { FILE *f = fopen("executed", "w"); if (f) fclose(f); }
C
cc -shared -fPIC "$work/hostile.c" -o "$work/hostile.so"
while IFS= read -r name; do
	cp "$work/hostile.so" "$work/here/$name"
done < <(readelf -dW "$build/compare/vernier" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
for program in "$build/compare/vernier" "$work/usr/bin/vernier"; do
	(cd "$work/here" && "$program" --version >/dev/null 2>&1) || complain "$program" "does not start beside hostile libraries"
	[ ! -e "$work/here/executed" ] || complain "$program" "runs code from the current folder"
	rm -f "$work/here/executed"
done

[ "$checked" -gt 2 ] || complain "$build" "only $checked binaries found"
[ "$bad" = 0 ] && echo "binaries: $checked read"
exit "$bad"

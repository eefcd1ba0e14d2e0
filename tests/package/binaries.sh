#!/usr/bin/env bash
# binaries.sh BUILD: reads every program and shared library in BUILD,
# and in what `cmake --install` makes of it.
#   - No library search path has an empty or relative element, through which the loader would take
#     code from the current folder. Then the attack itself: a hostile library in the current folder
#     does not run.
#   - Programs are position independent; relocations are resolved at the start and then read-only
#     (full RELRO); the stack is not executable.
#   - `vernier` has stack protectors and, in an optimised build without sanitizers,
#     fortified library calls.
set -eu
build=$(cd "$1" && pwd)
model=$(cd "$(dirname "$0")/../.." && pwd)/fixtures/qwen2-trained
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null

bad=0
complain() { # file, what is wrong
	echo "$1: $2"
	bad=1
}

# Prints the ELF files below a folder that the loader maps: programs and shared libraries,
# no object files.
mapped_files() {
	find "$1" -name CMakeFiles -prune -o -type f ! -name '*.o' ! -name '*.a' -print0 | while IFS= read -r -d '' file; do
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
			*) complain "$1" \
				"library search path [$line] has the element '$element', which is not an absolute folder" ;;
			esac
		done
	done <"$work/paths"
}

check_hardening() { # file
	readelf -hldW "$1" >"$work/elf"
	grep -q 'Type: *DYN' "$work/elf" || complain "$1" "is not position independent"
	grep -q 'GNU_RELRO' "$work/elf" || complain "$1" "has no read-only relocations (RELRO)"
	grep -qE '\(BIND_NOW\)|FLAGS.*(BIND_)?NOW' "$work/elf" ||
		complain "$1" "binds lazily: its relocations stay writable"
	grep -qE 'GNU_STACK .* RW +0' "$work/elf" || complain "$1" "has an executable stack"
}

checked=0
while IFS= read -r file; do
	check_search_path "$file"
	check_hardening "$file"
	checked=$((checked + 1))
done < <(mapped_files "$build"; mapped_files "$work/usr")

cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
every_compilation_has() { # option
	# One "command" a line; assembler and shader rules are not in this file.
	! grep '"command":' "$build/compile_commands.json" | grep -qvF -e "$1" ||
		complain "$build" "something is compiled without $1"
}
nm -D --undefined-only "$build/compare/vernier" >"$work/imports"
grep -q __stack_chk_fail "$work/imports" || complain "$build/compare/vernier" "has no stack protector"
every_compilation_has -fstack-protector-strong
if [ -z "$(cached VERNIER_SANITIZE)" ] && [ "$(cached CMAKE_BUILD_TYPE)" != Debug ]; then
	grep -qE '__[a-z]+_chk(@|$)' "$work/imports" || complain "$build/compare/vernier" "has no fortified calls"
	every_compilation_has -D_FORTIFY_SOURCE=
fi

# A library of the name of each one that the program needs or loads later, in the current
# folder: its constructor leaves a file.
mkdir "$work/here"
cat >"$work/hostile.c" <<'C'
#include <stdio.h>
__attribute__((constructor)) static void run(void) { FILE *f = fopen("executed", "w"); if (f) fclose(f); }
C
cc -shared -fPIC "$work/hostile.c" -o "$work/hostile.so"
while IFS= read -r name; do
	cp "$work/hostile.so" "$work/here/$name"
done < <(readelf -dW "$build/compare/vernier" |
	sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'; echo libopenblas.so.0; echo libvulkan.so.1)
for program in "$build/compare/vernier" "$work/usr/bin/vernier"; do
	(cd "$work/here" && "$program" --version && "$program" capture ref "$model" --ids 1,2,3 --force -o a.h5 &&
		{ "$program" devices || true; }) >/dev/null 2>&1 ||
		complain "$program" "does not start beside hostile libraries"
	[ ! -e "$work/here/executed" ] || complain "$program" "runs code from the current folder"
	rm -f "$work/here/executed"
done

[ "$checked" -gt 2 ] || complain "$build" "only $checked binaries found"
[ "$bad" = 0 ] && echo "binaries: $checked read"
exit "$bad"

#!/usr/bin/env bash
# format.sh: every C file is as .clang-format writes it. Skipped (77) without clang-format 14: other versions format
# differently. To format the tree: git ls-files '*.c' '*.h' | xargs clang-format-14 -i
set -u
cd "$(dirname "$0")/.."
format=
for program in clang-format-14 clang-format; do
	if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then
		format=$program
		break
	fi
done
if [ -z "$format" ]; then
	echo "skipped: clang-format 14 is not installed"
	exit 77
fi
files=$(find libref libgpu capture compare fixtures tests -name '*.[ch]' | sort)
[ -n "$files" ] || { echo "no C files found"; exit 1; }
said=$(echo "$files" | xargs -n 100 "$format" --dry-run --Werror 2>&1)
bad=$(echo "$said" | sed -n 's/^\([^:]*\.[ch]\):[0-9]*:[0-9]*: error:.*/\1/p' | sort -u)
if [ -n "$bad" ]; then
	echo "not formatted; type: $format -i" $bad
	exit 1
fi
[ -z "$said" ] || { echo "$said"; exit 1; }
echo "$(echo "$files" | wc -l) files are formatted"

#!/usr/bin/env bash
# points_page.sh [--write] VERNIER: the tables of specs/points.md and specs/faults.md are what the program prints, and
# specs/weights.md describes each kind of difference.
#
# --write puts what the program prints between the lines ``` of the two pages.
set -eu
export COLUMNS=100
specs=$(dirname "$0")/../specs
write=
[ "$1" = --write ] && { write=1; shift; }
vernier=$1
[ -x "$vernier" ]
made=$(mktemp)
trap 'rm -f "$made"' EXIT
# page, arguments of the program
check() {
	local page=$specs/$1
	shift
	awk '!skip; /^```$/ && ++fence == 1 { skip = 1 } /^```$/ && fence == 2 { skip = 0; print }' "$page" |
		{ while IFS= read -r line; do
			printf '%s\n' "$line"
			[ "$line" != '```' ] || [ "${table-}" ] || { table=1; "$vernier" "$@"; }
		done; } >"$made"
	[ "$(grep -c '^```$' "$made")" = 2 ] || { echo "$page: expected one table between two lines \`\`\`"; exit 1; }
	[ -z "$write" ] || cp "$made" "$page"
	diff "$page" "$made" || { echo "write it anew: tests/points_page.sh --write $vernier"; exit 1; }
	echo "$(basename "$page") is what vernier $* prints"
}
check points.md points
check faults.md points --faults

# Kinds of the rows WEIGHT: the page says what each means.
kinds=$(sed -n 's/^WEIGHT([^"]*"\([a-z-]*\)".*/\1/p' "$specs/../libref/plan/catalogue.def" | sort -u)
[ "$(wc -l <<<"$kinds")" -gt 10 ] || { echo "catalogue.def: no rows WEIGHT found"; exit 1; }
for kind in $kinds; do
	grep -qE "^([a-z-]+, )*$kind(,|  )" "$specs/weights.md" || { echo "specs/weights.md: missing: $kind"; exit 1; }
done
echo "specs/weights.md has every kind"

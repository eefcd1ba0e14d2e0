#!/usr/bin/env bash
# tables.sh [--write] VERNIER: the table of specs/limits.md is what the program prints, and
# specs/weights.md lists each kind of difference, README the number of known mistakes.
#
# --write puts what the program prints into the page.
set -eu
export COLUMNS=100
specs=$(dirname "$0")/../../specs
write=
[ "$1" = --write ] && { write=1; shift; }
vernier=$1
[ -x "$vernier" ]
made=$(mktemp)
table=$(mktemp)
trap 'rm -f "$made" "$table"' EXIT
# page, the line before its table, a command that prints the table
check() {
	local page=$specs/$1 fence=$2
	shift 2
	"$@" >"$table"
	[ "$(grep -cFx "$fence" "$page")" -ge 1 ] && [ -s "$table" ] ||
		{ echo "$page: no line '$fence', or no table"; exit 1; }
	awk -v fence="$fence" -v table="$table" '
		!skip { print }
		$0 == fence && !done { while ((getline line <table) > 0) print line; skip = done = 1; next }
		skip && $0 == "```" { print; skip = 0 }' "$page" >"$made"
	[ -z "$write" ] || cp "$made" "$page"
	diff "$page" "$made" || { echo "write it anew: tests/pages/tables.sh --write $vernier"; exit 1; }
	echo "$(basename "$page") has the program's table"
}
metrics() { "$vernier" limits fp32.yaml | sed '1,/^what can be limited/d; s/^  //'; }
check limits.md '```text' metrics

# Kinds of the rows WEIGHT and WEIGHT_OF: the page lists each.
kinds=$(sed -nE 's/^WEIGHT(_OF)?\([^"]*"([a-z-]*)".*/\2/p' "$specs/../libref/plan/catalogue.def" | sort -u)
[ "$(wc -l <<<"$kinds")" -gt 10 ] || { echo "catalogue.def: no rows WEIGHT found"; exit 1; }
for kind in $kinds; do
	grep -qF "\`$kind\`" "$specs/weights.md" || { echo "specs/weights.md: missing: $kind"; exit 1; }
done
echo "specs/weights.md has every kind"

mistakes=$("$vernier" points --faults | grep -c '^[A-Z][0-9]')
grep -q ", $mistakes known mistakes" "$specs/../README.md" ||
	{ echo "README: there are $mistakes known mistakes"; exit 1; }
echo "README has their number"

#!/usr/bin/env bash
# points_page.sh [--write] VERNIER: tables of specs/points.md, faults.md and limits.md are what the
# program prints, and specs/weights.md describes each kind of difference.
#
# --write puts what the program prints into the pages.
set -eu
export COLUMNS=100
specs=$(dirname "$0")/../specs
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
	diff "$page" "$made" || { echo "write it anew: tests/points_page.sh --write $vernier"; exit 1; }
	echo "$(basename "$page") has the program's table"
}
metrics() { "$vernier" limits fp32.yaml | sed '1,/^what can be limited/d; s/^  //'; }
check points.md '```' "$vernier" points
check faults.md '```' "$vernier" points --faults
check limits.md '```text' metrics

# Kinds of the rows WEIGHT: the page says what each means.
kinds=$(sed -n 's/^WEIGHT([^"]*"\([a-z-]*\)".*/\1/p' "$specs/../libref/plan/catalogue.def" | sort -u)
[ "$(wc -l <<<"$kinds")" -gt 10 ] || { echo "catalogue.def: no rows WEIGHT found"; exit 1; }
for kind in $kinds; do
	grep -qE "^([a-z-]+, )*$kind(,|  )" "$specs/weights.md" || { echo "specs/weights.md: missing: $kind"; exit 1; }
done
echo "specs/weights.md has every kind"

# Ids and titles of the catalogue: compare/ has no literal of them. In a longer literal, a title
# counts from 24 characters on: shorter ones are ordinary words. A title with another number, or
# with a conversion of printf for it, is a copy, too: both are compared as a mark.
mark() { perl -pe 's/%(?:\d+\$)?[-+ #0]*\d*(?:\.\d+)?(?:ll)?[a-z]/\x{1}/g; s/\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b/\x{1}/g'; }
rows=$(awk '/^[A-Z_]+\(/ { print row; row = "" } { sub(/^[ \t]+/, " "); row = row $0 } END { print row }' \
	"$specs/../libref/plan/catalogue.def")
of_faults='^(FAULT|RECORDER_FAULT|FAMILY)\('
{
	sed -nE "s/$of_faults[^\"]*\"[^\"]*\", \"([^\"]*)\".*/\2/p" <<<"$rows"
	sed -nE 's/^WEIGHT\([^"]*"[^"]*", "([^"%]*).*/\1/p' <<<"$rows"
	sed -nE 's/^FORM\([^"]*"([^"]*)".*/\1/p' <<<"$rows"
} >"$table"
[ "$(wc -l <"$table")" -gt 300 ] || { echo "catalogue.def: its rows were not read"; exit 1; }
{
	awk 'length >= 24' "$table"
	sed -nE "s/$of_faults[^\"]*\"[^\"]*\", (\"[^\"]*\").*/\2/p" <<<"$rows"
} | mark | awk 'length >= 10' | sort -u >"$made"
sed -nE "s/$of_faults[^\"]*(\"[^\"]*\"), \"[^\"]*\".*/\2/p" <<<"$rows" >>"$made" # ids are not marked
literals=$(grep -rn '"' "$specs/../compare" --include='*.[ch]' --include='*.def' |
	grep -vE ':[0-9]+:\s*(/\*| \*)' | sed 's,/\*.*,,')
found=$({ grep -Ff "$made" <<<"$literals"; mark <<<"$literals" | grep -nFf "$made" |
	sed 's/:.*//; s/$/p/' | sed -nf - <(echo "$literals"); } | sort -u)
[ -z "$found" ] || { printf '%s\nan id or a title of catalogue.def as a literal\n' "$found"; exit 1; }
echo "compare/ has no literal of an id or title of the catalogue"

#!/usr/bin/env bash
# points_page.sh VERNIER: specs/points.md shows the table that the program has, specs/faults.md describes each fault and
# specs/weights.md each kind of difference.
set -eu
specs=$(dirname "$0")/../specs
table() { sed -n '/^```$/,/^```$/p' "$specs/$1" | grep -v '^```$'; }
diff <(table points.md) <("$1" points) && echo "specs/points.md is the program's table"

# Ids of the page: what begins a line, and with each ".variant" behind it. No fault is missing, no variant is one too many.
page=$(table faults.md | awk '/^[A-Z]/ { id = $1; print id }
	{ n = split($0, word, /[ (),;:]+/); for (i = 1; i <= n; i++) if (word[i] ~ /^\.[0-9a-z]/) print id word[i] }' | sort -u)
faults=$("$1" points --faults | awk 'NR > 1 { print $1 }' | sort -u)
missing=$(comm -13 <(echo "$page") <(echo "$faults"))
unknown=$(comm -23 <(echo "$page" | grep -F .) <(echo "$faults"))
[ -z "$missing$unknown" ] || { echo "specs/faults.md: missing: "$missing", unknown: "$unknown; exit 1; }
echo "specs/faults.md has every fault"

# Kinds of the rows WEIGHT: the page says what each means.
kinds=$(sed -n 's/^WEIGHT([^"]*"\([a-z-]*\)".*/\1/p' "$specs/../libref/plan/catalogue.def" | sort -u)
[ "$(wc -l <<<"$kinds")" -gt 10 ] || { echo "catalogue.def: no rows WEIGHT found"; exit 1; }
for kind in $kinds; do
	grep -qE "^([a-z-]+, )*$kind(,|  )" "$specs/weights.md" || { echo "specs/weights.md: missing: $kind"; exit 1; }
done
echo "specs/weights.md has every kind"

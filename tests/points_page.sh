#!/usr/bin/env bash
# points_page.sh VERNIER: specs/points.md and specs/faults.md show the tables that the program has.
set -eu
specs=$(dirname "$0")/../specs
table() { sed -n '/^```$/,/^```$/p' "$specs/$1" | grep -v '^```$'; }
diff <(table points.md) <("$1" points) && echo "specs/points.md is the program's table"
diff <(table faults.md) <("$1" points --faults) && echo "specs/faults.md is the program's table"

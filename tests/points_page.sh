#!/usr/bin/env bash
# points_page.sh VERNIER: specs/points.md shows the table of points that the program has.
set -eu
page=$(dirname "$0")/../specs/points.md
diff <(sed -n '/^```$/,/^```$/p' "$page" | grep -v '^```$') <("$1" points) && echo "specs/points.md is the program's table"

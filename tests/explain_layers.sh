#!/usr/bin/env bash
# explain_layers.sh LIBRARY SOURCE: calls between the files of compare/explain go one way: no file is part of a circle.
set -u
files=$(cd "$2/compare/explain" && echo *.c)
nm -A "$1" | awk -v files="$files" '
BEGIN { n = split(files, f, " "); for (i = 1; i <= n; i++) ours[f[i] ".o"] = 1 }
{ split($1, at, ":"); file = at[2]; kind = $(NF - 1); name = $NF }
!(file in ours) { next }
kind ~ /[TDBR]/ { made[name] = file }
kind == "U" { uses[file, name] = 1 }
END { for (u in uses) { split(u, p, SUBSEP); if (p[2] in made) print p[1], made[p[2]] } }' >edges.$$
pairs=$(wc -l <edges.$$)
circles=$(tsort edges.$$ 2>&1 >/dev/null)
rm edges.$$
[ "$pairs" -ge 20 ] || { echo "only $pairs calls between files: is $1 the library?"; exit 1; }
[ -z "$circles" ] || { echo "files of compare/explain call each other in a circle:"; echo "$circles"; exit 1; }
echo "calls go one way: $pairs between $(echo "$files" | wc -w) files"

#!/usr/bin/env bash
# check.sh [--accept] NAME: runs tests/cli/NAME.sh and compares what it says with NAME.expected.
#
# The script runs in an empty folder with $VERNIER (the program), $FIXTURES and $TESTS set and
# these functions:
#   vernier ARGS...
#   say ARGS...              prints the command, its output on both streams and its exit status
#   say_lines REGEX ARGS...  the same, but only the lines of output that match
# Python finds the modules of tests/support (editing.py). What the script prints on both streams, in
# order, and its exit status are the expectation; --accept rewrites it. Paths of this machine are
# replaced by words, so that the expectation holds everywhere. A script that ends with status 77 is
# skipped.
set -u
accept=
[ "${1:-}" = --accept ] && { accept=1; shift; }
name=${1:?the name of a script of tests/cli, without .sh}
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/$name.sh" ] || { echo "check.sh: no $here/$name.sh" >&2; exit 2; }
VERNIER=$(realpath -e "${VERNIER:?the program to test}") || exit 1
: "${PYTHON:?a Python with numpy and h5py}"
export VERNIER FIXTURES=${FIXTURES:-$here/../../fixtures} TESTS=$here/..
FIXTURES=$(cd "$FIXTURES" && pwd)
TESTS=$(cd "$TESTS" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/cwd" "$work/tmp"
# Mesa would compile every shader again in an empty cache.
export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}}
export PYTHONPATH=$TESTS/support PYTHONDONTWRITEBYTECODE=1 TMPDIR=$work/tmp XDG_CACHE_HOME=$work/cache NO_COLOR=1
unset COLUMNS
functions='vernier() { "$VERNIER" "$@"; }
say() { echo "\$ vernier $*"; vernier "$@" 2>&1; echo "[$?]"; }
say_lines() { echo "\$ vernier ${*:2}"; vernier "${@:2}" 2>&1 | grep -E "$1"; echo "[${PIPESTATUS[0]}]"; }'
(cd "$work/cwd" && bash -c "$functions"'; . "$1"' bash "$here/$name.sh") >"$work/out" 2>&1 </dev/null
status=$?
[ $status = 77 ] && { cat "$work/out"; exit 77; }
# A container may lack a layer of the sandbox.
{ sed -e '/^vernier: note: the sandbox in which files are read lacks /d' -e \
	"s#$work/cwd#CWD#g; s#$work#TMP#g; s#$FIXTURES#FIXTURES#g; s#$TESTS#TESTS#g; s#$(dirname "$TESTS")#SOURCE#g" \
	"$work/out"
  echo "[exit $status]"; } >"$work/got"
if [ -n "$accept" ]; then
	cp "$work/got" "$here/$name.expected"
	exit 0
fi
diff -u "$here/$name.expected" "$work/got" && echo "$name: as expected"

#!/usr/bin/env bash
# bench.sh [BUILD [OPTIONS of bench.py]]: the table of benchmarks, in one run. Builds nothing; BUILD is build/release by default.
set -euo pipefail
here=$(dirname "$0")
build=${1:-$here/../build/release}
[ -x "$build/compare/vernier" ] || { echo "bench.sh: no $build/compare/vernier; build the preset 'release' first" >&2; exit 2; }
exec python3 "$here/bench.py" "$build" "${@:2}"

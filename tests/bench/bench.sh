#!/usr/bin/env bash
# bench.sh [BUILD [OPTIONS of bench.py]]: the table of benchmarks, in one run. Builds nothing; BUILD
# is build/release by default. Everything: bench.sh BUILD --torch PYTHON --big MODEL7B --json FILE,
# where MODEL7B was made by `vernier synth mistral-7b`.
set -euo pipefail
here=$(dirname "$0")
build=${1:-$here/../../build/release}
[ -x "$build/compare/vernier" ] ||
	{ echo "bench.sh: no $build/compare/vernier; build the preset 'release' first" >&2; exit 2; }
for python in python3 /usr/bin/python3; do # the first one that has h5py, which two peers need
	"$python" -c 'import h5py, numpy, xxhash' 2>/dev/null && exec "$python" "$here/bench.py" "$build" "${@:2}"
done
exec python3 "$here/bench.py" "$build" "${@:2}"

#!/usr/bin/env bash
# run.sh: installs what the tests need (as root, on Debian), builds, and runs every test.
#
#   tests/run.sh [--quick]     --quick: the release build alone, without sanitizers and the second compiler
set -euo pipefail
cd "$(dirname "$0")/.."
quick=${1:-}

tests/install.sh tests

configure_and_build() { # preset, further options
	local preset=$1
	shift
	cmake --preset "$preset" -DVERNIER_WERROR=ON "$@" >/dev/null
	cmake --build --preset "$preset" -- --quiet
}
run_tests() { # preset, further options
	local preset=$1
	shift
	ctest --preset "$preset" "$@"
}

echo "== release, gcc"
configure_and_build release
run_tests release -j2

if [ "$quick" != --quick ]; then
	echo "== address and undefined-behaviour sanitizers"
	configure_and_build asan
	# Third parties keep memory of their own to the end (drivers, OpenMP); ours is checked by suppressing theirs.
	# The longest tests run the same code as the other suites and command-line tests: once is enough.
	long='^(parity_(decode|gpu|evaluate|replay|faults|explain|foreign)|metrics_twin|page|test_gpu_(families|gdn|invariants|ops|paged|run|trouble)|cli_((isolate|paged|same_bits|decode|force_ref|quantised)_gpu|(selftest(_families)?|explain_vocabulary)$))'
	LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp UBSAN_OPTIONS=print_stacktrace=1 run_tests asan -j2 -E "$long"
	echo "== thread sanitizer, on what uses threads"
	configure_and_build tsan -DVERNIER_GPU=OFF
	TSAN_OPTIONS="ignore_noninstrumented_modules=1" run_tests tsan -R 'test_(ref|ref_calls|eval|ops|store|store_trouble|metrics|compare|stats|model)$'
	echo "== clang" # without the GPU engine the thread sanitizer's is built
	CC=clang cmake -S . -B build/clang -G Ninja -DVERNIER_WERROR=ON >/dev/null
	cmake --build build/clang -- --quiet
	ctest --test-dir build/clang --output-on-failure -j2 -L 'unit|parity' -E "$long"
fi
echo "== all tests passed"

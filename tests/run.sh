#!/usr/bin/env bash
# run.sh: installs what the tests need (as root, on Debian), builds, and runs tests.
# `tests/run.sh --help` says which.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
	cat <<'TEXT'
usage: tests/run.sh [WHAT] [--room ROOM]

WHAT is one of
  all     what CI runs (default): every test with gcc; the program and the suites of kernels with gcc 11; with clang and
          its sanitizers the suites of C functions (of the GPU, three), short forms of parity tests with transformers,
          and some other tests; what uses threads with its thread sanitizer
  quick   every test with gcc, in the release build (--quick means the same)
  unit    the suites of C functions without a GPU, and the checks of the source, in the release build: about a minute
          after the build

--room ROOM   with quick or unit: only tests that belong to libref, libgpu, capture or compare; alone it means
              `quick --room ROOM`. Parity tests and checks of the source belong to no room

The release build is build/release. There, ctest runs single tests: `ctest --test-dir build/release -R NAME`, and
`-L LABEL` those with a label: unit, gpu, cli, parity, fuzz, or a room.

The parity tests against transformers run in a virtual environment that this script makes in .venv, from
fixtures/requirements.txt, those of the recorder also with the releases of fixtures/transformers.txt. Where it cannot be
made, as without access to a package index, `quick` skips them, and ctest lists them as skipped; `all` ends with exit
status 2.

On a terminal, one line shows the progress, and only failures are printed. In a pipe, each test prints one line, and a
line of progress follows every minute.
TEXT
}

refuse() {
	echo "run.sh: $1 (tests/run.sh --help)" >&2
	exit 2
}

what= room=
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h) usage; exit 0 ;;
	all | quick | unit | --quick)
		[ -z "$what" ] || refuse "'$what' and '$1' exclude each other"
		what=${1#--} ;;
	--room)
		case ${2:-} in
		libref | libgpu | capture | compare) room=$2; shift ;;
		*) refuse "--room takes libref, libgpu, capture or compare, not '${2:-}'" ;;
		esac ;;
	*) refuse "unknown argument '$1'" ;;
	esac
	shift
done
[ -z "$room" ] || [ "$what" != all ] || refuse "--room goes with quick or unit"
[ -n "$what" ] || what=${room:+quick}
what=${what:-all}

. tests/support/watched.sh
watched "installing packages" tests/install.sh tests
jobs=$(($(nproc) + 2)) # tests wait: for a disk, or for a time limit to end a process
export OMP_WAIT_POLICY=passive # threads that wait leave the processors to other tests

# Makes the Python with transformers, unless nothing changed since it was made.
install_transformers() {
	local stamp=.venv/requirements.txt
	cmp -s fixtures/requirements.txt $stamp && return
	# PyPI's torch brings gigabytes for GPUs; the CPU build, where its index can be had, does not.
	python3 -m venv .venv && {
		.venv/bin/pip install -q --no-compile --retries 0 --timeout 15 \
			--index-url https://download.pytorch.org/whl/cpu \
			"$(grep '^torch==' fixtures/requirements.txt)" >/dev/null 2>&1 || true
	} &&
		.venv/bin/pip install -q --no-compile -r fixtures/requirements.txt &&
		cp fixtures/requirements.txt $stamp
}
install_releases() {
	install_transformers && tests/parity/transformers.sh .venv
}
configure_and_build() { # preset, further options, "--" and targets (all where there are none)
	local preset=$1 options=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	cmake --preset "$preset" -DVERNIER_WERROR=ON "${options[@]}" >/dev/null
	watched "building $preset" cmake --build --preset "$preset" ${2:+--target "${@:2}"}
}
run_tests() { # preset, further options
	local preset=$1
	shift
	watched --show "testing $preset" ctest --preset "$preset" "$@"
}

echo "== release, gcc"
labels=()
[ "$what" != unit ] || labels+=(-L '^unit$')
[ -z "$room" ] || labels+=(-L "^$room\$")
if [ ${#labels[@]} != 0 ]; then # none of these tests needs transformers
	configure_and_build release
	run_tests release -j"$jobs" "${labels[@]}"
	exit
fi
# Transformers is installed while the release is built.
job_start install_releases
installing=$job installed=true
trap 'job_stop "$installing"' EXIT
configure_and_build release
job_end "installing transformers into .venv" "$installing" || installed=
trap - EXIT
if [ "$installed" ]; then
	cmake --preset release -DVERNIER_HF_PYTHON="$PWD/.venv/bin/python" >/dev/null
	tests/parity/transformers.sh --newer .venv >&2
else
	[ "$what" != all ] || refuse "transformers cannot be installed (.venv); tests/run.sh quick runs without"
	echo "run.sh: transformers cannot be installed; the parity tests against it are skipped" >&2
fi
run_tests release -j"$jobs"

if [ "$what" = all ]; then
	shaders=-DVERNIER_SHADERS=$PWD/build/release/libgpu/spv # the same for every compiler
	if command -v gcc-11 >/dev/null; then
		echo "== gcc 11, the oldest of Debian 12: the program, and what its vector code computes"
		kernels="ops ops_gpt2 linear rope blas delta_rule ggml intermediate gemm quant dtype f8 stats kernel metrics"
		configure_and_build oldest "$shaders" -- vernier vernier_capture $(printf ' test_%s' $kernels)
		run_tests oldest -j"$jobs" -R "^test_(${kernels// /|})\$"
	else
		echo "run.sh: no gcc-11: not tried with the oldest compiler" >&2
	fi
	echo "== clang, address and undefined-behaviour sanitizers"
	configure_and_build asan "$shaders" -DVERNIER_HF_PYTHON="$PWD/.venv/bin/python"
	# Third parties keep memory of their own to the end (drivers, OpenMP); ours is checked by
	# suppressing theirs. Left out are checks of the source, the longest tests (of the GPU, of
	# parity), and most command-line tests: `kept` lists those that run.
	left='^(calls|includes|titles|headers|format|watched_numbers'
	left+='|parity_(decode.*|gpu|evaluate|replay|faults.*|explain.*|foreign|gguf|hf|record_.*|healthy|like|follow)'
	left+='|parity_(floors|equal|experts|families|any.*)'
	left+='|guide_(pytorch_.*|any_model)'
	left+='|test_gpu_(again|attention|compile|experts|families|fuse|gdn|invariants|ops|paged|products'
	left+='|run|trouble|weights))$'
	kept='^cli_(against|bad_.*|baseline|compare_verdicts|cut_short|folders|good_gguf|hostile_recordings|import.*'
	kept+='|isolate|limits_.*|misshapen|names_complaints|not_finite|older_recording|overflow|parts|points'
	kept+='|second_names|size_limit|strict|table|unreadable|values|weights)$'
	# Their exit status is 1 by default, which says of compare that a candidate is outside.
	export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp:exitcode=99
	export UBSAN_OPTIONS=print_stacktrace=1:exitcode=99
	# LLVM 14 takes the size of a library's thread-local storage from what lies before it in memory.
	# Where that is something else, its leak checker reads anywhere ("Tracer caught signal 11").
	export ASAN_OPTIONS=intercept_tls_get_addr=0:exitcode=99
	# A test that fails runs again: that checker also crashed while threads of OpenMP ended.
	run_tests asan -j"$jobs" --repeat until-pass:2 -LE '^cli$' -E "$left"
	run_tests asan -j"$jobs" --repeat until-pass:2 -R "$kept"
	echo "== clang, thread sanitizer, on what uses threads; without Vulkan, on plain POSIX"
	threaded="ref ref_calls eval ops store store_trouble metrics compare stats model"
	configure_and_build tsan -DVERNIER_GPU=OFF -DVERNIER_PLAIN_POSIX=ON -- vernier $(printf ' test_%s' $threaded)
	TSAN_OPTIONS="ignore_noninstrumented_modules=1:exitcode=99" run_tests tsan -j"$jobs" \
		-R "^(test_(${threaded// /|})|manual|cli_(bad_usage|compare_verdicts))\$"
fi
echo "== all tests passed"

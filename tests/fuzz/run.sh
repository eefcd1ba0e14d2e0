#!/usr/bin/env bash
# run.sh: every fuzzer for so many seconds, with libFuzzer, and a table of what they did.
#
#   tests/fuzz/run.sh [--seconds N] [--jobs J] [--target T]... [--fast] [--work FOLDER]
#
#   --seconds N    for each target (default 60)
#   --jobs J       targets at a time (default 1)
#   --target T     this one only: object_header, or fuzz_object_header; may be given again
#   --fast         the build without address checks, and inputs of at most 128 bytes: for large numbers of executions
#   --work FOLDER  keeps what was found to be new between runs, logs, and findings (default build/fuzzing)
#
# Coverage is of the edges of all that is linked into the target, most of which is not its parser. Inputs that
# broke something are in FOLDER/findings/TARGET; then the exit status is 1. FOLDER/total.tsv sums the executions of all runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=60 jobs=1 preset=fuzz length=4096 work=$root/build/fuzzing targets=()
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2; shift ;;
	--jobs) jobs=$2; shift ;;
	--target) targets+=("fuzz_${2#fuzz_}"); shift ;;
	--work) work=$2; shift ;;
	--fast) preset=fuzz-fast length=128 ;;
	*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
	shift
done
if [ ${#targets[@]} = 0 ]; then
	for source in "$root"/tests/fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
fi
cmake -S "$root" --preset "$preset" >/dev/null
nice cmake --build "$root/build/$preset" --target "${targets[@]}" -- --quiet
mkdir -p "$work/logs"

fuzz_one() { # target
	local name=$1 most=$length
	local log=$work/logs/$name.log found=$work/findings/$name corpus=$work/corpus/$name
	mkdir -p "$found" "$corpus"
	# Formats of binary files do not begin below some size.
	case $name in fuzz_object_header|fuzz_recording|fuzz_gguf|fuzz_dump) most=65536 ;; fuzz_tokenizer|fuzz_older|fuzz_plan|fuzz_config|fuzz_baseline) most=16384 ;; esac
	OMP_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=1 "$root/build/$preset/tests/fuzz/$name" -max_total_time="$seconds" -max_len="$most" -timeout=20 \
		-rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$found/" -dict="$root/tests/fuzz/$name.dict" \
		"$corpus" "$root/tests/fuzz/corpus/$name" >"$log" 2>&1 || true
	local done edges all
	done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
	all=$(sed -n 's/^INFO: Loaded 1 PC tables (\([0-9]*\) PCs).*/\1/p' "$log")
	rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "${done:-0}" "${rate:-0}" "${edges:-0}" "${all:-0}" "$(find "$found" -type f | wc -l)" >"$work/logs/$name.row"
}
export -f fuzz_one
export work preset seconds root length
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; fuzz_one {}'

rows=() # in the order of the targets
for t in "${targets[@]}"; do rows+=("$work/logs/$t.row"); done
cat "${rows[@]}" | awk -F'\t' -v totals="$work/total.tsv" '
	BEGIN { printf "%-22s %14s %9s %14s %6s %9s\n", "target", "executions", "per s", "edges", "of all", "findings" }
	{ printf "%-22s %14d %9d %7d/%-6d %5.1f%% %9d\n", $1, $2, $3, $4, $5, $5 ? 100 * $4 / $5 : 0, $6; sum += $2; found += $6
	  print $1 "\t" $2 >> totals; if ($2 == 0) { print "  " $1 ": did not run: see its log"; found++ } }
	END { printf "%-22s %14d %50d\n", "all", sum, found; exit found > 0 }' && status=0 || status=1
awk -F'\t' '{ sum += $2 } END { printf "%d executions in all runs so far\n", sum }' "$work/total.tsv"
[ $status = 0 ] || echo "inputs that broke something: $work/findings; logs: $work/logs"
exit $status

#!/usr/bin/env bash
# run.sh: every fuzzer for so many seconds, with libFuzzer, and a table of what they did.
#
#   tests/fuzz/run.sh [--seconds N] [--jobs J] [--target T]... [--fast] [--work FOLDER] [--merge]
#
#   --seconds N    for each target (default 60)
#   --jobs J       targets at a time (default 1)
#   --target T     this one only: object_header, or fuzz_object_header; may be given again
#   --fast         the build without address checks, and inputs of at most 128 bytes: for large
#                  numbers of executions
#   --work FOLDER  keeps inputs that reach something new, logs, and findings between runs
#                  (default build/fuzzing)
#   --merge        runs nothing: writes tests/fuzz/corpus anew, the fewest of those inputs and its
#                  own that reach all they reach, smallest first, up to 48 KiB a target (binary
#                  files 160 KiB)
#
# In the folder that pack.sh makes, nothing is built.
#
# Coverage is of the edges of all that is linked into the target, most of which is not its parser.
# Inputs that broke something are in FOLDER/findings/TARGET; then the exit status is 1.
# FOLDER/total.tsv sums the executions of all runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=60 jobs=1 preset=fuzz length=4096 work=$root/build/fuzzing targets=() merge=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2; shift ;;
	--jobs) jobs=$2; shift ;;
	--target) targets+=("fuzz_${2#fuzz_}"); shift ;;
	--work) work=$(realpath -m "$2"); shift ;;
	--fast) preset=fuzz-fast length=128 ;;
	--merge) merge=yes ;;
	*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
	shift
done
if [ ${#targets[@]} = 0 ]; then
	for corpus in "$root"/tests/fuzz/corpus/fuzz_*; do targets+=("$(basename "$corpus" .tar.gz)"); done
fi
start=
if [ -d "$root/lib" ]; then # a pack
	start="$root/lib/ld-linux-x86-64.so.2 --library-path $root/lib"
else
	cmake -S "$root" --preset "$preset" >/dev/null
	nice cmake --build "$root/build/$preset" --target "${targets[@]}" -- --quiet
fi
mkdir -p "$work/logs" "$work/kept"
for t in "${targets[@]}"; do
	rm -rf "$work/kept/$t"
	mkdir "$work/kept/$t"
	archive=$root/tests/fuzz/corpus/$t.tar.gz
	[ ! -e "$archive" ] || tar -C "$work/kept" -xzf "$archive" # a new target has none
done
cd "$root" # where they find fixtures/ and specs/

fuzz_one() { # target
	local name=$1 most=$length
	local log=$work/logs/$name.log found=$work/findings/$name corpus=$work/corpus/$name
	mkdir -p "$found" "$corpus"
	# Formats of binary files do not begin below some size.
	case $name in fuzz_object_header|fuzz_recording|fuzz_gguf|fuzz_dump) most=65536 ;;
		fuzz_tokenizer|fuzz_older|fuzz_plan|fuzz_config|fuzz_baseline) most=16384 ;; esac
	FUZZ_FOUND=$found OMP_NUM_THREADS=1 $start "$root/build/$preset/tests/fuzz/$name" -max_total_time="$seconds" \
		-max_len="$most" \
		-timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$found/" \
		-dict="$root/build/$preset/tests/fuzz/$name.dict" \
		"$corpus" "$work/kept/$name" >"$log" 2>&1 || true # the table says
	local done edges all rate
	done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
	all=$(sed -n 's/^INFO: Loaded 1 PC tables (\([0-9]*\) PCs).*/\1/p' "$log")
	rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "${done:-0}" "${rate:-0}" "${edges:-0}" "${all:-0}" \
		"$(find "$found" -type f ! -name 'slow-unit-*' | wc -l)" >"$work/logs/$name.row"
}
export -f fuzz_one
export work preset seconds root length start

merge_one() { # target
	local name=$1 kept=$work/kept/$1 all=$work/merged/$1 most=$((48 << 10)) sum=0 bytes file
	case $name in fuzz_object_header|fuzz_recording|fuzz_gguf) most=$((160 << 10)) ;; esac
	rm -rf "$all"
	mkdir -p "$all" "$work/corpus/$name"
	OMP_NUM_THREADS=1 "$root/build/$preset/tests/fuzz/$name" -set_cover_merge=1 -max_len=65536 -timeout=20 "$all" \
		"$kept" "$work/corpus/$name" >"$work/logs/$name.merge.log" 2>&1
	rm -rf "$kept"
	mkdir -p "$kept"
	while read -r bytes file; do
		[ $((sum += bytes)) -le $most ] || break
		cp "$file" "$kept/"
	done < <(find "$all" -type f -printf '%s %p\n' | sort -n)
	tar -C "$work/kept" --sort=name --owner=0 --group=0 --numeric-owner --mode=644 --mtime=@0 -cf - "$name" |
		gzip -n9 >"$root/tests/fuzz/corpus/$name.tar.gz"
	printf '%-22s %5d files %7d bytes\n' "$name" "$(find "$kept" -type f | wc -l)" \
		"$(find "$kept" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')"
}
if [ -n "$merge" ]; then
	for t in "${targets[@]}"; do merge_one "$t"; done
	exit
fi
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; fuzz_one {}'

rows=() # in the order of the targets
for t in "${targets[@]}"; do rows+=("$work/logs/$t.row"); done
cat "${rows[@]}" | awk -F'\t' -v totals="$work/total.tsv" '
	BEGIN { printf "%-22s %14s %9s %14s %6s %9s\n", "target", "executions", "per s", "edges", "of all", "findings" }
	{ printf "%-22s %14d %9d %7d/%-6d %5.1f%% %9d\n", $1, $2, $3, $4, $5, $5 ? 100 * $4 / $5 : 0, $6
	  sum += $2; found += $6
	  print $1 "\t" $2 >> totals; if ($2 == 0) { print "  " $1 ": did not run: see its log"; found++ } }
	END { printf "%-22s %14d %50d\n", "all", sum, found; exit found > 0 }' && status=0 || status=1
awk -F'\t' '{ sum += $2 } END { printf "%d executions in all runs so far\n", sum }' "$work/total.tsv"
[ $status = 0 ] || echo "inputs that broke something: $work/findings; logs: $work/logs"
exit $status

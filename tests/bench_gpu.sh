#!/usr/bin/env bash
# bench_gpu.sh BUILD [TOKENS...]: `capture gpu` of synth qwen2-0.5b against the reference and the float16 floor.
#
# For every number of tokens: records the reference in float32, the floor (the reference in float16) and the GPU, and
# compares every default checkpoint against 4 times the floor; then prints milliseconds per forward pass.
set -euo pipefail
build=$1
shift
sizes=${*:-128 512 2048}
vernier=$build/compare/vernier
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$vernier" synth qwen2-0.5b -o "$work/model"
status=0
for tokens in $sizes; do
	ids=$(awk -v n="$tokens" 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", (i * 7919 + 13) % 151936 }')
	echo "$ids" >"$work/ids"
	for run in "ref f32" "ref f16" "gpu f16"; do
		set -- $run
		"$vernier" capture "$1" "$work/model" --ids "@$work/ids" --precision "$2" -o "$work/$1-$2.h5" --force
	done
	echo "== $tokens tokens: GPU float16 against the reference, in units of the floor"
	"$vernier" compare "$work/ref-f32.h5" "$work/gpu-f16.h5" --floor "$work/ref-f16.h5" || status=1
	rm -f "$work"/*.h5
done
"$build/tests/bench_gpu" "$work/model" f16 5
exit $status

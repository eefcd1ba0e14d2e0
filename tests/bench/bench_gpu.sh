#!/usr/bin/env bash
# bench_gpu.sh BUILD [--shape NAME] [--torch PYTHON] [--json FILE] [--speed] [--precision f16|f32]
# [TOKENS...]: `capture gpu` of a shape of `vernier synth`: qwen2-0.5b, or NAME; qwen3.5-0.8b has
# heads of 256, and three layers of four of the gated delta rule.
#
# For every number of tokens: records the reference in float32, the floor (the reference in float16)
# and the GPU, and holds every default checkpoint to 1.7 times the floor (not with --speed); the
# first number also with float16 sums (f16-acc16) and their floor. Then bench_gpu.py, in
# --precision: milliseconds, GB/s, TFLOP/s and the share of the device's limit for each operation,
# beside torch where --torch names its Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
options=() sizes=() parity=1 shape=qwen2-0.5b
while [ $# -gt 0 ]; do
	case $1 in
	--torch | --json) options+=("$1" "$2"); shift ;;
	--precision)
		case ${2-} in
		f16 | f32) options+=("$1" "$2"); shift ;;
		*) echo "bench_gpu.sh: --precision: f16 or f32" >&2; exit 2 ;;
		esac
		;;
	--speed) parity= ;;
	--shape) shape=$2; shift ;;
	'' | *[!0-9]* | 0*)
		echo "bench_gpu.sh: $1: neither an option nor a number of tokens" >&2
		exit 2
		;;
	*) sizes+=("$1") ;;
	esac
	shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=(128 512 2048)
vernier=$build/compare/vernier
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$vernier" synth "$shape" -o "$work/model"
vocab=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$work/model/config.json")
printf 'version: 1\nname: real-shapes\ndefaults: { nmse_over_floor: 1.7, nonfinite: 0 }\n' >"$work/limits.yaml"
judge() { # TOKENS PRECISION
	for run in "ref f32" "ref $2" "gpu $2"; do
		set -- "$1" "$2" $run
		"$vernier" capture "$3" "$work/model" --ids "@$work/ids" --precision "$4" -o "$work/$3-$4.h5" --force
	done
	echo "== $1 tokens: GPU $2 against the reference, in units of the floor"
	"$vernier" compare "$work/ref-f32.h5" "$work/gpu-$2.h5" --floor "$work/ref-$2.h5" --limits "$work/limits.yaml" \
		--allow floor || status=1 # made here, by this program
	rm -f "$work"/*.h5
}
status=0
for tokens in ${parity:+"${sizes[@]}"}; do
	ids=$(awk -v n="$tokens" -v vocab="$vocab" \
		'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", (i * 7919 + 13) % vocab }')
	echo "$ids" >"$work/ids"
	judge "$tokens" f16
	[ "$tokens" != "${sizes[0]}" ] || judge "$tokens" f16-acc16
done
python3 "$here/bench_gpu.py" "$build" "$work/model" "${sizes[@]}" ${options[@]+"${options[@]}"} || status=$?
exit $status

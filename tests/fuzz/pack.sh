#!/usr/bin/env bash
# pack.sh: the fuzzers, their corpus, and all that they need, in one file for another machine with
# Linux on x86-64.
#
#   tests/fuzz/pack.sh [--fast] FILE.tar.xz
#
# There: tar xf FILE.tar.xz && vernier-fuzz/tests/fuzz/run.sh [--fast] --seconds N --jobs CORES
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
preset=fuzz
if [ "${1:-}" = --fast ]; then preset=fuzz-fast; shift; fi
out=$(realpath -m "${1:?FILE.tar.xz}")
cmake -S "$root" --preset "$preset" >/dev/null
nice cmake --build "$root/build/$preset" --target fuzzers -- --quiet
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
to=$folder/vernier-fuzz
programs=build/$preset/tests/fuzz
mkdir -p "$to/$programs" "$to/lib" "$to/tests/fuzz"
for corpus in "$root"/tests/fuzz/corpus/fuzz_*; do
	name=$(basename "$corpus" .tar.gz)
	strip -o "$to/$programs/$name" "$root/$programs/$name"
	cp "$root/$programs/$name.dict" "$to/$programs/"
	ldd "$root/$programs/$name"
done | grep -o '/[^ ]*' | sort -u | xargs cp -Lt "$to/lib"
cp -r "$root/tests/fuzz/corpus" "$root/tests/fuzz/run.sh" "$to/tests/fuzz/"
"$root/tests/fuzz/beside.sh" "$to"
tar -C "$folder" -c vernier-fuzz | xz -T0 -6 --memlimit-compress=2GiB >"$out"
echo "$out: $(stat -c %s "$out") bytes"

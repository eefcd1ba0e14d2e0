#!/usr/bin/env bash
# oss-fuzz.sh: builds every fuzzer into $OUT, with its seeds and its dictionary,
# as OSS-Fuzz asks a project to.
#
#   OUT=FOLDER tests/fuzz/oss-fuzz.sh
#
# CC, CXX, CFLAGS, CXXFLAGS and LIB_FUZZING_ENGINE are OSS-Fuzz's; unset, it is clang with libFuzzer
# and the address and undefined-behaviour sanitizers. $WORK is where it builds.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export CC=${CC:-clang} CXX=${CXX:-clang++}
sanitizers="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
export CFLAGS=${CFLAGS--O1 -g -fno-omit-frame-pointer $sanitizers}
export CXXFLAGS=${CXXFLAGS-$CFLAGS}
engine=${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}
out=${OUT:?the folder for the fuzzers: OUT=FOLDER tests/fuzz/oss-fuzz.sh}
work=${WORK:-$root/build}/oss-fuzz
mkdir -p "$out"

cmake -S "$root" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=None -DVERNIER_GPU=OFF -DVERNIER_FUZZ=ON \
	-DVERNIER_FUZZ_ENGINE="$engine" >/dev/null
nice cmake --build "$work" --target fuzzers -- --quiet
for source in "$root"/tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	cp "$work/tests/fuzz/$name" "$out/"
	cp "$work/tests/fuzz/$name.dict" "$out/"
	tar -C "$work" -xzf "$root/tests/fuzz/corpus/$name.tar.gz"
	python3 -m zipfile -c "$out/${name}_seed_corpus.zip" "$work/$name"/*
done
"$root/tests/fuzz/beside.sh" "$out"
echo "$(ls "$out"/fuzz_*.dict | wc -l) fuzzers are in $out"

#!/usr/bin/env bash
# dictionary.sh: prints the words that a fuzzer tries, in libFuzzer's form: those of its .dict file,
# and for fuzz_plan the operations and constants of libref/plan/op.def.
#
#   tests/fuzz/dictionary.sh fuzz_NAME
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cat "$root/tests/fuzz/$1.dict"
if [ "$1" = fuzz_plan ]; then
	sed -nE 's/^OP\(\w+, (\w+),.*/"\\"\1\\""/p; s/^CONST\(\w+, (\w+),.*/"\\"\1\\":"/p' "$root/libref/plan/op.def" |
		sort -u
fi

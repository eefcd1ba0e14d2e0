#!/usr/bin/env bash
# includes.sh: includes run one way, libref <- libgpu <- capture <- compare, and each room keeps its
# libraries to itself: Vulkan in libgpu, HDF5 in capture, BLAS in libref, libyaml in
# capture/base/yaml.c.
set -u
cd "$(dirname "$0")/../.."
bad=0
# folder, an include or a word it must not contain, why
forbid() {
	local hits
	hits=$(grep -rnE --include='*.c' --include='*.h' "$2" "$1" || true)
	if [ -n "$hits" ]; then
		echo "$1: $3:"
		echo "$hits"
		bad=1
	fi
}
forbid libref  '#include "(libgpu|capture|compare|tests)/' "includes a room that depends on it"
forbid libgpu  '#include "(capture|compare|tests)/'        "includes a room that depends on it"
forbid capture '#include "(compare|tests)/'                "includes a room that depends on it"
forbid compare '#include "tests/'                          "includes the tests"
forbid libgpu  '#include "libref/(ops|exec)/'              "shares arithmetic with the reference"
forbid libref  '#include <(vulkan|hdf5|yaml)'              "sees a library of another room"
forbid libgpu  '#include <(hdf5|H5|cblas|yaml)'            "sees a library of another room"
forbid capture '#include <(vulkan|cblas)'                  "sees a library of another room"
forbid compare '#include <(vulkan|hdf5|H5|cblas|yaml)'     "sees a library of another room"
forbid libref  '\b(Vk[A-Z]|hid_t|yaml_)'                   "names a type of another room"
forbid libgpu  '\b(hid_t|cblas_|yaml_)'                    "names a type of another room"
forbid capture '\b(Vk[A-Z][A-Za-z]+|cblas_)'               "names a type of another room"
forbid compare '\b(hid_t|Vk[A-Z][A-Za-z]+|cblas_|yaml_)'   "names a type of another room"
# Public headers and examples are also for compilers that do not know the pragma.
hits=$(find libref libgpu capture compare tests -name '*.h' |
	grep -vE '^(capture/(examples|include|llama\.cpp)|tests/pages/llama_stand_in)/' |
	xargs grep -L '^#pragma once$')
if [ -n "$hits" ]; then
	echo "headers without #pragma once:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '#include <yaml|\byaml_' capture | grep -v '^capture/base/yaml.c$')
if [ -n "$hits" ]; then
	echo "libyaml belongs to capture/base/yaml.c, not to:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '#include <cblas|\b(cblas|openblas)_' libref | grep -v '^libref/ops/blas.c$')
if [ -n "$hits" ]; then
	echo "OpenBLAS belongs to libref/ops/blas.c, not to:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '\bjson_(load|dump)[a-z]*\(' libref libgpu capture compare | grep -v '^libref/base/json.c$')
if [ -n "$hits" ]; then
	echo "JSON is loaded and dumped by libref/base/json.h, not by Jansson alone, in:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '#include <zip' libref libgpu capture compare | grep -v '^capture/import/dump_npz.c$')
if [ -n "$hits" ]; then
	echo "libzip belongs to capture/import/dump_npz.c, not to:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '#include <seccomp' libref libgpu capture compare | grep -v '^capture/file/sandbox.c$')
if [ -n "$hits" ]; then
	echo "libseccomp belongs to capture/file/sandbox.c, not to:"
	echo "$hits"
	bad=1
fi
hits=$(grep -rlE '#include <(pcre2|uninorm|unictype|unistr)\.h>' libref libgpu capture compare |
	grep -vE '^libref/(text/(split|normal|unicode)|base/utf8)\.c$')
if [ -n "$hits" ]; then
	echo "PCRE2 and libunistring belong to a few files of libref, not to:"
	echo "$hits"
	bad=1
fi
# One name, one meaning.
names=$(python3 tests/source/names.py) || { echo "$names"; bad=1; }
# Every include of ours is written from the root.
hits=$({ git ls-files '*.c' '*.h' 2>/dev/null || find libref libgpu capture compare tests -name '*.[ch]'; } |
	xargs grep -nE '#include "[^/"]+"' |
	grep -vE 'rope_bits.h|kernels_spv.h|vernier_record.h|vernier_capture.h|tiny_mistral.h|vernier_callback.h' |
	grep -vE '"(ggml|ggml-backend|llama).h"')
if [ -n "$hits" ]; then
	echo "includes that are not written from the root:"
	echo "$hits"
	bad=1
fi
if grep -rnE 'ffast-math' CMakeLists.txt */CMakeLists.txt CMakePresets.json | grep -v '^[^:]*:[0-9]*: *#'; then
	echo "-ffast-math is in the build"
	bad=1
fi
[ $bad = 0 ] && echo "includes run one way"
exit $bad

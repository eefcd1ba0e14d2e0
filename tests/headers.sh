#!/usr/bin/env bash
# headers.sh CC GPU [FLAG...]: every header compiles alone, with the compiler CC, and opens with a
# comment that begins with its name and has a sentence. GPU: ON or OFF. Left out: the callback for
# llama.cpp, which needs llama.cpp's headers.
set -u
cd "$(dirname "$0")/.."
cc=$1 gpu=$2
shift 2
flags="-fsyntax-only -x c -std=c11 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-variable
-Wno-unused-const-variable
       -D_GNU_SOURCE -DVERNIER_VERSION=\"0\" -I. $*"
rooms="libref capture compare"
[ "$gpu" = ON ] && rooms="$rooms libgpu" flags="$flags -DVERNIER_GPU"
bad=0 n=0
for header in $(find $rooms -name '*.h' ! -path 'capture/llama.cpp/*' | sort); do
	n=$((n + 1))
	echo "#include \"$header\"" | "$cc" $flags - || { echo "$header: does not compile alone"; bad=1; }
	head -n 1 "$header" | grep -qE "^/\* ${header##*/}: [A-Za-z].*" || {
		echo "$header: its first line is not '/* ${header##*/}: what it is for'"
		bad=1
	}
done
[ $n -gt 100 ] || { echo "only $n headers found"; bad=1; }
[ $bad = 0 ] && echo "$n headers compile alone"
exit $bad

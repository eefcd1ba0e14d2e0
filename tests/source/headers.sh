#!/usr/bin/env bash
# headers.sh CC GPU [FLAG...]: every header compiles alone, with the compiler CC, and opens with a
# comment that begins with its name and has a sentence. GPU: ON or OFF. Left out: the callback for
# llama.cpp, which needs llama.cpp's headers.
set -u
cd "$(dirname "$0")/../.."
cc=$1 gpu=$2
shift 2
flags="-fsyntax-only -x c -std=c11 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-variable
-Wno-unused-const-variable
       -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE -DVERNIER_VERSION=\"0\" -I. $*"
rooms="libref capture compare"
[ "$gpu" = ON ] && rooms="$rooms libgpu" flags="$flags -DVERNIER_GPU"
folder=$(mktemp -d) bad=0 n=0
trap 'rm -rf "$folder"' EXIT
# The build compiles X.h alone if X.c includes it before anything else: "X.c:#include "X.h"".
declare -A built
while IFS=: read -r file include; do
	[ "$include" != "#include \"${file%.c}.h\"" ] || built[${file%.c}.h]=1
done < <(find $rooms -name '*.c' -exec grep -m1 -H '^#' {} +)
for header in $(find $rooms -name '*.h' ! -path 'capture/llama.cpp/*' | sort); do
	n=$((n + 1))
	[ "${built[$header]:-}" ] || echo "#include \"$header\"" >"$folder/${header//\//_}.c"
	IFS= read -r first <"$header"
	case $first in
	"/* ${header##*/}: "[A-Za-z]*) ;;
	*)
		echo "$header: its first line is not '/* ${header##*/}: what it is for'"
		bad=1 ;;
	esac
done
# One command for all takes less time than one for each.
"$cc" $flags "$folder"/*.c || { echo "a header does not compile alone: see above"; bad=1; }
[ $n -gt 100 ] && [ ${#built[@]} -gt 100 ] || { echo "only $n headers found, ${#built[@]} of them with a file"; bad=1; }
[ $bad = 0 ] && echo "$n headers compile alone"
exit $bad

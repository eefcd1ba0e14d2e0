#!/usr/bin/env bash
# installed.sh BUILD SOURCE: what `cmake --install` puts down is whole: the program finds its limits, the manual and the
# contracts are there, every header compiles alone, and a program of somebody else's builds with pkg-config.
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
cd "$work"
usr/bin/vernier --version
usr/bin/vernier limits usr/share/vernier/limits/fp16-acc32.yaml >/dev/null
test -s usr/share/man/man1/vernier.1
for page in checkpoint limits points; do test -s "usr/share/vernier/$page.md"; done
"usr/bin/vernier" capture ref "$source/fixtures/qwen2-trained" --ids 1,2,3 -o a.h5 2>/dev/null
"usr/bin/vernier" compare a.h5 a.h5 --allow itself >/dev/null
pc=$(dirname "$(find usr -name vernier.pc)")
export PKG_CONFIG_PATH=$work/$pc PKG_CONFIG_SYSROOT_DIR=
flags=$(pkg-config --define-prefix --cflags vernier)
cat >other.c <<'C'
#include "libref/plan/point.h"
#include <stdio.h>
int main(void) { return puts(vn_point_get(VN_POINT_LOGITS)->axes) < 0; }
C
cc -std=c11 other.c $flags $(pkg-config --define-prefix --libs vernier) -o other
./other
for header in $(cd usr/include/vernier && find . -name '*.h' | sort); do
	echo "#include \"${header#./}\"" >one.c
	cc -std=c11 -D_GNU_SOURCE -DVN_REAL=32 -Wall -Wextra -Werror -fsyntax-only $flags one.c
done
echo "installed: program, limits, manual, contracts, headers, package file"

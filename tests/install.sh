#!/usr/bin/env bash
# install.sh [tests]: the Debian packages that a build needs, and with `tests` those that the tests need too.
set -euo pipefail
build="gcc cmake ninja-build pkg-config libhdf5-dev libopenblas-dev libvulkan-dev glslc mesa-vulkan-drivers libyaml-dev libzip-dev
       libjansson-dev libxxhash-dev libpcre2-dev libunistring-dev"
tests="g++ clang libomp-dev libcunit1-dev vulkan-validationlayers hdf5-tools python3 python3-venv python3-h5py python3-numpy python3-xxhash
       chromium-headless-shell"
# Sanitizers of clang are a package of their own, named after the version that Debian's clang has.
version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
tests="$tests libclang-rt-${version:-14}-dev"
wanted=$build
[ "${1:-}" = tests ] && wanted="$build $tests"
missing=
for p in $wanted; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "install.sh: these packages are missing; install them and run this again:" >&2
	echo "  sudo apt-get install$missing" >&2
	exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
apt-get install -q -y --no-install-recommends $missing >/dev/null

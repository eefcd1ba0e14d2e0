#!/usr/bin/env bash
# install.sh [--no-gpu] [tests]: the packages that a build needs, and with `tests` those that the
# tests need too: installed by apt on Debian and Ubuntu; elsewhere they are named, by the system's
# own names. Where all that a build needs is there, from wherever it came, nothing is done.
# --no-gpu: without Vulkan, for a build with -DVERNIER_GPU=OFF.
set -euo pipefail
gpu=1 what=
for word; do
	case $word in
	--no-gpu) gpu= ;;
	tests) what=tests ;;
	-h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
	*) echo "install.sh: unknown argument '$word' (install.sh --help)" >&2; exit 2 ;;
	esac
done
build="gcc cmake ninja-build pkg-config libhdf5-dev libopenblas-dev ${gpu:+libvulkan-dev glslc mesa-vulkan-drivers}
libyaml-dev libzip-dev libseccomp-dev libjansson-dev libxxhash-dev libpcre2-dev libunistring-dev"
tests="git g++ dpkg-dev file clang clang-format lld libomp-dev libcunit1-dev vulkan-validationlayers libopenmpi-dev
openmpi-bin hdf5-tools python3 python3-dev python3-venv python3-h5py python3-numpy python3-xxhash zsh fish"
# Of the tests: what needs them is skipped without them. Ubuntu has no such browser, Debian 13 no
# such compiler.
optional="chromium-headless-shell gcc-11 rustc"

# What a build needs and this machine lacks, one line each.
lacking() {
	local p cc=${CC:-cc}
	command -v "$cc" >/dev/null || cc=gcc
	for p in cmake ninja pkg-config ${gpu:+glslc}; do command -v "$p" >/dev/null || echo "the program $p"; done
	command -v "$cc" >/dev/null || echo "a C compiler"
	! command -v cmake >/dev/null || printf '%s\n' 3.25 "$(cmake --version | sed -n '1s/.* //p')" | sort -CV ||
		echo "cmake 3.25 or later"
	command -v pkg-config >/dev/null || return 0
	pkg-config --exists hdf5 || pkg-config --exists hdf5-serial || command -v h5cc >/dev/null || echo "the library hdf5"
	for p in openblas ${gpu:+vulkan} yaml-0.1 libzip libseccomp jansson libxxhash libpcre2-8; do
		pkg-config --exists "$p" || echo "the library $p"
	done
	echo '#include <unistr.h>' | "$cc" -E - >/dev/null 2>&1 || echo "the library libunistring" # it has no package file
	[ -z "$gpu" ] || [ -n "${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}" ] ||
		compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null ||
			compgen -G '/usr/local/share/vulkan/icd.d/*.json' >/dev/null ||
		compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null || echo "a Vulkan driver (Mesa's lavapipe needs no GPU)"
}

# Other systems: prints the commands to type.
elsewhere() {
	local ID= ID_LIKE=
	if [ "$(uname -s)" != Linux ]; then
		cat >&2 <<-'T'
			install.sh: vernier runs on Linux only: it needs Landlock and seccomp to sandbox file readers.
			install.sh: with Docker:
			docker build -t vernier -f .github/Dockerfile . && docker run --rm -it -v "$PWD:/data" vernier
		T
		exit 2
	fi
	# shellcheck disable=SC1091
	[ ! -r "${OS_RELEASE:-/etc/os-release}" ] || . "${OS_RELEASE:-/etc/os-release}"
	[ -z "$lacks" ] || printf 'install.sh: missing: %s\n' "${lacks//$'\n'/, }" >&2
	echo "install.sh: no apt-get on this machine (${ID:-unknown}). Install these packages, then run this again:" >&2
	case " $ID $ID_LIKE " in
	*' fedora '* | *' rhel '*)
		echo "  sudo dnf install gcc cmake ninja-build pkgconf hdf5-devel openblas-devel" \
			${gpu:+vulkan-headers vulkan-loader-devel glslc mesa-vulkan-drivers} \
			"libyaml-devel libzip-devel jansson-devel libseccomp-devel xxhash-devel pcre2-devel libunistring-devel" ;;
	*' arch '*)
		echo "  sudo pacman -S --needed gcc cmake ninja pkgconf hdf5 openblas" \
			${gpu:+vulkan-headers vulkan-icd-loader shaderc vulkan-swrast} \
			"libyaml libzip libseccomp jansson xxhash pcre2 libunistring" ;;
	*' suse '* | *' opensuse '*)
		echo "  sudo zypper install gcc cmake ninja pkgconf hdf5-devel openblas-devel" \
			${gpu:+vulkan-headers vulkan-devel shaderc libvulkan_lvp} \
			"libyaml-devel libzip-devel libjansson-devel xxhash-devel libseccomp-devel" \
			"pcre2-devel libunistring-devel" ;;
	*)
		echo "  Debian's packages:" $build ;;
	esac >&2
	exit 2
}
lacks=
if [ "$what" != tests ]; then
	lacks=$(lacking)
	[ -n "$lacks" ] || exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || elsewhere

# Sanitizers of clang are a package of their own, named after the version that Debian's clang has.
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }
lists() { # apt cannot answer before it has package lists.
	[ "$(id -u)" != 0 ] || [ -n "$(apt-cache pkgnames gcc 2>/dev/null)" ] || apt-get update -q >/dev/null
}
wanted=$build
if [ "$what" = tests ]; then
	lists
	version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
	wanted="$build $tests libclang-rt-${version:-14}-dev"
	for p in $optional; do
		if installed "$p" || [ -n "$(apt-cache search --names-only "^$p\$" 2>/dev/null)" ]; then
			wanted="$wanted $p"
		else
			echo "install.sh: there is no package $p here; the tests that need it are skipped" >&2
		fi
	done
fi
missing=
for p in $wanted; do
	installed "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "install.sh: these packages are missing; install them and run this again:" >&2
	echo "  sudo apt-get install$missing" >&2
	exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
# shellcheck disable=SC2086 # words
apt-get install -q -y --no-install-recommends $missing >/dev/null

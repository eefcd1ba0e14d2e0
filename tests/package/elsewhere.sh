#!/usr/bin/env bash
# elsewhere.sh: tests/install.sh on a machine without apt: where all that a build needs is there, it
# does nothing; else it says what is missing, names the packages in that system's words, and ends
# with 2. On openSUSE, lavapipe is libvulkan_lvp.
set -eu
install=$(cd "$(dirname "$0")/.." && pwd)/install.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$(command -v bash)" "$(command -v cat)" .
says() { # SYSTEM UNAME WORDS
	printf 'ID="%s"\nID_LIKE="%s"\n' "${1%%:*}" "${1#*:}" >os
	printf '#!%s/bash\necho %s\n' "$work" "$2" >uname && chmod +x uname
	local status=0
	PATH=$work OS_RELEASE=$work/os bash "$install" >said 2>&1 || status=$?
	[ $status = 2 ] && grep -q "$3" said || { echo "on $1, $2: exit status $status, no '$3' in: $(cat said)"; exit 1; }
}
says fedora: Linux 'dnf install gcc .*hdf5-devel'
says 'almalinux:rhel centos fedora' Linux 'dnf install gcc'
says arch: Linux 'pacman -S --needed gcc .*hdf5'
says 'opensuse-tumbleweed:opensuse suse' Linux 'zypper install gcc .*hdf5-devel.* libvulkan_lvp '
says void: Linux 'Debian.s packages: gcc .*libhdf5-dev'
says fedora: Darwin 'Linux only: .*'
grep -q 'docker build' said
says fedora: Linux 'missing: the program cmake, .*the program glslc, a C compiler'
PATH=$work OS_RELEASE=$work/os bash "$install" --no-gpu >said 2>&1 || true
! grep -i 'vulkan\|glslc' said || { echo "--no-gpu asks for Vulkan"; exit 1; }
# All is there, and no apt-get; then without one of these.
tools=$work/tools && mkdir "$tools"
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do ln -s "$folder"/* "$tools" 2>/dev/null || true; done # the first of a name is the one
rm -f "$tools/apt-get"
if [ -x "$tools/glslc" ]; then # not where vernier is built without a GPU engine
	PATH=$tools OS_RELEASE=$work/os "$work/bash" "$install" >said 2>&1 ||
		{ echo "all is there, and: $(cat said)"; exit 1; }
	[ ! -s said ] || { echo "says $(cat said)"; exit 1; }
	rm "$tools/glslc"
	! PATH=$tools OS_RELEASE=$work/os PKG_CONFIG_LIBDIR=/nowhere "$work/bash" "$install" >said 2>&1 ||
		{ echo "glslc is missing"; exit 1; }
	cp said gpu
	PATH=$tools OS_RELEASE=$work/os "$work/bash" "$install" --no-gpu >said 2>&1 ||
		{ echo "--no-gpu needs more: $(cat said)"; exit 1; }
	mv gpu said
	grep -q 'missing: the program glslc, .*the library openblas, the library vulkan, ' said ||
		{ echo "without glslc: $(cat said)"; exit 1; }
fi
"$work/bash" "$(dirname "$install")/../fixtures/demo.sh" --help | grep -q 'VERNIER=vernier fixtures/demo.sh' ||
	{ echo "demo.sh --help"; exit 1; }
echo "elsewhere: five systems and one that is no Linux"

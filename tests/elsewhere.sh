#!/usr/bin/env bash
# elsewhere.sh: tests/install.sh on a machine without apt names the packages in that system's words, and ends with 2.
set -eu
install=$(cd "$(dirname "$0")" && pwd)/install.sh
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
says 'opensuse-tumbleweed:opensuse suse' Linux 'zypper install gcc .*hdf5-devel'
says void: Linux 'what Debian calls: gcc .*libhdf5-dev'
says fedora: Darwin 'Linux only: .*'
grep -q 'docker build' said
echo "elsewhere: five systems and one that is no Linux"

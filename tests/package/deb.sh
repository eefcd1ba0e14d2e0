#!/usr/bin/env bash
# deb.sh BUILD CPACK: the Debian packages of this build: three of them, each with the files, the
# dependencies and the manual pages that it must have, and no file of two; unpacked, the program
# runs. tests/package/packages.sh installs them in bare roots.
set -euo pipefail
build=$(cd "$1" && pwd) cpack=$2
command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null ||
	{ echo "skipped: needs dpkg-dev and file"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "deb: $*"; exit 1; }

"$cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$work" >said 2>&1 || { cat said; fail "cpack failed"; }
for name in vernier libvernier-capture0 libvernier-capture-dev; do
	[ "$(echo "$name"_*.deb | wc -w)" = 1 ] || fail "packages: $(echo *.deb)"
	deb=$(echo "$name"_*.deb)
	mv "$deb" "$name.deb"
	dpkg-deb -x "$name.deb" "$name"
	(cd "$name" && find . -type f -o -type l) | sort >"$name.files"
	[ "$(dpkg-deb -f "$name.deb" Package)" = "$name" ] || fail "$name: is called $(dpkg-deb -f "$name.deb" Package)"
	for file in copyright changelog.gz; do test -s "$name/usr/share/doc/$name/$file" || fail "$name: no $file"; done
	! grep -v '^\./usr/' "$name.files" || fail "$name: files outside /usr"
done
[ -z "$(sort ./*.files | uniq -d)" ] || fail "in two packages: $(sort ./*.files | uniq -d)"

needs() { # PACKAGE FIELD WHAT...
	local name=$1 field=$2 what
	shift 2
	for what in "$@"; do
		dpkg-deb -f "$name.deb" "$field" | grep -Eq "(^|, )$what( |,|$)" || fail "$name: $field lacks $what"
	done
}
# The dependencies are those of the libraries that the binaries name, in this system's packages.
of_libraries() { # FILE
	readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v 'ld-linux\|vernier' | while read -r so; do
		dpkg -S "*/$so" 2>/dev/null | sed 's/:.*//' | grep -v '^diversion' | sort -u | head -n 1
	done | sort -u
}
needs vernier Depends $(of_libraries vernier/usr/bin/vernier)
needs libvernier-capture0 Depends $(of_libraries libvernier-capture0/usr/lib/libvernier-capture.so.0)
needs libvernier-capture-dev Depends libvernier-capture0 libhdf5-dev
needs vernier Recommends libvulkan1
! dpkg-deb -f vernier.deb Depends | grep -q vulkan || fail "vernier depends on Vulkan, which it loads if it is there"

cd vernier/usr
for command in $(bin/vernier help | sed -n 's/^  \([a-z]*\)   *.*/\1/p') help version; do
	test -s "share/man/man1/vernier-$command.1.gz" || fail "no manual page of $command"
done
for file in bash-completion/completions/vernier zsh/vendor-completions/_vernier fish/vendor_completions.d/vernier.fish \
	vernier/limits/fp16-acc32.yaml vernier/names/hf.yaml vernier/SKILL.md vernier/examples/record.c; do
	test -s "share/$file" || fail "vernier lacks share/$file"
done
bin/vernier limits fp16-acc32.yaml >/dev/null || fail "the unpacked program does not find its limits"
grep -qx './usr/include/vernier_record.h' "$work/libvernier-capture-dev.files" || fail "no vernier_record.h"
[ "$(grep -c '\.h$' "$work/libvernier-capture-dev.files")" = 2 ] || fail "other headers than the public two"
echo "deb: $(cd "$work" && wc -l <vernier.files) files in vernier, $(cd "$work" && cat libvernier*.files |
	wc -l) in the others"

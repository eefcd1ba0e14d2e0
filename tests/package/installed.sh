#!/usr/bin/env bash
# installed.sh BUILD SOURCE: what `cmake --install --prefix` puts down is whole, wherever that
# is: the program finds its limits, each command has a manual page and completions in three shells,
# of the headers only the public ones are there, and programs of others build against
# libvernier-capture by pkg-config and by CMake. Then it is uninstalled.
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
(cd "$work/usr" && find . -type f -o -type l) | sort >"$work/files"
mv "$work/usr" "$work/elsewhere" # and may be moved: nothing names the prefix
usr=$work/elsewhere
cd "$work"
fail() { echo "installed: $*"; exit 1; }

"$usr/bin/vernier" --version
cmp "$usr/share/doc/vernier/LICENSE" "$source/LICENSE" || fail "no license"
"$usr/bin/vernier" limits "$usr/share/vernier/limits/fp16-acc32.yaml" >/dev/null
for page in checkpoint limits points guides/c; do test -s "$usr/share/vernier/$page.md" || fail "no $page.md"; done
pages=$(find "$usr/share/vernier" -name '*.md')
for page in $pages; do # a link to nowhere is of no use to somebody who has no source
	for link in $(grep -o '](\([^)#]*\)[#)]' "$page" | sed 's/^](//; s/[#)]$//' | grep -v '^[a-z]*:\|^$\|\s'); do
		test -e "$(dirname "$page")/$link" || fail "${page##*/} links to $link, which is not installed"
	done
done
# No installed text names a file of the repository, which an installed user has not: pages are what
# `vernier help PAGE.md` prints. Where the source is meant, the line says so, or the page's head.
mkdir texts
cp -r "$usr/share" "$usr/include" "$source/capture/python/vernier_parity" texts
strings -n 8 "$usr/bin/vernier" >texts/strings
"$usr/bin/vernier" help >texts/usage
for command in $(sed -n 's/^  \([a-z]*\)   *.*/\1/p' texts/usage); do
	"$usr/bin/vernier" help "$command" >"texts/help $command"
done
paths='(^|[^A-Za-z0-9_./-])((fixtures|tests|capture|compare|libref|libgpu|\.github)/[a-z]|specs/[a-z_/]+\.md)'
about=$(grep -rl '^(This page is about the source' texts)
[ "$(wc -w <<<"$about")" = 4 ] || fail "about the source are: $about"
rm $about
if grep -rInE "$paths" texts |
	grep -vE 'the source|^texts/[^:]*:[0-9]*:#include|^texts/strings:[0-9]*:([^ ]*\.[ch]|[^ ]* [0-9a-f]*)$'; then
	fail "these texts name files of the repository"
fi
for page in $(cd "$usr/share/vernier" && find . -name '*.md' -printf '%P\n') ; do
	"$usr/bin/vernier" help "$page" | cmp - "$usr/share/vernier/$page" || fail "help $page prints something else"
done
grep -rhoE 'vernier help [a-z./A-Z_-]*\.md' texts "$usr/share/vernier" | sort -u | grep -v ' PAGE.md' >named
while read -r _ _ page; do "$usr/bin/vernier" help "$page" >/dev/null || fail "no page $page"; done <named
for word in any-model glossary contract residual within inherited Ctrl-C vernier.yaml; do # without the source
	VERNIER_SPECS=$usr/share/vernier "$usr/bin/vernier" help "$word" >/dev/null || fail "help $word"
done
"$usr/bin/vernier" help usag.md 2>&1 | grep -q "no page 'usag.md'" || fail "help usag.md"
"$usr/bin/vernier" capture ref "$source/fixtures/qwen2-trained" --ids 1,2,3 -o a.h5 2>/dev/null
"$usr/bin/vernier" compare a.h5 a.h5 --allow itself --limits fp32.yaml >/dev/null
[ "$("$usr/bin/vernier" help --prefix)" = "$usr" ] ||
	fail "help --prefix prints $("$usr/bin/vernier" help --prefix 2>&1)"
! grep -rqF "$work/usr" "$usr" || fail "the prefix is named in $(grep -rlF "$work/usr" "$usr")"

# Only public headers are installed, and only the library for other engines.
[ "$(cd "$usr/include" && echo *)" = 'vernier_capture.h vernier_record.h vernier_record.rs' ] ||
	fail "headers: $(cd "$usr/include" && echo *)"
lib=$(dirname "$(find "$usr" -name libvernier-capture.so)")
[ "$(cd "$lib" && echo ./*.*)" \
	= './libvernier-capture.a ./libvernier-capture.so ./libvernier-capture.so.0 ./libvernier-capture.so.0.1.0' ] ||
	fail "libraries: $(ls "$lib")"
grep -o 'vernier_capture_[a-z_]*(' "$usr/include/vernier_capture.h" | tr -d '(' | sort -u >declared
nm -D --defined-only "$lib/libvernier-capture.so" | sed -n 's/.* [TDBR] //p' | sort >shared
nm -g --defined-only "$lib/libvernier-capture.a" | sed -n 's/.* [TDBR] //p' | sort >static
diff declared shared || fail "the shared library has other names than its header"
diff declared static || fail "the static library has other names than its header"
readelf -d "$lib/libvernier-capture.so" | grep -q 'SONAME.*\[libvernier-capture.so.0\]' ||
	fail "no version in the library's name"

# A manual page for each command, and completions that know each.
for command in $("$usr/bin/vernier" help | sed -n 's/^  \([a-z]*\)   *.*/\1/p') help version; do
	page=$usr/share/man/man1/vernier-$command.1
	"$usr/bin/vernier" "$command" --help | sed "/^Examples:/,\$d" | grep -o '^  .*--[a-z][a-z-]*' |
		grep -o -- '--[a-z-]*' | sort -u >options
	[ -s options ] || fail "$command has no options"
	while IFS= read -r option; do
		grep -qF "\\fB$option\\fR" "$page" || fail "$page: no $option"
	done <options
	for file in bash-completion/completions/vernier zsh/site-functions/_vernier \
		fish/vendor_completions.d/vernier.fish; do
		grep -qw -- "$command" "$usr/share/$file" || fail "$file: no $command"
	done
done
if command -v man >/dev/null; then
	for page in "$usr"/share/man/man1/*.1; do
		[ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)" ] ||
			fail "$page: $(man --warnings -l -Tutf8 -Z "$page" 2>&1 >/dev/null)"
	done
fi
bash -c "source '$usr/share/bash-completion/completions/vernier'
	COMP_WORDS=(vernier comp) COMP_CWORD=1; _vernier; [ \"\${COMPREPLY[*]}\" = compare ]" ||
	fail "bash completes no 'vernier comp'"
! command -v zsh >/dev/null || zsh -n "$usr/share/zsh/site-functions/_vernier"
! command -v fish >/dev/null || fish -n "$usr/share/fish/vendor_completions.d/vernier.fish"

# Programs of others.
cat >other.c <<'C'
#include <vernier_capture.h>
#include <vernier_record.h>
#include <stdio.h>
int main(void)
{
	const int32_t    id = 3;
	const float      x[4] = { 1, 2, 3, 4 };
	const int64_t    shape[] = { 1, 4 };
	vernier_capture *c = vernier_capture_open("other.h5", 1, "other", "f32");
	vernier_capture_step(c, &id, 1);
	vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape);
	if (vernier_capture_commit(c))
		puts(vernier_capture_error(c));
	vernier_capture_free(c);
	return 0;
}
C
works() { # PROGRAM
	rm -f other.h5
	"$@"
	"$usr/bin/vernier" show other.h5 | grep -q 'complete; 1 tensor$' || fail "$*: wrote no recording"
}
PKG_CONFIG_PATH=$(dirname "$(find "$usr" -name vernier-capture.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags vernier-capture)
cc -std=c99 other.c $flags $(pkg-config --libs vernier-capture) -o other
works env LD_LIBRARY_PATH="$lib" ./other
# shellcheck disable=SC2046,SC2086 # words
cc -std=c99 other.c $flags \
	$(pkg-config --static --libs vernier-capture | sed 's/-lvernier-capture/-l:libvernier-capture.a/') -o other_static
! readelf -d other_static | grep -q vernier || fail "the static library was not linked"
works ./other_static
for header in vernier_capture vernier_record; do
	echo "#include \"$header.h\"" | cc -std=c99 -Wall -Wextra -Werror -fsyntax-only $flags -x c -
done
cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.16)
project(other C)
find_package(vernier 0.1 REQUIRED)
add_executable(other other.c)
target_link_libraries(other PRIVATE vernier::capture vernier::record)
C
cmake -S . -B of_cmake -G Ninja -DCMAKE_PREFIX_PATH="$usr" >/dev/null
cmake --build of_cmake >/dev/null
works of_cmake/other

# After uninstalling, only files that others put there are left.
sed "s|^\\.|$usr|" files >manifest
mkdir "$usr/share/other" && touch "$usr/share/vernier/limits/mine.yaml"
cmake --build "$build" --target help | grep -c "^uninstall" >/dev/null || fail "no target uninstall"
cmake -DMANIFEST="$work/manifest" -P "$source/compare/uninstall.cmake" >/dev/null
[ "$(find "$usr" -type f -o -type l)" = "$usr/share/vernier/limits/mine.yaml" ] ||
	fail "left: $(find "$usr" -type f -o -type l)"
[ ! -e "$usr/share/vernier/guides" ] && [ -e "$usr/share/other" ] || fail "folders: $(find "$usr" -type d)"
echo "installed: program, limits, contracts, manual pages, completions, headers, libraries, package files;" \
	"and uninstalled"

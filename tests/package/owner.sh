#!/usr/bin/env bash
# owner.sh: the owner of the published repository is named in .github/packaging/owner only.
# Elsewhere stands OWNER, in the files that tests/package/release.sh fills in; filled in, none has
# it any more.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/package/fill.sh
files=$(git grep -lE 'OWNER/vernier|OWNER: ' -- ':!tests/package' ':!specs/CMakeLists.txt' | LC_ALL=C sort |
	tr '\n' ' ')
[ "$files" = ".github/packaging/recipe.yaml .github/packaging/vernier.rb README.md specs/usage.md " ] ||
	{ echo "owner: OWNER stands in $files"; exit 1; }
[ "$(wc -w <.github/packaging/owner)" = 1 ] || { echo "owner: .github/packaging/owner is not one word"; exit 1; }
other=$(git grep -nE 'github\.com/[^/]+/vernier([^_a-z]|$)' | grep -v 'github\.com/OWNER/' || true)
[ -z "$other" ] || { printf 'owner: an owner is named in\n%s\n' "$other"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086 # words
cp --parents $files "$work"
# shellcheck disable=SC2086
(cd "$work" && fill some-one 1.2.3 0123abcd $files)
! grep -rnE 'OWNER|@[A-Z0-9]+@' "$work" || { echo "owner: not filled in"; exit 1; }
grep -rhoE 'some-one/vernier[^ ]*' "$work" | sort | uniq -c | sort -rn | head -n 3
# What is installed names him too: the program, packages and wheels alike.
mkdir "$work/tree"
cp -r specs .github "$work/tree"
echo some-one >"$work/tree/.github/packaging/owner"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(pages NONE)' 'set(CMAKE_INSTALL_DATADIR share)' \
	'add_subdirectory(specs)' >"$work/tree/CMakeLists.txt"
cmake -S "$work/tree" -B "$work/made" >/dev/null
! grep -rn OWNER/vernier "$work/made/specs" --include='*.md' && grep -q some-one/vernier "$work/made/specs/usage.md" ||
	{ echo "owner: not in the installed pages"; exit 1; }
echo "owner: in one place"

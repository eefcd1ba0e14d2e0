#!/usr/bin/env bash
# transformers.sh VENV: installs the oldest and the newest known release of transformers
# (fixtures/transformers.txt) into VENV/releases/, beside the pinned one, whose torch they use.
# with_release.py runs a test with one of them.
#
# transformers.sh --newer VENV: prints a warning if the package index serves a newer one. It ends
# with 0 in any case, also where there is no index.
set -eu
list=$(cd "$(dirname "$0")/../.." && pwd)/fixtures/transformers.txt

if [ "$1" = --newer ]; then
	known=$(sed -n 's/^newest transformers==//p' "$list")
	serves=$("$2/bin/pip" index versions transformers --disable-pip-version-check --retries 0 --timeout 15 2>/dev/null |
		sed -n '1s/^transformers (\(.*\))$/\1/p') || true
	if [ "$serves" ] && [ "$(printf '%s\n' "$known" "$serves" | sort -V | tail -n 1)" != "$known" ]; then
		echo "warning: transformers $serves is out; the newest tested is $known (fixtures/transformers.txt)"
	fi
	exit 0
fi
while read -r name packages; do
	case $name in '' | '#'*) continue ;; esac
	folder=$1/releases/$name
	[ "$(cat "$folder/installed" 2>/dev/null)" != "$packages" ] || continue
	rm -rf "$folder"
	# The folder's name is what source lines of a recording begin after.
	# shellcheck disable=SC2086 # several packages
	"$1/bin/pip" install -q --no-compile --no-deps --disable-pip-version-check --retries 0 --timeout 15 \
		--target "$folder/site-packages" $packages
	echo "$packages" >"$folder/installed"
done <"$list"

#!/usr/bin/env bash
# story.sh NAME [VERNIER]: runs tests/stories/NAME.sh in an empty folder. Its last line is its headline, and must match what
# the script itself says after "# Headline:" (an extended regular expression).
#
# The scripts can be read as examples: what somebody types from a question to its answer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export VERNIER=$(realpath "${2:-${VERNIER:-$here/../../build/release/compare/vernier}}") PYTHON=${PYTHON:-python3}
export FIXTURES=$here/../../fixtures TESTS=$here/.. NO_COLOR=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run" && cd "$work/run"
status=0
bash -euo pipefail -c 'vernier() { "$VERNIER" "$@"; }; . "$1"' story "$here/$1.sh" >"$work/said" 2>&1 </dev/null || status=$?
cat "$work/said"
[ $status != 77 ] || exit 77
[ $status = 0 ] || { echo "story.sh: $1 ended with status $status"; exit 1; }
headline=$(sed -n 's/^# Headline: //p' "$here/$1.sh")
tail -n 1 "$work/said" | grep -Exq -- "$headline" || { echo "story.sh: the last line is not /$headline/"; exit 1; }

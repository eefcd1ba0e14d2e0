#!/usr/bin/env bash
# story.sh [--full] NAME [VERNIER]: runs tests/stories/NAME.sh in an empty folder. Its last line is
# its headline, and must match what the script itself says after "# Headline:" (an extended regular
# expression).
#
# The model ($M, with $LAYERS layers) is a small one that was trained; with --full, synth qwen2-0.5b
# at its full shape, to be run by hand. That has no tokenizer: prompts are ids then. $IDS is a
# prompt, prompt TEXT a member of a --prompts file.
#
# The scripts can be read as examples: what somebody types from a question to its answer.
set -euo pipefail
full=
[ "$1" != --full ] || { full=1; shift; }
here=$(cd "$(dirname "$0")" && pwd)
export VERNIER=$(realpath "${2:-${VERNIER:-$here/../../build/release/compare/vernier}}") PYTHON=${PYTHON:-python3}
export FIXTURES=$here/../../fixtures TESTS=$here/.. NO_COLOR=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run" && cd "$work/run"
export FULL=$full M=$FIXTURES/qwen2-trained LAYERS=2 IDS=@$FIXTURES/prompts/p017.ids
if [ -n "$full" ]; then
	M=$work/model LAYERS=24 IDS=$(seq 17 17 1088 | paste -sd,)
	"$VERNIER" synth qwen2-0.5b -o "$M" >/dev/null
fi
# A prompt of its own for each text.
prompt() {
	[ -n "$FULL" ] || { echo "\"prompt\": \"$1\""; return; }
	local of; of=$(cksum <<<"$1"); of=${of%% *}
	echo "\"ids\": [$(for i in $(seq 16); do echo $(((of / i + 7919 * i) % 151000)); done | paste -sd,)]"
}
export -f prompt
status=0
bash -euo pipefail -c 'vernier() { "$VERNIER" "$@"; }; . "$1"' story "$here/$1.sh" >"$work/said" 2>&1 \
	</dev/null || status=$?
cat "$work/said"
[ $status != 77 ] || exit 77
[ $status = 0 ] || { echo "story.sh: $1 ended with status $status"; exit 1; }
headline=$(sed -n 's/^# \(Headline:\|         \) //p' "$here/$1.sh" | tr -d '\n')
[ -z "$full" ] || echo "story.sh: $1 at full shape: $SECONDS s"
tail -n 1 "$work/said" | grep -Exq -- "$headline" || { echo "story.sh: the last line is not /$headline/"; exit 1; }

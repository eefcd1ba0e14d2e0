#!/usr/bin/env bash
# action.sh VERNIER: the step of .github/actions/compare, run as a job would: within, outside
# and refused end with 0, 1 and 2, the summary says so, and the folder that the job uploads
# holds the page.
set -eu
vernier=$(realpath "$1") source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/temp" && ln -s "$vernier" "$work/bin/vernier"
cd "$work"
export PATH=$work/bin:$PATH RUNNER_TEMP=$work/temp GITHUB_STEP_SUMMARY=$work/summary GITHUB_OUTPUT=$work/output
model=$source/fixtures/qwen2-trained
vernier capture ref "$model" --ids 1,2,3 -o ref.h5 2>/dev/null
vernier capture ref "$model" --ids 1,2,3 --precision f16 -o same.h5 2>/dev/null
vernier capture ref "$model" --ids 1,2,3 --precision f16 --inject R1@layer1 -o wrong.h5 2>/dev/null
vernier capture ref "$model" --ids 1,2,4 -o other.h5 2>/dev/null
run() { # STATUS, WORDS of the summary, CANDIDATE, and more of the environment
	rm -f summary output
	local status=0
	env REFERENCE=ref.h5 CANDIDATE="$3" "${@:4}" "$source/.github/actions/compare/compare.sh" >said 2>&1 || status=$?
	[ $status = "$1" ] && grep -q "^status=$1\$" output && grep -q "$2" summary ||
		{ echo "$3: exit status $status, summary: $(cat summary), log: $(cat said)"; exit 1; }
}
pages() { ls "$(sed -n 's/^reports=//p' output)"; }
run 0 'within limits' same.h5 MODEL="$model"
grep -q '\*\*Floor .*the reference' summary || { echo "the model was not used: $(cat summary)"; exit 1; }
run 1 '2 of 4 checkpoints' wrong.h5 FLOOR=same.h5 OPTIONS=$'--points\nlayer*.{q,k}_rope'
[ "$(pages | tr '\n' ' ')" = 'log.txt report.html report.json report.md ' ] || { echo "uploads $(pages)"; exit 1; }
run 2 'token' other.h5
! grep -q '^reports=' output || { echo "a refused comparison uploads $(pages)"; exit 1; }
mkdir refs cands && cp ref.h5 refs/a.h5 && cp ref.h5 refs/b.h5 && cp same.h5 cands/a.h5 && cp same.h5 cands/b.h5
run 0 'within limits' cands REFERENCE=refs LIMITS=fp16-acc32.yaml
pages | grep -q 'report.b.html' || { echo "two folders: $(pages)"; exit 1; }
# The step before: nothing is installed where vernier is there, nothing without a package,
# and that package alone.
install=$source/.github/actions/compare/install.sh
mkdir pips && printf '#!/bin/sh\necho "pip $*"\n' >pips/pip && chmod +x pips/pip && ln -s "$(command -v bash)" pips/bash
installs() { # PATH, PACKAGE, exit status, words of the output
	local status=0
	env PATH="$1" PACKAGE="$2" "$(command -v bash)" "$install" >said 2>&1 || status=$?
	[ $status = "$3" ] && grep -qx -- "$4" said ||
		{ echo "install.sh: exit status $status, '$(cat said)'; expected $3, '$4'"; exit 1; }
}
installs "$work/pips" "" 2 '::error::no vernier on the PATH.*package: PATH-OR-URL.*'
installs "$work/pips" vernier.whl 0 'pip install vernier.whl'
PACKAGE=vernier.whl "$install" | grep . && { echo "install.sh installs over a vernier that is there"; exit 1; }
python3 - "$source/.github/actions/compare/action.yml" <<'P'
import re, sys
text = open(sys.argv[1]).read()
inputs, used = (set(re.findall(r"^  (\w+): \{ description", text.split("outputs:")[0], re.M)),
                set(re.findall(r"inputs\.(\w+)", text)))
sys.exit(f"inputs {inputs}, but used are {used}" if inputs != used else 0)
P
echo "action: within, outside, refused, folders"

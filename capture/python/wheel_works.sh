#!/usr/bin/env bash
# wheel_works.sh WHEEL: what a wheel must do, in a new virtual environment and with no compiler to
# be found: at most 40 MB; `python -m vernier_parity selftest` within 60 s, of the clock or of
# processors; the recorder records, and a mistake is named within two minutes of the installation.
set -euo pipefail
wheel=$(realpath "$1")
fixtures=$(cd "$(dirname "$0")/../../fixtures" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "wheel_works: $*" >&2; exit 1; }
size=$(stat -c %s "$wheel")
[ "$size" -le 40000000 ] || fail "$wheel: $size bytes"
python3 -m venv "$work/venv"
cd "$work"
mkdir bin # no compiler, and no vernier but the wheel's
for tool in env rm ls cat bash sh grep sed nproc uname; do ln -s "$(command -v $tool)" bin/; done
PATH=$work/venv/bin:$work/bin
! command -v cc gcc clang >/dev/null || fail "a compiler is in the way"

SECONDS=0
pip install -q "$wheel"
installed=$SECONDS
vernier --version
vernier-parity --version >/dev/null
TIMEFORMAT='%R %U %S'
took=$({ time python -m vernier_parity selftest >selftest 2>&1; } 2>&1) || fail "selftest: $(cat selftest)"
read -r clock user system <<<"$took"
worked=$(python -c "print(round($user + $system))")
# On a machine that does other things, too, the clock says little.
python -c "import sys; sys.exit(min($clock, $user + $system) >= 60)" ||
	fail "selftest took $clock s, $worked s of processors"
start=$SECONDS
model=$fixtures/qwen2-trained
vernier capture ref "$model" --ids 12,345,6,78,9,10,111 -o ref.h5 2>/dev/null
vernier capture ref "$model" --ids 12,345,6,78,9,10,111 --inject R1@layer1 -o cand.h5 2>/dev/null
vernier explain ref.h5 cand.h5 --model "$model" >said && fail "a mistake is within limits: $(cat said)"
grep -q '^explained.*: R1' said || fail "the mistake is not named: $(cat said)"
named=$((installed + SECONDS - start))
[ $named -lt 120 ] || fail "a mistake was named $named s after the installation began"
python - ref.h5 <<'T'
import sys
import vernier_parity as v
ids = [12, 345, 6, 78, 9, 10, 111]
with v.open(sys.argv[1]) as ref, v.Recorder("own.h5", engine="mine", precision="f32", token_ids=ids) as rec:
    rec.put("layer0.q_rope", ref["layer0.q_rope"], dims="token head dim")
T
vernier compare ref.h5 own.h5 --points layer0.q_rope --limits fp32.yaml |
	grep -q 'within limits: 1 checkpoint' || fail "the recorder's file"
status=0
vernier devices >said 2>&1 || status=$?
[ $status = 0 ] || grep -q 'install' said || fail "devices: $(cat said)"
echo "${wheel##*/}: $size bytes; installed in $installed s; selftest in $clock s ($worked s of processors);" \
	"a mistake named $named s after the installation began"

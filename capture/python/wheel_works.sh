#!/usr/bin/env bash
# wheel_works.sh WHEEL: what a wheel must do, in a new virtual environment and with no compiler to
# be found: at most 40 MB; `python -m vernier_parity selftest` within 60 s; the recorder records,
# and a mistake is named within two minutes of the installation. A busy machine may take ten
# minutes, if it takes less than twice these seconds of processors, which are more there, too (two
# selftests of one wheel: 43 and 60).
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

at() { { times; echo "$EPOCHREALTIME"; } >"$1"; } # not in a subshell, whose children are others
took() { # AT AT...: sets clock and worked, the seconds from each first to its second
	read -r clock worked < <(python -c 'import re, sys
def read(name):
    text = open(name).read().replace(",", ".")
    return float(text.split()[-1]), sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", text))
ends = [read(name) for name in sys.argv[1:]]
print(*(round(sum(b[i] - a[i] for a, b in zip(ends[::2], ends[1::2]))) for i in (0, 1)))' "$@")
}
at 0
pip install -q "$wheel"
at 1
vernier --version
vernier-parity --version >/dev/null
at 2
python -m vernier_parity selftest >selftest 2>&1 || fail "selftest: $(cat selftest)"
at 3
model=$fixtures/qwen2-trained
vernier capture ref "$model" --ids 12,345,6,78,9,10,111 -o ref.h5 2>/dev/null
vernier capture ref "$model" --ids 12,345,6,78,9,10,111 --inject R1@layer1 -o cand.h5 2>/dev/null
vernier explain ref.h5 cand.h5 --model "$model" >said && fail "a mistake is within limits: $(cat said)"
at 4
grep -q '^explained.*: R1' said || fail "the mistake is not named: $(cat said)"
took 2 3
selftest="selftest in $clock s ($worked s of processors)"
within() { [ "$clock" -lt 600 ] && { [ "$clock" -lt "$1" ] || [ "$worked" -lt $((2 * $1)) ]; }; }
within 60 || fail "$selftest"
took 0 1 3 4
named="a mistake named $clock s after the installation began ($worked s of processors)"
within 120 || fail "$named"
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
echo "${wheel##*/}: $size bytes; $selftest; $named"

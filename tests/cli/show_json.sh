# The JSON of show and of show --check: the findings, and commands that can be run unchanged.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7 --precision f16 -o a.h5 2>/dev/null
next() { $PYTHON -c 'import json, sys; print(*json.load(sys.stdin)["next"], sep="\n")'; }
echo "== next, of a recording, of the reference's, and of a tensor"
vernier show a.h5 --format json | next | tee steps
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
vernier show ref.h5 --format json | next
vernier show a.h5 layer0.q_proj --format json | next | tee -a steps
echo "== each of them works"
rm ref.h5
while read -r line; do
	eval "$line" >/dev/null 2>&1
	echo $?
done <steps
ls *.npy
echo "== checked"
vernier show a.h5 --check --format json | grep -v '"checked"'
echo "== damaged"
$PYTHON - <<'P'
import h5py
with h5py.File("a.h5", "r+") as f:
    f["step.0/layer1/attn_norm"][1, 2] = 3
P
vernier show a.h5 --check --format json | $PYTHON -c '
import json, re, sys
j = json.load(sys.stdin)
print(j["schema"], j["holds"], j["digests"]["wrong"], j["next"])
for f in j["findings"]:
    print(f["kind"], f["step"], f["name"], re.sub("[0-9a-f]{32}", "DIGEST", f["text"]))'
echo "${PIPESTATUS[0]}"

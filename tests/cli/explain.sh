# Which known mistake makes what is wrong: one, several of one kind, two that look alike, one that nobody knows; what is refused.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p070.ids
run() { vernier capture ref "$M" --ids "$ids" --points '*' "$@" 2>/dev/null || echo failed; }
told() { echo "\$ explain $1"; vernier explain ref.h5 "$1" --model "$M" >said 2>&1; echo "[$?]"; sed -n '/^explained/,/^$/{/^$/!p}' said | sed -E 's/[0-9.]+e[+-][0-9]+/N/g; s/none of [0-9]+ known/none of N known/'; }
run -o ref.h5
run -o half.h5 --precision f16
run -o one.h5 --inject R1@layer1.q_rope
run -o all.h5 --precision f16 --inject 'R1@*'
run -o alike.h5 --inject A1.head@layer1
run -o capture.h5 --inject P20@layer1.v_proj
run -o stale.h5 --inject P10.context@layer1
run -o steps.h5 --decode 3
run -o wrong.h5 --force-ids 5,6,7 --inject N5@layer0.mlp_norm
for f in half one all alike capture stale; do told $f.h5; done
echo "== nothing that is known"
cp ref.h5 odd.h5
${PYTHON:-python3} - <<'END'
import h5py, numpy as np
with h5py.File("odd.h5", "r+") as f:
    for n in "layer1/q_rope",:
        d = f["step.0"][n]
        del d.attrs["digest"]
        x = d[()]
        x[:, 2] *= np.where(np.arange(x.shape[2]) % 3 == 0, -1, 1)
        d[...] = x
END
told odd.h5
echo "== captured in front of the rotation, which was made"
cp half.h5 early.h5
${PYTHON:-python3} - <<'END'
import h5py
with h5py.File("early.h5", "r+") as f:
    for n in "qk":
        d = f[f"step.0/layer1/{n}_rope"]
        del d.attrs["digest"]
        d[...] = f[f"step.0/layer1/{n}_proj"][()]
END
told early.h5
grep -h '^verdict\|^origins' said
sed -n 's/.*replayed.*; \(what reads\)/\1/p' said
vernier explain ref.h5 early.h5 --model "$M" --format json | ${PYTHON:-python3} -c '
import json, sys
r = json.load(sys.stdin)
print([c["name"] for c in r["checkpoints"] if c["replay"]["captured"]], [(a["id"], a["holds"]) for e in r["explanations"] for a in e["answers"]])
print([(c["name"], c["replay"]["behind"]) for c in r["checkpoints"] if c["replay"]["behind"]])'
echo "== in json"
vernier explain ref.h5 alike.h5 --model "$M" --format json | ${PYTHON:-python3} -c '
import json, sys
for e in json.load(sys.stdin)["explanations"]:
    print(e["checkpoint"], e["explained"], e["fitted"], [(a["id"], a["at"]) for a in e["answers"]], e["tried"] > 9, e["margin"] > 1e6)'
vernier compare ref.h5 one.h5 --model "$M" --explain --format markdown | grep -c 'Explained'
echo "== what is refused"
try() { echo "\$ vernier $*"; vernier "$@" >said 2>&1; s=$?; head -n 1 said; echo "[$s]"; }
try explain ref.h5 one.h5
try compare ref.h5 one.h5 --explain
try explain ref.h5
try explain ref.h5 one.h5 --bitwise --model none
vernier points --faults='R12' "$M"
try points --faults='R{1' "$M"
try points --faults=R1

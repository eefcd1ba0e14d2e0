# --inject: a faulty run is marked as such, is recorded as a run of the unmodified model, and
# differs from the fault on.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
try() { echo "\$ vernier $*"; vernier "$@" </dev/null >said 2>&1; s=$?; head -n 1 said; rm said; echo "[$s]"; }
run() { vernier capture ref "$M" --ids "$ids" "$@" 2>/dev/null || echo failed; }
run -o unmodified.h5
run -o faulty.h5 --inject R1@layer1.q_rope --inject W6@layer1.v_proj
"${PYTHON:-python3}" - <<'PY'
import h5py
a, b = h5py.File("unmodified.h5"), h5py.File("faulty.h5")
print("inject:", b["run"].attrs["inject"], "| unmodified:", a["run"].attrs.get("inject"))
print("plan:", "the same" if list(a["plan/nodes"][()]) == list(b["plan/nodes"][()]) else "another")
changed = []
def look(name, d):
    if isinstance(d, h5py.Dataset) and d[()].tobytes() != b["step.0"][name][()].tobytes():
        changed.append((int(d.attrs["order"]), name))
a["step.0"].visititems(look)
print("changed:", *(n for _, n in sorted(changed)))
PY
vernier compare unmodified.h5 faulty.h5 --format json | grep -o '"first_divergence": "[^"]*"'
run -o decoded.h5 --decode 2 --inject A2@layer0 && vernier show decoded.h5 | sed -n 1p | sed 's/ .*//'
# The first key, after a first call of one token and of two, as calls after it see it.
for first in 5 5,6; do
	vernier capture ref "$M" --ids $first --decode 2 --points layer0.attn_probs --inject A23@layer0.attn_probs \
		-o first.h5 --force 2>/dev/null
	"${PYTHON:-python3}" -c '
import h5py
for name, step in h5py.File("first.h5").items():
    if name[:5] == "step.":
        print(name, "sees" if step["layer0/attn_probs"][:, -1, 0].any() else "does not see", "the first key")'
done
try capture ref "$M" --ids 1,2 -o a.h5 --inject R99@layer0
try capture ref "$M" --ids 1,2 -o a.h5 --inject R1
try capture ref "$M" --ids 1,2 -o a.h5 --inject 'R1@layer9.*'
try capture ref "$M" --ids 1,2 -o a.h5 --inject 'A5@*'
try capture ref "$M" --ids 1,2 -o a.h5 --inject 'R1@layer{0'
vernier points --faults "$M" | sed -n '1p; /^R1 /p; /^A5.missing/p; /^W10/p'
try points --faults "$M" extra
# Mistakes of the recording: the run is correct, the file is not.
run -o cut.h5 --inject M6@*
"${PYTHON:-python3}" -c '
import h5py
a, b = (h5py.File(n)["step.0/logits"][()] for n in ("unmodified.h5", "cut.h5"))
print("logits:", len(b), "row,", "the last" if a[-1:].tobytes() == b.tobytes() else "another")'
try capture ref "$M" --ids 1,2 -o a.h5 --inject P13
try capture ref "$M" --ids 1,2 -o a.h5 --inject P13@layer9
try capture ref "$M" --ids 1,2 -o a.h5 --inject P12.dtype@logits
try isolate "$M" --ids 1,2 --inject P13@layer0

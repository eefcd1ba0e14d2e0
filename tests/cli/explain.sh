# Which known mistake makes the error: one, several of one kind, two that look alike, an unknown
# one; and the refusals.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p070.ids
run() { vernier capture ref "$M" --ids "$ids" --points '*' "$@" 2>/dev/null || echo failed; }
told() {
	echo "\$ explain $1"
	vernier explain ref.h5 "$@" --model "$M" >said 2>&1
	echo "[$?]"
	sed -n '/^explained/,/^$/{/^$/!p}' said | sed -E 's/[0-9.]+e[+-][0-9]+/N/g; s/none of [0-9]+ known/none of N known/'
}
run -o ref.h5
run -o half.h5 --precision f16
run -o one.h5 --inject R1@layer1.q_rope
run -o all.h5 --precision f16 --inject 'R1@*'
run -o alike.h5 --inject A1.head@layer1
run -o capture.h5 --inject P20@layer1.v_proj
run -o stale.h5 --inject P10.context@layer1
run -o behind.h5 --inject N15@layer1
run -o unnormed.h5 --inject N20@layer1
for f in half one all alike capture stale behind unnormed; do told $f.h5; done
echo "== the page begins with the answer"
vernier explain ref.h5 one.h5 --model "$M" --format html |
	sed -n 's/^<dt>\([a-z ]*\)<.dt><dd>\(layer1.q_rope: [^:]*\).*/\1: \2/p; /<.dl>/q' | head -n 1
vernier explain ref.h5 one.h5 --model "$M" --format html | grep -o '^<dt>[a-z ]*' | head -n 1
echo "== the proposed command makes the mistake at every origin that it explains"
for at in layer1 '*'; do
	vernier capture ref "$M" --ids "$ids" --inject "R1@$at" -o both.h5 --force 2>/dev/null
	eval "$(vernier explain ref.h5 both.h5 --model "$M" --allow missing --format json |
		${PYTHON:-python3} -c 'import json, sys; print(json.load(sys.stdin)["next"][0])')" 2>/dev/null
	vernier compare both.h5 mistake.h5 --bitwise | tail -n 1
	rm mistake.h5
done
echo "== no known mistake"
cp ref.h5 odd.h5
${PYTHON:-python3} - <<'END'
import editing as h5py, numpy as np
with h5py.File("odd.h5", "r+") as f:
    for n in "layer1/q_rope",:
        d = f["step.0"][n]
        del d.attrs["digest"]
        x = d[()]
        x[:, 2] *= np.where(np.arange(x.shape[2]) % 3 == 0, -1, 1)
        d[...] = x
END
told odd.h5
echo "== channels that are multiplied by a number"
${PYTHON:-python3} - <<'END'
import editing as h5py, shutil
for name, factors in (("one-channel", {8: 1.02}), ("never-written", {7: 0}), ("two-channels", {3: 1.5, 40: 0.5}),
                      ("all-channels", {i: 1 + i / 100 for i in range(48)})):
    shutil.copy("ref.h5", name + ".h5")
    with h5py.File(name + ".h5", "r+") as f:
        d = f["step.0/layer1/down_proj"]
        del d.attrs["digest"]
        x = d[()]
        for channel, factor in factors.items():
            x[:, channel] *= factor
        d[...] = x
END
for f in one-channel never-written two-channels all-channels; do told $f.h5 | grep -v '^next\|vernier show'; done
echo "== another function, other formats: the next operation is not recorded"
for f in tanh clamped norm16 softmax16 int8; do cp ref.h5 $f.h5; done
MODEL=$M ${PYTHON:-python3} - <<'END'
import editing as h5py, json, os, struct, numpy as np
raw = open(os.environ["MODEL"] + "/model.safetensors", "rb").read()
n = 8 + struct.unpack("<Q", raw[:8])[0]
v = json.loads(raw[8:n])["model.layers.1.mlp.down_proj.weight"]
w = np.frombuffer(raw[n + v["data_offsets"][0] : n + v["data_offsets"][1]], "<f4").reshape(v["shape"])
def bf16(x):
    u = x.astype("<f4").view("<u4")
    return ((u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")
def put(name, behind, **made):
    with h5py.File(name + ".h5", "r+") as f:
        at = f["step.0/layer1"]
        for point, make in made.items():
            x = make({p: at[p][()].astype("f8") for p in at})
            at[point].attrs.pop("digest", None)
            at[point][...] = x
        for n in behind.split():
            del at[n]
        for n in "final_norm", "logits":
            del f["step.0"][n]
def softmax(x):  # of scores whose last bit is another, so that some round to the other side
    s = x["attn_scores"]
    s = (s * (1 + 2e-7 * (-1.0) ** np.arange(s.shape[2]))).astype("f4").astype("f2").astype("f8")
    s[:, np.triu(np.ones(s.shape[1:], bool), 1)] = -np.inf
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype("f2")
def int8(x):
    scale = (abs(w).max(1, keepdims=True) / np.float32(127)).astype("f4")
    return x["mlp_act"] @ (np.rint(w / scale) * scale).astype("f8").T
mlp = "gate_act mlp_act down_proj output"
put("tanh", "down_proj output", gate_act=lambda x: np.tanh(x["gate_proj"]),
    mlp_act=lambda x: np.tanh(x["gate_proj"]) * x["up_proj"])
put("clamped", "down_proj output", mlp_act=lambda x: np.clip(x["mlp_act"], -0.5, 0.5))
put("norm16", "gate_proj up_proj " + mlp, mlp_norm=lambda x: bf16(x["mlp_norm"]))
put("softmax16", "attn_context attn_out attn_residual mlp_norm gate_proj up_proj " + mlp, attn_probs=softmax)
put("int8", "output", down_proj=int8)
END
for f in tanh clamped norm16 softmax16 int8; do
	told $f.h5 --allow missing | grep -v '^next\|vernier show\|residual'
done
echo "== captured before the rotation, which the engine did apply"
cp half.h5 early.h5
${PYTHON:-python3} - <<'END'
import editing as h5py
with h5py.File("early.h5", "r+") as f:
    for n in "qk":
        d = f[f"step.0/layer1/{n}_rope"]
        del d.attrs["digest"]
        d[...] = f[f"step.0/layer1/{n}_proj"][()]
END
told early.h5
grep -h '^verdict\|^origins' said
sed -n 's/.*replayed.*; \(captured wrongly\)/\1/p' said
vernier explain ref.h5 early.h5 --model "$M" --format json | ${PYTHON:-python3} -c '
import json, sys
r = json.load(sys.stdin)
print([c["name"] for c in r["checkpoints"] if c["replay"]["recorder_fault"]],
      [(a["id"], a["recorded_instead"]) for e in r["explanations"] for a in e["answers"]])
print([(c["name"], c["replay"]["fault_at"]) for c in r["checkpoints"] if c["replay"]["fault_at"]])'
echo "== an answer holds in every step"
cp ref.h5 whole.h5
for f in ref after slot steps; do
	run -o $f.h5 --force --force-ids 5,6,7 $([ $f != after ] || echo --inject 'R3b.last@layer1.q_rope') \
		$([ $f != steps ] || echo --inject 'R1@layer1.q_rope')
done
cp slot.h5 zero.h5
cp slot.h5 block.h5
${PYTHON:-python3} - <<'END'
import editing as h5py, numpy as np
ref = h5py.File("ref.h5", "r")
def put(f, name, x):
    f[name].attrs.pop("digest", None)
    f[name][...] = x
# nothing of layer 1 is cached but keys and values, so step 0 may have been right
with h5py.File("steps.h5", "r+") as f:
    for n in ref["step.0"]:
        if n.startswith("layer1"):
            for p in ref["step.0"][n]:
                put(f, f"step.0/{n}/{p}", ref[f"step.0/{n}/{p}"][()])
        elif isinstance(ref["step.0"][n], h5py.Dataset):
            put(f, f"step.0/{n}", ref[f"step.0/{n}"][()])
behind = ("attn_out", "attn_residual", "mlp_", "gate_", "up_proj", "down_proj", "output", "final_norm", "logits")
def cache(name, slots, left_out):  # what the cache has behind the first call, in the places of some tokens
    with h5py.File(name, "r+") as f:
        for i in 1, 2, 3:
            for at in f[f"step.{i}/layer1"], f[f"step.{i}"]:
                for n in [n for n in at if n.startswith(left_out)]:
                    del at[n]
            q = f[f"step.{i}/layer1/q_rope"][()].astype("f8")
            k, v = (np.concatenate([f[f"step.{s}/layer1/{n}"][()] for s in range(i + 1)]).astype("f8")
                    for n in ("k_rope", "v_proj"))
            slots(k)
            slots(v)
            k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
            s = np.einsum("thk,shk->hts", q, k) / np.sqrt(q.shape[2])
            e = np.exp(s - s.max(-1, keepdims=True))
            e /= e.sum(-1, keepdims=True)
            for n, x in ("attn_scores", s), ("attn_probs", e), ("attn_context", np.einsum("hts,shk->thk", e, v)):
                if n in f[f"step.{i}/layer1"]:
                    put(f, f"step.{i}/layer1/{n}", x)
def nothing(x):
    x[61] = 0
def others(x):
    x[16:32] = x[:16]
cache("slot.h5", nothing, behind)
cache("zero.h5", nothing, behind + ("attn_scores", "attn_probs"))
cache("block.h5", others, behind + ("attn_scores", "attn_probs"))
END
for f in after slot zero block steps; do told $f.h5 --allow missing; done
mv whole.h5 ref.h5
echo "== in json"
vernier explain ref.h5 alike.h5 --model "$M" --format json | ${PYTHON:-python3} -c '
import json, sys
for e in json.load(sys.stdin)["explanations"]:
    print(e["checkpoint"], e["explained"], e["fitted"], [(a["id"], a["at"]) for a in e["answers"]], e["tried"] > 9,
          e["margin"] > 1e6)'
vernier compare ref.h5 one.h5 --model "$M" --explain --format markdown | grep -c 'Explained'
echo "== what is refused"
try() { echo "\$ vernier $*"; vernier "$@" >said 2>&1; s=$?; head -n 1 said; echo "[$s]"; }
try explain ref.h5 one.h5
try compare ref.h5 one.h5 --explain
try explain ref.h5
try explain ref.h5 one.h5 --bitwise --model none
vernier points --faults='R12' "$M"
vernier points --faults='P12.swapped' "$M" | sed -n '1p;$p'
try points --faults='P12.swaped' "$M"
try points --faults='R{1' "$M"
try points --faults=R1
echo "== rotated pairs are stored side by side, and the scores use that order: not a mistake;" \
	"if only queries are, they were captured wrongly;
   an order that one layer proves holds in the others, where a later operation is wrong"
for f in pairs alone; do cp half.h5 $f.h5; done
for f in R2.1e4@layer1.q_rope R2.1e4@layer0.k_rope W1@layer1.q_proj A6@layer1.attn_context; do
	run -o "${f%@*}${f#*@}.h5" --precision f16 --inject "$f"
done
${PYTHON:-python3} - <<'END2'
import editing as h5py
four = ["q_proj", "k_proj", "q_rope", "k_rope"]
wrong = [(f + ".h5", four) for f in ("R2.1e4layer1.q_rope", "R2.1e4layer0.k_rope", "W1layer1.q_proj",
                                     "A6layer1.attn_context")]
for file, points in ("pairs.h5", four), ("alone.h5", ["q_rope"]), *wrong:
    with h5py.File(file, "r+") as f:
        for n in [f"step.0/layer{l}/{p}" for l in (0, 1) for p in points]:
            d = f[n]
            del d.attrs["digest"]
            x = d[()]
            d[...] = x.reshape(*x.shape[:2], 2, -1).swapaxes(2, 3).reshape(x.shape)
END2
for f in pairs alone; do told $f.h5; grep -h '^verdict' said; done
for f in R2.1e4layer1.q_rope R2.1e4layer0.k_rope W1layer1.q_proj A6layer1.attn_context; do told $f.h5; done
run -o order.h5 --precision f16 --inject 'R1b@*'
told order.h5
echo "== keys alone of the layer before: the cache of values is right"
run -o keys.h5 --precision f16 --inject C9.k@layer1
run -o both.h5 --precision f16 --inject C9@layer1
for f in keys both; do told $f.h5; done
echo "== a wrong capture, read only through operations that were not recorded: no other checkpoint is blamed"
some=$(for p in embed layer\*.attn_norm layer\*.attn_context layer\*.attn_out layer\*.mlp_norm layer\*.down_proj \
	logits; do printf ' --points %s' "$p"; done)
for at in layer1 layer\*; do
	set -f
	vernier capture ref "$M" --ids "$ids" $some --force -o few.h5 >/dev/null 2>&1
	vernier capture ref "$M" --ids "$ids" $some --force -o late.h5 --inject "P10.context@$at" >/dev/null 2>&1
	set +f
	vernier explain few.h5 late.h5 --model "$M" --format json 2>/dev/null | ${PYTHON:-python3} -c '
import json, sys
r = json.load(sys.stdin)
print(r["origins"], [c["name"] for c in r["checkpoints"] if c["fails"]],
      [c["name"] for c in r["checkpoints"] if c["replay"]["recorder_fault"]])'
done
echo "== probabilities of a float16 run, recorded in float32: probabilities that float16 rounds to 0 were not masked"
vernier capture ref "$M" --ids "$ids" --points '*' --force -o whole.h5 >/dev/null 2>&1
vernier capture ref "$M" --ids "$ids" --points '*' --inject A1.missing@layer1 -o single.h5 >/dev/null 2>&1
vernier capture ref "$M" --ids "$ids" --points '*' --inject A1.missing@layer1 --precision f16 -o probs.h5 \
	>/dev/null 2>&1
${PYTHON:-python3} - <<'P'
import h5py
with h5py.File("probs.h5", "r+") as f, h5py.File("single.h5", "r") as of:
    layer = f["step.0/layer1"]
    kept = {k: v for k, v in layer["attn_probs"].attrs.items()
            if k in ("order", "layer", "point", "op", "basis", "axes")}
    del layer["attn_probs"]
    layer.create_dataset("attn_probs", data=of["step.0/layer1/attn_probs"][()]).attrs.update(kept)
P
vernier explain whole.h5 probs.h5 --model "$M" --points layer1.attn_probs | grep '^explained'

# import --like: names proposed by the numbers of a recording, for names that say nothing; a fault;
# exchanges; what is refused.
cat >dump.py <<'P'
# dump.py REC DUMP [how]: a recording of ours under opaque names, heads before tokens.
import h5py, sys
import numpy as np
src, to, how = (sys.argv + [""])[1:4]
g = h5py.File(src)["step.0"]
t = {k: g[k][...] for k in ("embed", "final_norm", "logits")}
words = dict(attn_norm="n1", q_proj="a", k_proj="b", v_proj="c", attn_context="d", attn_out="e", attn_residual="r",
             mlp_norm="n2", gate_proj="f", up_proj="g", mlp_act="h", down_proj="i", output="o")
if how == "words":
    words.update(q_proj="query", k_proj="key", v_proj="value")
out = {"wte": t["embed"][None], "norm": t["final_norm"][None], "head": t["logits"][None]}
for n in (0, 1):
    for point, word in words.items():
        a = g[f"layer{n}/{point}"][...]
        out[f"/net/block_{n + 1}/{word}"] = a.transpose(1, 0, 2)[None] if a.ndim == 3 else a[None]
    out[f"/net/block_{n + 1}/mask"] = np.ones((1, 3), bool)
name = lambda n, w: f"/net/block_{n + 1}/{words[w]}"
if how == "fused":
    for n in (0, 1):
        flat = [out.pop(name(n, w))[0].transpose(1, 0, 2).reshape(4, -1) for w in ("q_proj", "k_proj", "v_proj")]
        out[f"/net/block_{n + 1}/abc"] = np.concatenate(flat, 1)[None]
if how == "late":  # the layer is the last number, a norm has one of its own; each name says its call
    late = {"n1": "norm1", "n2": "norm2"}
    out = {(k if b is None else f"{late.get(w, w)}_{int(b) - 1}") + "_step0": v[0]
           for k, v in out.items() if v.dtype != bool
           for b, w in [k.split("_")[1].split("/") if "/" in k else (None, None)]}
    more = h5py.File(src)["step.1"]
    out.update({f"norm1_{n}_step1": more[f"layer{n}/attn_norm"][...] for n in (0, 1)})
if how == "last":
    out = {k: out[k][0][-1:] * np.float32(1.00003) for k in ("norm", "head")}
if how in ("one", "words"):
    for n in (1,) if how == "one" else (0, 1):
        a, b = name(n, "k_proj"), name(n, "v_proj")
        out[a], out[b] = out[b], out[a]
if how == "stacks":  # one with the layers in the middle, one with an index more
    both = lambda point, *more, axis=0: np.stack([*(g[f"layer{n}/{point}"][...] for n in (0, 1)), *more], axis)
    out = dict(embed=t["embed"], logits=t["logits"], out=both("output", axis=1), resid_mid=both("attn_residual"),
               x=both("attn_norm"), hidden_states=both("input", t["final_norm"]))
if how == "heads":
    for n in (0, 1):
        out[name(n, "q_proj")] = out[name(n, "q_proj")][:, ::-1]
np.savez(to, **out)
P
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7,8 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7,8 --inject R1@layer1 -o bad.h5 2>/dev/null
bits() { vernier compare ref.h5 $1 --bitwise --allow missing | grep '^verdict'; }
outside() { vernier compare ref.h5 $1 --allow missing | grep -E '^(first|origins|verdict)'; }
echo "== a correct run: every rule with its evidence; two lines are all that a user types"
$PYTHON dump.py ref.h5 good.npz
vernier import good.npz --like ref.h5 -o good.h5 --write-map map.yaml
bits good.h5
grep -v '^#' map.yaml
echo "== the map alone does the same"
vernier import good.npz --names map.yaml --ids-from ref.h5 --model "$M" --unmapped drop -o again.h5
bits again.h5
echo "== q, k and v in one product"
$PYTHON dump.py ref.h5 fused.npz fused
vernier import fused.npz --like ref.h5 -o fused.h5 | grep qkv
bits fused.h5
echo "== a faulty run is mapped alike, and the fault is found"
$PYTHON dump.py bad.h5 bad.npz
vernier import bad.npz --like ref.h5 -o fault.h5 --write-map bad.yaml >said
diff <(sed 's/ *#.*//' map.yaml) <(sed 's/ *#.*//' bad.yaml) && echo "the same map"
outside fault.h5
echo "== k and v of one layer exchanged: imported as the other layer says, and reported"
$PYTHON dump.py ref.h5 one.npz one
vernier import one.npz --like ref.h5 -o one.h5 --strict | grep -E 'block_.n.*[bc] |contradiction'
outside one.h5
echo "== of all layers, under names that say key and value: reported, and not mapped"
$PYTHON dump.py ref.h5 words.npz words
vernier import words.npz --like ref.h5 -o words.h5 | grep -E 'key|value'
echo "== heads in another order"
$PYTHON dump.py ref.h5 heads.npz heads
vernier import heads.npz --like ref.h5 -o heads.h5 | grep contradiction
echo "== the layer behind other numbers, and the call behind the layer"
vernier capture ref "$M" --ids 5,6,7,8 --force-ids 9 -o two.h5 2>/dev/null
$PYTHON dump.py two.h5 late.npz late
vernier import late.npz --like two.h5 -o late.h5 --strict | grep -E 'norm|contradiction'
bits2() { vernier compare two.h5 $1 --bitwise --allow missing | grep '^verdict'; }
bits2 late.h5
echo "== only the last row"
$PYTHON dump.py ref.h5 last.npz last
vernier import last.npz --like ref.h5 -o last.h5 --strict | grep "'"
echo "== all layers in one tensor: in the middle, an index more; one near index of a faulty run"
vernier capture ref "$M" --ids 5,6,7,8 --inject N5@* -o n5.h5 2>/dev/null
for run in ref n5; do
	$PYTHON dump.py $run.h5 $run.npz stacks
	vernier import $run.npz --like ref.h5 -o $run.stacks.h5 | grep -E "layer\{n\}|left out"
done
bits ref.stacks.h5
echo "== --dry-run writes nothing; what is refused"
vernier import good.npz --like ref.h5 --dry-run | grep -c '^  layer'
vernier import good.npz --like ref.h5 -o ref.h5 --force; echo "[$?]"
vernier import good.npz --write-map m.yaml -o x.h5; echo "[$?]"
vernier import good.npz --like nowhere.h5 -o x.h5; echo "[$?]"
vernier import good.npz --like ref.h5 --ids 5,6,7,9 -o x.h5; echo "[$?]"
vernier import good.npz --like ref.h5 --ids "[[5,6],[7,8]]" -o x.h5; echo "[$?]"
echo text >notes.yaml
vernier import good.npz --like ref.h5 -o x.h5 --write-map notes.yaml --force 2>&1 >said; echo "[$?]"
ls x.h5 m.yaml 2>&1 | sed 's/.*cannot/cannot/'

# Digests first: on request, tensors with equal digests are not read; otherwise everything is read.
M=$FIXTURES/qwen2-trained
PY=${PYTHON:-python3}
I="--ids @$FIXTURES/prompts/p017.ids"
rec() { vernier capture ref "$M" $I "$@" 2>/dev/null; }
say() { say_lines '^(refused|vernier compare|verdict|warning|note|equal|within|OUTSIDE)' compare "$@" |
	sed 's/^\(OUTSIDE *[^ ]*\) .*/\1/'; }
rec -o ref.h5; cp ref.h5 same.h5; rec --inject R1@layer1 -o bug.h5; rec --precision f16 -o half.h5
flip() { cp "$1" "$2"; "${PYTHON:-python3}" -c "import editing; editing.flip('$2', '$3')"; }
echo "== equal"
say ref.h5 same.h5
say ref.h5 same.h5 --trust-digests
say ref.h5 same.h5 --trust-digests --strict
say ref.h5 same.h5 --trust-digests --bitwise
echo "== equal up to the fault; the tensors that are read have the same numbers"
say ref.h5 bug.h5 --trust-digests
for t in "" --trust-digests; do vernier compare ref.h5 bug.h5 $t -q -o "r$t.json"; done
$PY -c "
import json
a, b = ({c['name']: c for c in json.load(open(f))['checkpoints']} for f in ('r.json', 'r--trust-digests.json'))
equal = [n for n in b if b[n]['status'] == 'equal']
print(len(equal), 'equal, nmse when read:', {a[n]['metrics']['nmse'] for n in equal}, 'all within:',
      all(a[n]['status'] == 'within' for n in equal))
print(len(b) - len(equal), 'read, the same:', all(a[n] == b[n] for n in b if n not in equal))"
echo "== with a model everything is read; in another format nothing is equal"
say ref.h5 same.h5 --trust-digests --model "$M"
say ref.h5 half.h5 --trust-digests
echo "== a flipped bit is found by reading, and by nothing else"
flip same.h5 flip.h5 step.0/layer1/attn_out
say ref.h5 flip.h5
say ref.h5 flip.h5 --trust-digests
echo "== tensors whose digests do not decide are read"
cp same.h5 odd.h5; $PY - <<'P'
import h5py, numpy as np, xxhash
for name in ("ref.h5", "odd.h5"):
    with h5py.File(name, "r+") as f:
        def put(at, x, **stats):
            d = f[at]
            d[...] = x
            d.attrs["digest"] = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(d[()]))
            for k, v in stats.items():
                d.attrs[k] = v
        x = f["step.0/layer0/q_proj"][()]; x.flat[3] = np.nan
        put("step.0/layer0/q_proj", x, nan=1)
        put("step.0/layer0/k_proj", np.ones_like(f["step.0/layer0/k_proj"][()]), min=1.0, max=1.0)
        for a in ("min", "max", "mean", "rms", "absmax", "nan", "inf"):
            del f["step.0/layer0/v_proj"].attrs[a]
        del f["step.0/layer0/attn_norm"].attrs["digest"]
P
say ref.h5 odd.h5 --trust-digests

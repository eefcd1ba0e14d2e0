# An engine in float16 with numbers beyond 65504: the replay in float16 overflows too, and the error
# still starts at the overflow.
M=$FIXTURES/qwen2-trained
cat >scaled.py <<'PY'
"""scaled.py MODEL FACTOR [RECORDING]: up of layer 0 is so many times as much, and down as many times less. With a
recording of that model one channel of down_proj is scaled until it reaches 60000, and the columns between up and down
stand in an order in which the terms of one of its results fall: that sum rises before it falls."""
import json, struct, sys
import editing as h5py
import numpy as np
path = sys.argv[1] + "/model.safetensors"
raw = bytearray(open(path, "rb").read())
n = 8 + struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:n])
places = {k: (n + v["data_offsets"][0], n + v["data_offsets"][1], v["shape"]) for k in ("gate", "up", "down")
          for v in [head[f"model.layers.0.mlp.{k}_proj.weight"]]}
w = {k: np.frombuffer(bytes(raw[a:b]), "<f4").reshape(s) for k, (a, b, s) in places.items()}
w["up"] = w["up"] * np.float32(float(sys.argv[2]))
w["down"] = w["down"] / np.float32(float(sys.argv[2]))
if len(sys.argv) > 3:
    terms = h5py.File(sys.argv[3])["step.0/layer0/mlp_act"][...][:, None] * w["down"]
    rising, whole = np.maximum(terms, 0).sum(-1), abs(terms.sum(-1))
    channel = (rising.max(0) / whole.max(0)).argmax()
    order = np.argsort(-terms[rising[:, channel].argmax(), channel])
    w["down"][channel] *= 60000 / whole[:, channel].max()
    w = {"gate": w["gate"][order], "up": w["up"][order], "down": w["down"][:, order]}
for k, (a, b, _) in places.items():
    raw[a:b] = np.ascontiguousarray(w[k]).tobytes()
open(path, "wb").write(raw)
PY
scaled() { cp -r "$M" "$1" && "${PYTHON:-python3}" scaled.py "$@"; }
run() { vernier capture ref "$@" --ids "@$FIXTURES/prompts/p070.ids" >/dev/null 2>&1 || echo failed; }
say() { vernier "$@" 2>&1 | grep -E '^(verdict|first |explained)'; }
say_json() { vernier compare "$@" --format json 2>/dev/null | "${PYTHON:-python3}" -c "
import json, sys
j = json.load(sys.stdin)
print(j['origins'], [(c['name'], c['overflow']) for c in j['checkpoints'] if 'overflow' in c])"; }

scaled wide 20000
run wide -o wide.h5
run wide -o wide16.h5 --precision f16
echo "== the result is beyond the format"
say explain wide.h5 wide16.h5 --model wide
say compare wide.h5 wide16.h5
say_json wide.h5 wide16.h5 --model wide

scaled plain 8000
run plain -o plain.h5
scaled near 8000 plain.h5
run near -o near.h5
run near -o near16.h5 --precision f16
run near -o acc16.h5 --precision f16-acc16
echo "== only a partial sum is, in an engine that accumulates in the format"
say compare near.h5 near16.h5 --model near
say explain near.h5 acc16.h5 --model near
say_json near.h5 acc16.h5 --model near

echo "== an infinity that is no overflow"
"${PYTHON:-python3}" -c "
import editing as h5py
f = h5py.File('near16.h5', 'r+')
d = f['step.0/layer1/mlp_act']
x = d[...]
x[3, 5] = float('inf')
d[...] = x"
say compare near.h5 near16.h5 --model near

echo "== an engine that makes something else of the NaN that it was given"
"${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('wide16.h5', 'r+')
d = f['step.0/logits']
d[...] = np.nan_to_num(d[...], nan=1.0)"
vernier compare wide.h5 wide16.h5 --model wide --format json 2>/dev/null | "${PYTHON:-python3}" -c "
import json, sys
j = json.load(sys.stdin)
print(j['origins'],
      [(c['name'], c['status'], c['replay']['fault_at']) for c in j['checkpoints'] if c['name'] == 'logits'])"

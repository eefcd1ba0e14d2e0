# Reports: which go where, and that no name in a recording steers what shows them.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$M" --ids "$ids" -o half.h5 --precision f16
cp half.h5 bad.h5
$PYTHON - <<'END'
import h5py, numpy as np
f = h5py.File("bad.h5", "r+")
for name, change in (("layer0/q_rope", lambda x: x.__setitem__((slice(None), slice(4, 6)), x[:, 4:6] * 1.2)),
                     ("layer1/mlp_act", lambda x: x.__setitem__((3, 7), np.nan))):
    d = f["step.0/" + name]
    del d.attrs["digest"]
    x = d[()].astype(np.float32)
    change(x)
    d[...] = x
END

echo "== the first screen"
vernier compare ref.h5 bad.h5 --floor half.h5 | sed '/^$/,$d'

echo "== quiet"
vernier compare ref.h5 half.h5 -q
echo "[$?]"
vernier compare ref.h5 bad.h5 --quiet -o quiet.json
echo "[$?]" quiet.json
vernier compare ref.h5 bad.h5 --quiet --format text
echo "[$?]"
vernier compare ref.h5 nowhere.h5 --quiet
echo "[$?]"

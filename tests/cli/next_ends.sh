# What a report proposes to type leads on: the same command is not proposed again, and a shape is
# not a missing name.
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7 -o ref.h5 2>/dev/null
cp ref.h5 bad.h5
$PYTHON - <<'P'
import h5py
with h5py.File("bad.h5", "r+") as f:
    d = f["step.0/layer1/q_rope"]
    x, attributes = d[...], {k: v for k, v in d.attrs.items() if k not in ("digest", "axes")}
    del f["step.0/layer1/q_rope"]
    d = f["step.0/layer1"].create_dataset("q_rope", data=x.reshape(x.shape[0], -1))
    d.attrs.update(attributes, axes="token hidden")
    del f["step.0/layer0/k_rope"]
P
next() {
	vernier compare ref.h5 bad.h5 --allow itself "$@" --format json 2>/dev/null |
		$PYTHON -c 'import json, sys; print(*json.load(sys.stdin)["next"] or ["nothing"], sep="\n")'
}
echo "== a shape, and a name that is missing"
next
echo "== the same, the name allowed"
next --allow missing,extra

# Logits that peak at the input token: reported if the reference's do not, and not reported for
# correct runs.
M=$FIXTURES/qwen2-trained
cp -r "$M" broken; chmod -R u+w broken
# The layers add nothing: the head gets the embedding.
$PYTHON - <<'END_PYTHON'
import json, re, struct
path = 'broken/model.safetensors'
b = bytearray(open(path, 'rb').read())
n = struct.unpack('<Q', b[:8])[0]
for name, t in json.loads(b[8:8 + n]).items():
    if name != '__metadata__' and re.search('(o_proj|down_proj)', name):
        a, z = (8 + n + x for x in t['data_offsets'])
        b[a:z] = bytes(z - a)
open(path, 'wb').write(b)
END_PYTHON
IDS=@$FIXTURES/prompts/p070.ids
capture() { vernier capture ref "$@" 2>/dev/null; }
capture "$M" --ids "$IDS" -o ref.h5
capture broken --ids "$IDS" -o bad.h5
capture broken --ids "$IDS" --precision f16 -o bad16.h5
capture broken --ids "$IDS" --force-ids 5,6,7 --points logits -o bad_steps.h5
compare() {
	vernier compare "$@" --allow weights,config 2>&1 | grep -o "the candidate's logits peak.*"
	echo "[${PIPESTATUS[0]}]"
}
check() { vernier show "$1" --check --strict 2>&1 | grep "show: warning:.*peak"; echo "[${PIPESTATUS[0]}]"; }
echo "== a mistake"
compare ref.h5 bad.h5
vernier compare ref.h5 bad.h5 --allow weights,config --format json 2>/dev/null | grep -c 'logits peak at their input'
check bad.h5
vernier show bad.h5 --check --strict --format json 2>/dev/null | grep -c "bad.h5: the logits peak"
echo "[${PIPESTATUS[0]}]"
check bad_steps.h5
echo "== both echo, or the reference alone: nothing to say of the candidate"
compare bad.h5 bad16.h5
compare bad.h5 ref.h5
echo "== correct: a text, one token over and over, few tokens, an untrained model with tied weights"
check ref.h5
$PYTHON -c "print(','.join(['7'] * 60))" >same.ids
capture "$M" --ids @same.ids -o same.h5
check same.h5
capture broken --ids 1,2,3 -o few.h5
check few.h5
vernier synth tiny -o tied >/dev/null 2>&1
capture tied --ids "$IDS" -o tied.h5
capture tied --ids "$IDS" --precision f16 -o tied16.h5
check tied.h5
compare tied.h5 tied16.h5
echo "== logits alone, written without a digest by another program"
$PYTHON - <<'END_PYTHON'
import h5py
for name in "bad", "ref":
    with h5py.File(name + ".h5") as f, h5py.File(name + "_logits.h5", "w") as g:
        g.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        run = g.create_group("run")
        run.attrs.update(engine="theirs", precision="f32")
        for key in "token_ids", "positions":
            run[key] = f["run/" + key][()]
        step = g.create_group("step.0")
        step.attrs.update(position=0, tokens=len(run["token_ids"]))
        step["logits"] = f["step.0/logits"][()]
        step["logits"].attrs.update(axes="token vocab", order=0)
END_PYTHON
for name in bad ref; do vernier show ${name}_logits.h5 --check --strict 2>&1; echo "[$?]"; done

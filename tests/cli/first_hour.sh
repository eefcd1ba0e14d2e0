# Mistakes of a first hour: each message says what to type instead.
M="$FIXTURES/llama-trained"
vernier capture ref "$M" --ids 1,2,3,4 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 1,2,3,4 --inject R2.1e4@layer1.q_rope -o bad.h5 2>/dev/null
echo "== a long option with one dash, anywhere; a letter that is not an option"
say compare ref.h5 bad.h5 -model M
say compare -model M ref.h5 bad.h5
say compare ref.h5 bad.h5 -json
say capture ref "$M" -ids 1,2,3 -o i.h5
say compare ref.h5 bad.h5 -qz
say compare ref.h5 bad.h5 -z
say compare ref.h5 bad.h5 -o=r.html
ls =r.html 2>&1
echo "== swapped, both in float32: explain finds that the reference is not its model's, and exchanges the two"
vernier explain bad.h5 ref.h5 --model "$M" --format json 2>/dev/null |
	$PYTHON -c 'import json,sys; print(json.load(sys.stdin)["next"])'
echo "== near words"
say compare ref.h5 bad.h5 --limits f16.yaml
say compare ref.h5 bad.h5 --limits fp16
say compare ref.h5 bad.h5 --points 'layr1.*'
say compare ref.h5 bad.h5 --points '*.q_rop'
say compare ref.h5 bad.h5 --points 'layr7.*'
say capture reff "$M" --ids 1 -o i.h5
say capture ref "$M" --ids ref.h5 -o i.h5
say --hlep
say -V
mkdir hf && $PYTHON -c '
import numpy as np
for n in "model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.k_proj", "lm_head", "odd":
    np.save(f"hf/{n}.npy", np.zeros((4, 8), np.float32))'
say import hf --ids 1,2,3,4 --precision f32 -o i.h5
echo "== messages about values of size 0"
vernier capture ref "$M" --ids 1,2,3,4 --points '*' -o all.h5 2>/dev/null
$PYTHON -c '
import h5py, shutil
shutil.copy("all.h5", "zero.h5")
with h5py.File("zero.h5", "r+") as f:
    f["step.0/layer1/q_proj"][...] = 0'
vernier show zero.h5 --check | grep rotation
vernier compare all.h5 zero.h5 --allow digest | grep -m1 throughout
echo "== python"
PYTHONPATH=$TESTS/../capture/python $PYTHON -c '
import vernier_parity as v
for what in (lambda: v.record("a.h5", object()),
             lambda: v.Recorder("p.h5", engine="mine", precision="f32", run={"precision": "f16"})):
    try:
        what()
    except v.RecordingError as e:
        print(e)
print(v.open("ref.h5"))'
ls p.h5* 2>&1
echo "== the engine by its hardware, a text in place of its file"
say capture cpu "$M" --ids 1,2,3,4 -o i.h5
say capture vulkan "$M" --ids 1,2,3,4 -o i.h5
say evaluate "$M" --prompt @words.txt
say capture ref "$M" --text words -o i.h5
echo "some words, and more of them" >words.txt
say_lines '^(text|verni)' evaluate "$M" --text @words.txt --decode 0 --candidate ref
say evaluate "$M" --text "some words"
echo "== the recorded command can be typed again"
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --prompt "it's two words" -o said.h5 2>/dev/null
vernier show said.h5 | grep '^  command'
echo "== an origin whose inputs were not compared"
vernier compare ref.h5 bad.h5 --points layer1.q_rope | grep verdict
vernier compare ref.h5 bad.h5 --points 'layer1.{q_proj,q_rope}' | grep verdict
echo "== nothing could be measured: nothing is said of the formats"
mkdir odd && $PYTHON -c 'import numpy as np; np.save("odd/embed.npy", np.zeros((4, 24, 2), np.float16))'
vernier import odd --ids 1,2,3,4 --precision f16 -o odd.h5 2>/dev/null
vernier compare ref.h5 odd.h5 --model "$FIXTURES/llama-trained" --points embed | grep '^floor'

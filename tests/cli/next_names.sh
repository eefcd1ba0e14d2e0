# What a report proposes to type: names of another engine, misspelt names, refusals,
# evaluations, weights.
M="$FIXTURES/qwen2-trained"
next() {
	"$@" --format json 2>/dev/null |
		$PYTHON -c 'import json, sys; print(*json.load(sys.stdin)["next"] or ["nothing"], sep="\n")'
}
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
cp ref.h5 bad.h5
$PYTHON - <<'P'
import h5py
with h5py.File("bad.h5", "r+") as f:
    f["step.0/layer1"].move("q_rope", "q_rop")
    del f["step.0/layer1/q_rop"].attrs["point"]
P
echo "== a misspelt name: the note, and no proposal to allow it"
vernier compare ref.h5 bad.h5 --allow itself | grep '^note *names'
next vernier compare ref.h5 bad.h5 --allow itself
echo "== names of transformers, on either side; with the map nothing of it is left"
vernier capture ref "$FIXTURES/llama-trained" --ids-from "$FIXTURES/foreign/hf-llama.h5" -o llama.h5 2>/dev/null
cp "$FIXTURES/foreign/hf-llama.h5" hf.h5
vernier compare llama.h5 hf.h5 | grep '^note *names'
next vernier compare llama.h5 hf.h5
next vernier compare hf.h5 llama.h5
next vernier compare llama.h5 hf.h5 --names hf --allow missing,extra
echo "== what is allowed already is in the same option"
vernier capture ref "$M" --ids 5,6,7 --points 'layer0.*' -o part.h5 2>/dev/null
next vernier compare part.h5 ref.h5 --allow missing
next vernier explain part.h5 ref.h5 --model "$M" --allow missing,itself
echo "== names of llama.cpp"
cp "$FIXTURES/foreign/llama.cpp-llama.h5" ll.h5
vernier compare llama.h5 ll.h5 --allow token_ids | grep '^note *names'
echo "== other tokens: recorded again with the tokens of the other side, and that command runs"
vernier capture ref "$M" --ids 5,6,8 --precision f16 -o other.h5 2>/dev/null
next vernier compare ref.h5 other.h5
eval "$(next vernier compare ref.h5 other.h5 | sed -n 1p)" 2>/dev/null &&
	vernier compare reference.h5 other.h5 | tail -n 1
next vernier compare llama.h5 hf.h5 --ref-batch-row 0 --allow config
echo "== a proposed command keeps the options"
next vernier compare ref.h5 other.h5 --points 'layer0.*' --strict --model "$M" --floor-precision f16 --allow config
vernier capture ref "$M" --ids 5,6,7 --precision f16 -o floor.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7 --precision f16 --inject R1@layer1 -o wrong.h5 2>/dev/null
next vernier compare ref.h5 wrong.h5 --floor floor.h5 --points '*_rope' --strict
next vernier compare ref.h5 wrong.h5 --model "$M" --floor-precision bf16 --strict
vernier capture ref "$M" --ids 5,6,7 --precision f16 --points 'layer0.*' -o few.h5 2>/dev/null
next vernier compare ref.h5 few.h5 --floor floor.h5 --limits fp16-acc32.yaml
echo "== decoded tokens too"
vernier capture ref "$M" --ids 5,6,7 --precision f16 --decode 2 -o longer.h5 2>/dev/null
vernier compare ref.h5 longer.h5 2>&1 | sed -n 1p
next vernier compare ref.h5 longer.h5
rm reference.h5
eval "$(next vernier compare ref.h5 longer.h5 | sed -n 1p)" 2>/dev/null &&
	vernier compare reference.h5 longer.h5 | tail -n 1
next vernier show longer.h5 | sed -n 2p
vernier capture ref "$M" --ids-from longer.h5 --force-ids-from longer.h5 --inject R1@layer1 -o mistake.h5 2>/dev/null
vernier compare reference.h5 mistake.h5 --allow config --limits fp32.yaml -q
vernier explain reference.h5 mistake.h5 --model "$M" --format json |
	$PYTHON -c 'import json, sys; print(json.load(sys.stdin)["next"][0])'
echo "== other weights"
cp -r "$M" changed
$PYTHON - <<'P'
import json
import numpy as np
with open("changed/model.safetensors", "r+b") as f:
    n = 8 + int.from_bytes(f.read(8), "little")
    at = n + json.loads(f.read(n - 8))["model.norm.weight"]["data_offsets"][0]
    f.seek(at)
    x = np.frombuffer(f.read(64), "<f4") * np.float32(1.5)
    f.seek(at)
    f.write(x.tobytes())
P
vernier capture ref changed --ids 5,6,7 -o changed.h5 2>/dev/null
next vernier compare ref.h5 changed.h5
next vernier weights ref.h5 changed.h5
next vernier weights "$M" changed
next vernier weights ref.h5 changed
next vernier weights "$M" "$M"
echo "== an evaluation: of a text, of the reference in another precision, with a fault"
printf 'of the one and of the other' >text
next vernier evaluate "$M" --text text --candidate ref --precision bf16 --decode 0
next vernier evaluate "$M" --ids 5,6,7,9 --candidate ref --inject 'R1@layer1.q_rope' --decode 0
mkdir e && cd e
next vernier evaluate "$M" --ids 5,6,7,9 --candidate ref --inject 'R1@layer1.q_rope' --decode 0 >list
while read -r line; do eval "$line" 2>/dev/null; done <list | grep "^explained"
echo "== where a file of a proposed name is there already, another one is proposed, and all of them run"
next vernier evaluate "$M" --ids 5,6,7,9 --candidate ref --inject 'R1@layer1.k_rope' --decode 0 >list
cat list
while read -r line; do eval "$line" 2>/dev/null; done <list | grep "^explained"
next vernier show ../ref.h5
touch gpu.h5 embed.npy
next vernier show ../ref.h5
next vernier show ../ref.h5 embed
cd ..
echo "== weights of two models, or of two texts, are not compared tensor by tensor"
next vernier weights ref.h5 llama.h5

# The products of a model, for a person who ports an engine, and those of a replayed checkpoint.
M=$FIXTURES/qwen2-trained
try() { echo "\$ vernier $*" | sed "s|$FIXTURES|FIXTURES|"; vernier "$@" 2>&1; echo "[$?]"; }
echo "== below the checkpoint that they make"
vernier points "$M" --verbose |
	grep -E -A 2 '^(layer0\.(q_proj|v_proj|attn_context|attn_scores|attn_norm|down_proj)|logits) '
echo "== one product for queries, keys and values, its weight not transposed"
vernier points "$FIXTURES/gpt2-trained" --verbose | grep -E -A 1 '^layer0\.(c_attn|attn_out) '
echo "== only if asked for"
vernier points "$M" | grep -c gemm
echo "== complaints"
try points --verbose
try points "$M" --verbose --faults
echo "== a replay says them in numbers: 5 tokens, then 1 after 5"
run() { vernier capture ref "$M" --ids 5,6,7,8,9 --force-ids 10 --points '*' "$@" 2>/dev/null; }
run -o ref.h5
run -o bad.h5 --inject A1.missing@layer1.attn_context
vernier compare ref.h5 bad.h5 --model "$M" --all 2>/dev/null | grep -A 1 '^  gemm'
vernier compare ref.h5 bad.h5 --model "$M" --format json 2>/dev/null >r.json
$PYTHON -c '
import json
for c in json.load(open("r.json"))["checkpoints"]:
    if c["name"] in ("layer1.attn_context", "layer1.attn_out", "layer1.q_rope") and "replay" in c:
        print(c["step"], c["name"], *[json.dumps(g) for g in c["replay"]["gemm"]] or ["none"], sep="\n   ")'

# A recording of logits only: correct runs are within their limits, with any precision and in
# decoding; small faults are found, and the report says how small a fault can show.
M=$FIXTURES/qwen2-trained
P=@$FIXTURES/prompts/p070.ids
ref() { vernier capture ref "$M" --force "$@" 2>err || cat err; }
cand() { ref --ids-from ref.h5 --force-ids-from ref.h5 -o cand.h5 --points logits "$@"; }
verdict() { say_lines '^(first|rule|note|explained|verdict)' "$@" --model "$M" --allow missing; }

ref --ids "$P" -o ref.h5 --decode 12
for p in f32 f16 bf16; do
	echo "== $p, 70 tokens and 12 decoded: correct"
	cand --precision $p
	verdict compare ref.h5 cand.h5
done
echo "== float32, a faulty eps in all layers, a larger theta"
for f in 'N1.1e-5@*' 'R2.1e4@*'; do
	cand --inject "$f"
	verdict explain ref.h5 cand.h5
done
echo "== the same report with 1 and 2 threads"
for t in 1 2; do
	vernier compare ref.h5 cand.h5 --model "$M" --allow missing --threads $t --format json -o $t.json --force -q
done
cmp 1.json 2.json && echo same
echo '== hidden states of which the last is after the last norm, and a fault before: the only origin'
cand --inject N1@layer0.mlp_norm --inject P21@layer1.output --points 'layer*.output'
verdict compare ref.h5 cand.h5 | grep -E '^(first|verdict)'
echo '== some layers, with and without what follows them'
ref --ids "$P" -o prompt.h5
for p in layer0.output '{layer0.output,logits}' layer1.output; do
	ref --ids "$P" --points "$p" -o cand.h5
	verdict compare prompt.h5 cand.h5 | grep '^note.*is compared'
done
echo '== a table of weights that import copied'
"$PYTHON" - <<'EOF'
import h5py
import numpy as np
np.savez("logits.npz", logits=h5py.File("prompt.h5")["step.0/logits"][()])
EOF
vernier import logits.npz --model "$M" --ids "$P" --precision f32 -o copied.h5
say_lines '^weights' compare prompt.h5 copied.h5 --allow missing
say_lines '^weights' weights "$M" copied.h5

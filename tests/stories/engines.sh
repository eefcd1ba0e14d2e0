# Four engines run one model. Three agree with the reference as far as their formats allow; which
# one does not, and from where on?
# Headline: C is the odd one out at [0-9]+ checkpoints, first at layer1\.q_rope
vernier capture ref "$M" --ids "$IDS" -o ref.h5
if [ -z "$FULL" ]; then
	cp "$FIXTURES/golden/qwen2-trained.p017.f32.h5" other.h5 # recorded in transformers
elif $PYTHON -c 'import torch, transformers' 2>/dev/null; then
	$PYTHON "$TESTS/stories/record_transformers.py" "$M" "$IDS" other.h5 # the same weights in transformers
else
	vernier capture ref "$M" --ids "$IDS" --precision f64 -o other.h5
fi
vernier capture ref "$M" --ids "$IDS" --precision f16 -o ours.h5
vernier capture ref "$M" --ids "$IDS" --precision f16 --inject R1@layer1.q_rope -o theirs.h5
vernier capture ref "$M" --ids "$IDS" --precision bf16 -o bf16.h5
vernier compare ref.h5 other.h5 ours.h5 theirs.h5 bf16.h5 --allow extra >report || [ $? = 1 ]
sed -n '/^checkpoint/,$p' report
grep "odd one out" report

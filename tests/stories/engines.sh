# Four engines run one model. Three agree with the reference as far as their formats allow; which one does not, and from where on?
# Headline: C is the odd one out at [0-9]+ checkpoints, first at layer1\.q_rope
M=$FIXTURES/qwen2-trained IDS=@$FIXTURES/prompts/p017.ids
vernier capture ref "$M" --ids "$IDS" -o ref.h5
cp "$FIXTURES/golden/qwen2-trained.p017.f32.h5" transformers.h5 # recorded in transformers
vernier capture ref "$M" --ids "$IDS" --precision f16 -o ours.h5
vernier capture ref "$M" --ids "$IDS" --precision f16 --inject R1@layer1.q_rope -o theirs.h5
vernier capture ref "$M" --ids "$IDS" --precision bf16 -o bf16.h5
vernier compare ref.h5 transformers.h5 ours.h5 theirs.h5 bf16.h5 --allow extra >report || [ $? = 1 ]
sed -n '/^checkpoint/,$p' report
grep "odd one out" report

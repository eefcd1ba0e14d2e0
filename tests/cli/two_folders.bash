# Two folders of recordings, refs and cands: a pair within its limits, one outside, one alone, one that is broken.
M=$FIXTURES/qwen2-trained
mkdir refs cands
for p in p001 p002 p017; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/$p.ids" -o refs/$p.h5 2>/dev/null
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/$p.ids" -o cands/$p.h5 --precision f16 2>/dev/null
done
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p002.ids" --precision f16 --inject R1@layer1.q_rope \
	-o cands/p002.h5 --force 2>/dev/null
cp refs/p017.h5 refs/alone.h5; cp refs/p001.h5 refs/broken.h5; echo no >cands/broken.h5

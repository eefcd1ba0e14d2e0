# Steps that are lost, exchanged, copied or stale on both sides, as one recorder's mistake leaves
# them in both: the ids of the run tell.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --decode 6 -o ref.h5 2>/dev/null
ids=$($PYTHON -c "
import editing as h5py
print(*h5py.File('ref.h5')['run/token_ids'][17:], sep=',')")
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --force-ids "$ids" --precision f16 -o cand.h5 2>/dev/null
vernier compare ref.h5 cand.h5 | tail -n 1
say() {
	vernier compare "$@" >said 2>&1
	s=$?
	grep -E '^(refused|verdict|finding|rule|first  |vernier|note  *allowed|warning  *allowed)' said
	echo "[$s]"
}
both() { for f in ref cand; do cp $f.h5 $f.x.h5; $PYTHON -c "
import editing as h5py
f = h5py.File('$f.x.h5', 'r+')
$1"; done; }
echo "== one of them lost"
for n in 0 3 6; do both "del f['step.$n']"; say ref.x.h5 cand.x.h5; done
say ref.x.h5 cand.x.h5 --bitwise
say ref.x.h5 cand.x.h5 --model "$M"
both "del f['step.1'], f['step.2'], f['step.5']"; say ref.x.h5 cand.x.h5
say ref.x.h5 cand.x.h5 --allow steps
vernier show cand.x.h5 --check; echo "[$?]"
echo "== in one of them alone it is missing"
say ref.h5 cand.x.h5 --quiet; say cand.x.h5 ref.h5 --quiet
echo "== exchanged, copied"
both "f.move('step.2', 'x'); f.move('step.3', 'step.2'); f.move('x', 'step.3')"; say ref.x.h5 cand.x.h5
vernier show cand.x.h5 --check; echo "[$?]"
both "f.copy('step.6', 'step.8')"; say ref.x.h5 cand.x.h5
say ref.h5 cand.h5 --floor cand.x.h5
echo "== declared: a step of which nothing was kept"
both "a = dict(f['step.3'].attrs); del f['step.3']; f.create_group('step.3').attrs.update({**a, 'rows': 0})"
say ref.x.h5 cand.x.h5
echo "== another step's numbers on both sides, of another token; of the same token what a token alone makes is the same"
both "a = dict(f['step.4'].attrs); del f['step.4']; f.copy('step.3', 'step.4'); f['step.4'].attrs.update(a)"
say ref.x.h5 cand.x.h5
both "
for n in range(2, 7): f['step.%d/logits' % n][...] = f['step.1/logits'][...]"; say ref.x.h5 cand.x.h5
both "f['step.5/layer1/q_rope'][...] = f['step.2/layer1/q_rope'][...]"; say ref.x.h5 cand.x.h5
for p in f32 f16; do
	vernier capture ref "$M" --ids 7,8,9,10 --force-ids 5,6,5,5 --precision $p -o again.$p.h5 2>/dev/null
done
say again.f32.h5 again.f16.h5
echo "== a file with itself: by its path, a link, a hard link, its folder"
ln -s ref.h5 link.h5; ln ref.h5 hard.h5; mkdir -p one two; ln ref.h5 one/a.h5; ln ref.h5 two/a.h5
say ref.h5 ref.h5; say ref.h5 ./link.h5 --bitwise; say hard.h5 ref.h5; say one one; say one two
say ref.h5 hard.h5 --allow itself
echo "== parts of the plan that neither side recorded"
for p in f32 f16; do
	vernier capture ref "$M" --ids 7,8 --points 'embed' --force --precision $p -o few.$p.h5 2>/dev/null
done
vernier compare few.f32.h5 few.f16.h5 | grep -E '^(verdict|reference)'; vernier show few.f32.h5 | sed -n 1p
vernier compare again.f32.h5 again.f16.h5 --points embed | grep '^verdict'
both "del f['step.0/layer1/q_proj'], f['step.0/layer1/attn_out'], f['step.2/final_norm']"
say ref.x.h5 cand.x.h5
say ref.x.h5 cand.h5 --allow extra
say ref.x.h5 cand.x.h5 --points '*_proj'
echo "== a state of fixed size that is wrong after one step: later steps are recomputed from the recorded state"
G=$FIXTURES/qwen3_5_text-trained
vernier capture ref "$G" --ids "@$FIXTURES/prompts/p017.ids" --decode 3 -o state.ref.h5 2>/dev/null
vernier capture ref "$G" --ids "@$FIXTURES/prompts/p017.ids" --force-ids-from state.ref.h5 --precision f16 \
	--inject G15@layer0 -o state.h5 2>/dev/null
say state.ref.h5 state.h5 --model "$G"

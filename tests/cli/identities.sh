# What must hold in one file alone: it does in correct files of every family and engine,
# and each kind of fault is named.
for family in gpt2 qwen2 qwen3 llama mistral qwen3_5_text; do
	for precision in f32 f16; do
		vernier capture ref "$FIXTURES/$family-trained" --ids 5,9,5,17,33,9,101,5 --points '*' --decode 2 \
			--precision $precision -o x.h5 --force 2>/dev/null
		vernier show x.h5 --check >said
		echo "$family $precision [$?] $(tail -n 1 said)"
		vernier compare x.h5 x.h5 --allow itself | grep 'alone: '
	done
	vernier show "$FIXTURES/golden/$family-trained.p017.f32.h5" --check >said
	echo "transformers' $family [$?] $(tail -n 1 said)"
done
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,9,5,17,33,9,101,5 --points '*' -o q.h5 2>/dev/null
vernier capture ref "$FIXTURES/qwen3_5_text-trained" --ids 5,9,5,17,33,9,101,5 --points '*' -o g.h5 2>/dev/null
with() { # file, change
	cp "$1" bad.h5
	$PYTHON -c "
import h5py, numpy as np
f = h5py.File('bad.h5', 'r+')
def put(name, change):
    d = f['step.0/' + name]; d[...] = change(d[()])
$2"
	vernier show bad.h5 --check | grep BROKEN
}
echo "== faults"
with q.h5 "put('layer1/attn_out', lambda x: f['step.0/layer1/down_proj'][()])"
with q.h5 "put('layer0/attn_out', lambda x: x + 1e-3 * (np.arange(x.size) == 100).reshape(x.shape))"
with q.h5 "put('layer0/output', lambda x: np.roll(x, 1, axis=0))"
with q.h5 "put('layer0/q_rope', lambda x: x * np.where(np.arange(x.shape[1]) == 2, 1.5, 1)[None, :, None])"
with q.h5 "put('layer1/k_rope', lambda x: f['step.0/layer1/v_proj'][()])"
with q.h5 "put('layer0/attn_probs', lambda x: x.transpose(0, 2, 1))"
with q.h5 "put('layer0/attn_probs', lambda x: x / 2)"
with q.h5 "put('layer1/attn_context', lambda x: x[:, ::-1])"
with q.h5 "put('embed', lambda x: x[::-1])"
with g.h5 "put('layer0/gdn_beta', lambda x: 2 * x); put('layer1/gdn_g', lambda x: -x)"
echo "== a norm between projection and rotation that was not recorded; one node in another precision"
vernier capture ref "$FIXTURES/qwen3-trained" --ids 5,9,5,17,33,9,101,5 \
	--points '{embed,layer*.{q_proj,k_proj,q_rope,k_rope}}' -o n.h5 2>/dev/null
vernier show n.h5 --check | grep -E 'BROKEN|identities'
vernier capture ref "$FIXTURES/qwen2-trained" --ids @"$FIXTURES/prompts/p070.ids" --precision f16-acc16 \
	--precision 'f32@*.down_proj' -o m.h5 2>/dev/null
vernier show m.h5 --check | grep -E 'BROKEN|identities'
echo "== numbers that are not those that were written, though all of it holds"
cp q.h5 bad.h5
$PYTHON -c "
import h5py
f = h5py.File('bad.h5', 'r+')
f['step.0/logits'][3, 7] *= 1.0001
del f['step.0/layer0/gate_act'].attrs['digest']"
vernier show bad.h5 --check >said
echo "[$?] $(sed -E 's/[0-9a-f]{32}/DIGEST/g' said)"
vernier compare q.h5 bad.h5 -q --limits fp32.yaml
echo "compare, within limits [$?]; vernier show logits:"
vernier show bad.h5 logits 2>&1 >/dev/null | sed -E 's/[0-9a-f]{32}/DIGEST/g'
echo "== in a comparison, where it starts"
cp q.h5 bad.h5
$PYTHON -c "
import h5py
f = h5py.File('bad.h5', 'r+')
f['step.0/layer1/attn_out'][...] = f['step.0/layer1/down_proj'][()]"
vernier compare q.h5 bad.h5 | grep 'alone: '
echo "== in both alike, where nothing diverges"
vernier compare bad.h5 bad.h5 --allow itself | grep -E 'alone: |^verdict +within limits'
echo "[${PIPESTATUS[0]}]"
echo "== the same lines in the same order, however many threads share the layers"
$PYTHON -c "
import h5py
f = h5py.File('bad.h5', 'r+')
for layer in 0, 1:
    f[f'step.0/layer{layer}/q_rope'][...] *= 1.5
    f[f'step.0/layer{layer}/output'][...] += 1"
for threads in 1 2 7; do
	vernier compare bad.h5 bad.h5 --allow itself,digest --threads $threads | grep 'alone: ' >said.$threads
done
cat said.1
cmp said.1 said.2 && cmp said.1 said.7 && echo "the same"
echo "== nothing is said of axes in another order, nor of rows that are not there"
cp q.h5 bad.h5
$PYTHON -c "
import h5py
f = h5py.File('bad.h5', 'r+')
for name in 'q_proj', 'k_proj', 'v_proj', 'q_rope', 'k_rope', 'attn_context':
    x = f['step.0/layer1/' + name]
    y, marks = x[()].transpose(0, 2, 1), dict(x.attrs)
    del f['step.0/layer1/' + name]
    z = f.create_dataset('step.0/layer1/' + name, data=y)
    z.attrs.update(marks)
    z.attrs['axes'] = (' '.join(marks['axes'].decode().split()[i] for i in (0, 2, 1))
                       if isinstance(marks['axes'], bytes) else ' '.join(marks['axes'].split()[i] for i in (0, 2, 1)))
    del z.attrs['digest']"
vernier show bad.h5 --check | tail -n 1
vernier compare bad.h5 bad.h5 --allow itself | grep -E 'alone: |^verdict +within limits'
vernier compare q.h5 bad.h5 | grep -E 'alone: |^verdict +within limits'
vernier show q.h5 --check --weights 2>&1 | sed -n 1p
vernier show nowhere.h5 --check
echo "[$?]"

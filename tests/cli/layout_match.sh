# A wrong tensor may be another tensor or layout: that is recognised, and noise is not recognised as
# anything.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" -o correct.h5 --precision f16 2>/dev/null
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" -o floor.h5 --precision f16 2>/dev/null
told() {
	cp correct.h5 cand.h5
	$PYTHON -c "
import editing as h5py, numpy as np
f = h5py.File('cand.h5', 'r+')
rng = np.random.default_rng(7)
def of(name):
    return f['step.0/' + name]
def put(name, change):
    of(name)[...] = change(of(name)[()])
$1"
	vernier compare ref.h5 cand.h5 --floor floor.h5 --format json 2>/dev/null | $PYTHON -c "
import json, re, sys
for d in json.load(sys.stdin)['divergences']:
    r = d['layout_match']
    print(d['name'] + ':', r and re.sub(r'[0-9.]+e-[0-9]+', 'E', r['words']))"
}
told "put('layer0/q_rope', lambda x: of('layer0/q_proj')[()]); del of('layer0/q_rope').attrs['digest']"
told "put('layer1/attn_residual', lambda x: of('layer1/output')[()]); del of('layer1/attn_residual').attrs['digest']"
told "put('layer0/attn_context', lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(x.shape))"
told "put('layer0/mlp_act', lambda x: np.roll(x, 1, axis=0))"
told "put('layer1/v_proj', lambda x: x[::-1])"
told "put('layer1/q_proj', lambda x: x[:, [1, 0, 2, 5, 4, 3]])"
told "
put('layer1/mlp_norm', lambda x: of('layer1/attn_norm')[()])"
echo "== noise, a factor and zeros are like nothing"
told "put('layer0/q_rope', lambda x: rng.standard_normal(x.shape))"
told "put('layer0/mlp_act', lambda x: 1.1 * x)"
told "put('layer1/k_proj', lambda x: 0 * x)"
told "put('layer1/k_proj', lambda x: x + 0.5 * x.std() * rng.standard_normal(x.shape))"
echo "== columns in turns"
told "put('layer0/mlp_act', lambda x: x.reshape(x.shape[0], 2, -1).swapaxes(1, 2).reshape(x.shape))"
told "put('layer0/q_rope', lambda x: x.reshape(*x.shape[:2], -1, 2).swapaxes(2, 3).reshape(x.shape))"

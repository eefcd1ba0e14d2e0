# A tensor of another shape is a finding whatever its numbers are, and the report says whose they
# are. The proposed name map works.
M=$FIXTURES/llama-trained
cap() {
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --force-ids 7 \
		--points 'layer1.{q_proj,q_rope,attn_context,attn_out,gate_proj}' "$@" 2>/dev/null
}
cap -o ref.h5
cap -o half.h5 --precision f16
cat >edit.py <<'P'
import editing as h5py, numpy as np, shutil, sys
out, name, axes, change = sys.argv[1:5]
shutil.copy('half.h5', out)
f = h5py.File(out, 'r+')
for step in ('step.0', 'step.1'):
    g = f[step + '/layer1']
    H, K, x = 6, 8, g[sys.argv[5] if len(sys.argv) > 5 else name][()]
    T = x.shape[0]
    del g[name]
    d = g.create_dataset(name, data=np.ascontiguousarray(eval(change)))
    if axes:
        d.attrs['axes'] = axes
P
# Prints one line per step, the proposed map, and the comparison with that map.
tell() {
	$PYTHON edit.py x.h5 "$@"
	vernier compare ref.h5 x.h5 | grep '^misshapen' | sed 's/^misshapen *//'
	vernier compare ref.h5 x.h5 -q -o x.json --force
	$PYTHON - "$1" <<'P' || return
import json, re, sys
c = [c for c in json.load(open('x.json'))['checkpoints'] if c['status'] == 'misshapen'][0]
m = re.search(r'axes: ("[^"]*")(, to_axes: "[^"]*")?$', c.get('contents', ''))
if not m:
    sys.exit(1)
open('map.yaml', 'w').write('version: 1\nname: a map\nrules:\n  - { from: "layer{n}.%s", to: "layer{n}.%s", '
                            '%s }\n' % (sys.argv[1], sys.argv[1], m[0]))
P
	vernier compare ref.h5 x.h5 --names map.yaml | tail -1
}
echo "== axes in another order"
tell q_rope '' 'x.transpose(1, 0, 2)'
tell q_rope 'token head dim' 'x.transpose(1, 0, 2)'
tell q_rope '' 'x.transpose(0, 2, 1)'
tell attn_out '' 'x.T'
echo "== merged, taken apart"
tell q_rope '' 'x.reshape(T, H * K)'
tell q_rope 'token (head dim)' 'x.reshape(T, H * K)'
tell q_rope '' 'x.transpose(1, 2, 0).reshape(H * K, T)'
tell attn_out '' 'x.reshape(T, H, K).transpose(1, 0, 2)'
tell q_rope '' 'x.reshape(T, H, 2, K // 2).swapaxes(2, 3)'
tell gate_proj '' 'x.reshape(T, 2, 64).swapaxes(1, 2)'
echo "== axes of one"
tell attn_out '' 'x[None]'
tell attn_out '' 'x[..., None]'
tell q_rope '' 'x.transpose(1, 0, 2)[None]'
echo "== a shape that its numbers do not have"
tell q_rope '' 'x.reshape(T, K, H)'
echo "== another checkpoint's numbers"
tell attn_out 'token head dim' 'x' attn_context
tell q_rope 'token hidden' 'x.reshape(T, H * K)' q_proj
echo "== numbers of no checkpoint"
tell attn_out '' 'x[:, ::-1].T + 1'
echo "== every report"
$PYTHON edit.py x.h5 q_rope '' 'x.transpose(1, 0, 2)'
vernier compare ref.h5 x.h5 -q -o x.json -o x.xml -o x.md -o x.html --force
grep -c "in the .*order .*head token dim" x.json x.xml x.md x.html
vernier show x.h5 --check | grep q_rope
$PYTHON edit.py x.h5 q_rope 'token head dim' 'x.transpose(1, 0, 2)'
vernier show x.h5 --check | grep q_rope

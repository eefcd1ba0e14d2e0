# What two files declare differently and mean alike: rows that only one kept, axes in another order.
M=$FIXTURES/qwen2-trained
cap() { vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --force "$@" 2>/dev/null; }
cap -o all.h5 --points '*'
cap -o half.h5 --points '*' --precision f16
cap -o last.h5 --points '*' --precision f16 --tokens last
cap -o some.h5 --points '*' --precision f16 --tokens 5-11
cap -o few.h5 --points '*' --tokens 9-16
cap -o early.h5 --points '*' --tokens 0-3
say() {
	echo "\$ vernier compare $*"
	vernier compare "$@" 2>&1 | sed 's|/.*/fixtures|FIXTURES|' |
		grep -E '^(note|OUTSIDE|verdict|misshapen .* (embed|logits) |refused|vernier compare|  worst element)' 
	echo "[${PIPESTATUS[0]}]"
}
say all.h5 last.h5
say all.h5 last.h5 --model "$M"
say all.h5 last.h5 --floor half.h5
say few.h5 some.h5 --floor half.h5
say early.h5 last.h5 --points '{embed,logits}'
cap -o theta.ref.h5 --layers 0-0 --tokens 0-0
cap -o theta.h5 --layers 0-0 --tokens 0-0 --inject 'R2.1e4@*'
say theta.ref.h5 theta.h5
echo "== logits of the last token alone, in a run that kept every row of all else"
one() { cp "$1" "$2"; $PYTHON -c "
import editing as h5py, sys
f = h5py.File(sys.argv[1], 'r+')
g = f['step.0']; d = g['logits']; x, a = d[()][-1:], dict(d.attrs); del g['logits']
e = g.create_dataset('logits', data=x * $3)
for k, v in a.items():
    e.attrs[k] = v
e.attrs['digest'] = ''" "$2"; }
replayed() { $PYTHON -c "
import json, sys
c = [c for c in json.load(open(sys.argv[1]))['checkpoints'] if c['point'] == 'logits'][0]
print('logits', c['shape'], c['status'], 'origin' if c['origin'] else 'no origin',
      'within 4 floors' if c['replay']['local_over_floor'] <= 4 else 'beyond 4 floors')" "$1"; }
one half.h5 one.h5 1
one half.h5 twice.h5 1.5
for run in one twice; do
    say all.h5 $run.h5 --model "$M"
    vernier explain all.h5 $run.h5 --model "$M" --format json >$run.json
    replayed $run.json
    vernier explain all.h5 $run.h5 --model "$M" | grep explained
done
swap() { cp "$1" "$2"; $PYTHON -c "
import editing as h5py, numpy as np, sys
f = h5py.File(sys.argv[1], 'r+')
for layer in ('layer0', 'layer1'):
    g = f['step.0/' + layer]
    for name, order in (('attn_context', (1, 0, 2)), ('q_rope', (2, 1, 0)), ('mlp_act', (1, 0))):
        d = g[name]; x, a = d[()], dict(d.attrs); del g[name]
        e = g.create_dataset(name, data=np.ascontiguousarray(x.transpose(order)))
        for k, v in a.items():
            e.attrs[k] = v
        axes = a['axes'].decode().split() if isinstance(a['axes'], bytes) else a['axes'].split()
        e.attrs['axes'] = ' '.join(axes[i] for i in order)
        e.attrs['digest'] = ''
$3" "$2"; }
swap half.h5 swapped.h5
say all.h5 swapped.h5 --model "$M"
say swapped.h5 half.h5 --bitwise
swap last.h5 both.h5
say all.h5 both.h5 --model "$M"
echo "== a fault is found where it is"
swap half.h5 bad.h5 "
d = f['step.0/layer1/attn_context']; x = d[()]; x[3, 15] *= 1.5; d[...] = x"
say all.h5 bad.h5 --model "$M"
echo "== other names, or names that are not the file's, are no other order"
swap half.h5 named.h5 "
f['step.0/layer0/attn_context'].attrs['axes'] = 'head token width'"
say all.h5 named.h5 --points layer0.attn_context
vernier compare all.h5 named.h5 --points layer0.attn_context | grep misshapen

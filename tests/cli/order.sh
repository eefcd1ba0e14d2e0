# Recordings without an execution order: every report takes the order from names, a plan or the
# other side.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --precision f16 -o cand.h5 2>/dev/null
$PYTHON -c "
import editing as h5py, shutil
def change(of, to, do):
    shutil.copy(of, to)
    with h5py.File(to, 'r+') as f:
        do(f)
def every(f, do):
    f['step.0'].visititems(lambda name, d: do(d) if isinstance(d, h5py.Dataset) else None)
def unordered(f):
    del f['plan'], f['model']
    every(f, lambda d: d.attrs.__delitem__('order') if 'order' in d.attrs else None)
def wrong(f):
    for n in ('layer0/q_proj', 'layer0/attn_context', 'layer1/attn_out', 'logits'):
        d = f['step.0/' + n]
        d[...] = d[()] * 1.3
def no_plan(f):
    del f['plan'], f['model']
    # another engine's own order: two products of one input the other way round
    a, b = f['step.0/layer0/q_proj'], f['step.0/layer0/v_proj']
    a.attrs['order'], b.attrs['order'] = b.attrs['order'], a.attrs['order']
def deep(f):  # layer 1 again as layers 2 and 10, of other sizes
    unordered(f)
    for to, times in (('layer2', 2), ('layer10', 4)):
        f.copy('step.0/layer1', 'step.0/' + to)
        def other(name, d):
            d.attrs['layer'] = int(to[5:])
            d[...] = d[()] * times
            del d.attrs['digest']
        f['step.0/' + to].visititems(other)
change('cand.h5', 'wrong.h5', wrong)
change('ref.h5', 'ref.none.h5', unordered)
change('wrong.h5', 'wrong.none.h5', unordered)
change('wrong.h5', 'wrong.own.h5', no_plan)
change('ref.h5', 'deep.h5', deep)
change('cand.h5', 'deep.cand.h5', deep)
def far(f):
    for n in ('layer10/q_proj', 'layer2/attn_context', 'final_norm'):
        d = f['step.0/' + n]
        d[...] = d[()] * 1.3
change('deep.cand.h5', 'deep.wrong.h5', far)
"
say() {
	echo "== $1"
	o=$2
	shift 2
	vernier compare "$@" >text 2>&1
	vernier compare "$@" --force -q -o $o.json -o $o.html
	echo "[$?]"
	grep -E '^(first |note  *order)' text
}
say "both say it" both ref.h5 wrong.h5
say "neither does" neither ref.none.h5 wrong.none.h5
say "the candidate has a plan" cand ref.none.h5 wrong.h5
say "the reference has one" ref ref.h5 wrong.none.h5
say "the candidate says another order, without a plan" own ref.none.h5 wrong.own.h5
say "layers 2 and 10" deep deep.h5 deep.wrong.h5
$PYTHON -c "
import json
names = lambda f: [c['name'] for c in json.load(open(f + '.json'))['checkpoints']]
both = names('both')
for f in ('neither', 'cand', 'ref'):
    print(f, 'as when both say it' if names(f) == both else names(f))
own = names('own')
print('own:', [n for n in own if n in ('layer0.q_proj', 'layer0.k_proj', 'layer0.v_proj', 'layer0.q_rope')])
layers = [int(n[5:].split('.')[0]) for n in names('deep') if n.startswith('layer')]
print('deep:', names('deep')[0], sorted(set(layers), key=layers.index), layers == sorted(layers), names('deep')[-2:])
"
vernier show ref.none.h5 | awk '$2 ~ /[.]q_proj|^embed|^logits/ { print $1, $2 }'

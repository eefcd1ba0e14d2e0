# One engine runs a prompt at once, another in chunks; what one decodes, another reads as a
# prompt: where both end a call at the same tokens, the calls between are one step.
M=$FIXTURES/llama-trained
ids=$(tr -d '\n ' <"$FIXTURES/prompts/p017.ids")
cap() {
	vernier capture ref "$M" \
		--points '{embed,layer*.{q_rope,k_cache,attn_context,attn_scores,attn_out,output},logits}' "$@" >/dev/null 2>&1
}
cap --ids "$ids" -o ref.h5
cap --ids "$ids" --precision f16 -o half.h5
cap --ids "$(echo "$ids" | cut -d, -f1-12)" --force-ids "$(echo "$ids" | cut -d, -f13-)" --precision f16 -o decoded.h5
# The same run in calls of so many tokens each.
cat >chunk.py <<'P'
import editing as h5py, shutil, sys
come, go, calls = sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split('+')]
shutil.copy(come, go)
f = h5py.File(go, 'r+')
f.move('step.0', 'step.99')
def copy(name, d):
    if isinstance(d, h5py.Dataset):
        axes = d.attrs['axes'].decode() if isinstance(d.attrs['axes'], bytes) else d.attrs['axes']
        at = tuple(slice(p, p + n) if w == 'token' else slice(0, p + n) if w == 'key' else slice(None)
                   for w in axes.split())
        e = g.create_dataset(name, data=d[at])
        for k in ('order', 'layer', 'point', 'op', 'basis', 'axes'):
            e.attrs[k] = d.attrs[k]
p = 0
for i, n in enumerate(calls):
    g = f.create_group('step.%d' % i)
    g.attrs['position'], g.attrs['tokens'] = p, n
    f['step.99'].visititems(copy)
    p += n
del f['step.99']
exec(sys.argv[4] if len(sys.argv) > 4 else '')
P
chunk() { $PYTHON chunk.py "$@"; }
say() {
	say_lines '^(note *calls|note *[1-9]|first|rule|finding|profile|refused|verdict|vernier compare|missing)' \
		compare "$@"
}
chunk half.h5 a.h5 10+7
chunk half.h5 b.h5 8+9
chunk ref.h5 refa.h5 10+7
say ref.h5 a.h5
some='{embed,layer*.{q_rope,k_cache,attn_context,attn_out,output},logits}'
say ref.h5 a.h5 --points "$some"
say ref.h5 a.h5 --points "$some" --model "$M" --replay
say half.h5 a.h5 --points "$some" --bitwise
chunk half.h5 bad.h5 10+7 "
d = f['step.1/layer1/attn_out']; x = d[()]; x[3] *= 1.5; d[...] = x"
echo "== the reference in chunks, both in chunks, the same chunks"
say refa.h5 b.h5 --points "$some" --floor half.h5 --allow floor
say ref.h5 bad.h5 --points "$some" --floor a.h5
say refa.h5 b.h5 --points "$some" --model "$M"
say refa.h5 a.h5
echo "== one side reads the tokens that the other decodes"
say ref.h5 decoded.h5 --points "$some" --model "$M" --replay
say a.h5 decoded.h5 --points "$some" --bitwise
cap --ids "$(echo "$ids" | cut -d, -f1-12)" --force-ids "$(echo "$ids" | cut -d, -f13-)" --precision f16 \
	--inject A3.chunk@layer1.attn_context -o forgets.h5
say ref.h5 forgets.h5 --points "$some" --model "$M"
echo "== scores of the last token of each call alone"
chunk half.h5 last.h5 10+7 "
for s in ('step.0', 'step.1'):
    x, k = f[s]['logits'][-1:], dict(f[s]['logits'].attrs); del f[s]['logits']
    d = f[s].create_dataset('logits', data=x)
    for n, v in k.items(): d.attrs[n] = v"
say ref.h5 last.h5 --points "$some"
echo "== a fault in the second chunk is where it is"
say ref.h5 bad.h5 --points "$some"
echo "== a chunk that is lost, one that lacks a tensor, one of other tokens"
chunk half.h5 lost.h5 10+3+4 "del f['step.1']"
say ref.h5 lost.h5 --points "$some"
chunk half.h5 less.h5 10+7 "del f['step.0/layer1/attn_out']"
say ref.h5 less.h5 --points "$some"
chunk half.h5 other.h5 10+7 "f['run/token_ids'][12] += 1; del f['run/token_ids'].attrs['digest']"
say ref.h5 other.h5 --points "$some"
echo "== tokens of later calls in the slots of others, where the calls were joined"
short="$(echo "$ids" | cut -d, -f1-16)"
vernier capture ref "$M" --ids "$short" --points 'layer0.*' -o once.h5 >/dev/null 2>&1
chunk once.h5 twice.h5 8+8
for fault in C1.late C1.early R3b.double; do
	vernier capture ref "$M" --like twice.h5 --inject "$fault@layer0*" --force -o moved.h5 >/dev/null 2>&1
	vernier explain once.h5 moved.h5 --model "$M" | grep -E '^explained|^next'
	vernier explain twice.h5 moved.h5 --model "$M" | grep -E '^explained|^next'
done

# Nodes of a GPU run on the reference, or in a precision of their own: by option, by environment;
# what the recording says of it.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
M=$FIXTURES/qwen2-trained
digests() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
def visit(name, d):
    if isinstance(d, h5py.Dataset) and name.startswith('step.'): print(name, d.attrs['order'], d.attrs['digest'])
f.visititems(visit)" "$1" | sort; }
same() { [ "$(digests a.h5)" = "$(digests b.h5)" ] && echo "the same: $1" || echo "OTHER: $1"; }
said() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
print(*(f'{k}={f[\"run\"].attrs[k]}' for k in ('engine', 'precision', 'force_ref', 'forced_nodes', 'precision_of')
        if k in f['run'].attrs),
      *(f'{n}:{f[\"step.0\"][n].dtype}' for n in sys.argv[2:]))" "$@"; }
run() {
	vernier capture "$@" --ids "@$FIXTURES/prompts/p017.ids" --force-ids 5,6 --points '*' --force 2>err || cat err
}
run ref "$M" -o a.h5 --precision f16
run gpu "$M" -o b.h5 --force-ref '*'
same "everything on the reference, the reference"
said b.h5
VERNIER_FORCE_REF='layer{0,1}.{q,k}_rope,logits' run gpu "$M" -o a.h5 --validate --guard
said a.h5
run gpu "$M" -o b.h5 --force-ref 'layer{0,1}.{q,k}_rope' --force-ref logits --kv paged
same "by environment, and by option with a paged cache"
VERNIER_FORCE_REF=logits run ref "$M" -o a.h5 --precision f16
said a.h5
run gpu "$M" -o a.h5 --precision 'f32@layer0.*' --precision f16 --precision f16-acc16@layer0.q_proj
said a.h5 layer0/q_proj layer0/k_proj layer1/k_proj
echo "== refused"
run gpu "$M" -o c.h5 --force-ref 'layer0.*' --force-ref layer7.q_proj
VERNIER_FORCE_REF=logits,nosuch run gpu "$M" -o c.h5
run ref "$M" -o c.h5 --force-ref logits
run gpu "$M" -o c.h5 --precision f32@nosuch
run gpu "$M" -o c.h5 --precision f8@logits
run gpu "$M" -o c.h5 --precision f16 --precision f32
run gpu "$M" -o c.h5 --precision f64@logits
[ ! -e c.h5 ] && echo "nothing was written"
echo "== --prompts keeps what the same engine recorded, and nothing else"
printf 'one two\nthree\n' >prompts.txt
for forced in "" "" "layer0.q_rope"; do
	VERNIER_FORCE_REF=$forced vernier capture gpu "$FIXTURES/qwen2-trained" --prompts prompts.txt -o kept 2>&1 |
		tail -n 1
done

# The precision that an import claims comes from the numbers, not from the container.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" -o ref.h5 2>/dev/null
for p in bf16 f16 f64; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --precision $p -o $p.h5 2>/dev/null
done
# dump FILE FROM CODE: the tensors of FROM.h5 as they are stored in .npz, after CODE
dump() { $PYTHON -c "
import h5py, numpy as np, sys
a, f = {}, h5py.File(sys.argv[2] + '.h5')
f['step.0'].visititems(lambda n, d: a.__setitem__(n.replace('/', '.'), (d[()].view('u2').astype('u4') << 16).view('f4')
                       if d.dtype.kind in 'uV' or d.dtype == 'i2' else d[()]) if isinstance(d, h5py.Dataset) else None)
exec(sys.argv[3])
np.savez(sys.argv[1], **a)" "$@"; }
# judge NAME [OPTION]...
judge() {
	echo "== $1"
	vernier import $1.npz --model "$M" --ids "@$FIXTURES/prompts/p017.ids" -o $1-i.h5 --force "${@:2}" 2>&1
	vernier show $1-i.h5 | grep '^  precision'
	vernier compare ref.h5 $1-i.h5 --model "$M" --allow missing >out 2>&1
	s=$?
	grep -E '^(warning|refused|verdict)|^note.*nobody declared' out
	echo "[$s]"
}
dump wide bf16 "a = {n: x.astype('f4') for n, x in a.items()}"
judge wide
dump half f16 "a = {n: x.astype('f8') for n, x in a.items()}"
judge half
dump single ref "a = {n: x.astype('f8') for n, x in a.items()}"
judge single
# A table of embeddings in 16 bits does not make a float32 run narrow, nor float32 logits a bfloat16
# run wide.
dump table ref "a = {n: x if n != 'embed' else x.astype('f2').astype('f4') for n, x in a.items()}"
judge table
dump logits bf16 "a = {n: x.astype('f4') for n, x in a.items()}; a['logits'] *= np.float32(1.0000001)"
judge logits
dump hidden bf16 "a = {n: x.astype('f4') for n, x in a.items() if n.endswith('output')}"
judge hidden
# The last product alone in float32: of a few hidden states and logits, and of logits alone.
dump few bf16 "a = {n: a[n].astype('f4') for n in ('layer0.output', 'logits')}
a['logits'] *= np.float32(1.0000001)"
judge few
dump one ref "a = {n: a[n] for n in ('layer0.output', 'layer1.output', 'logits')}
a['layer0.output'] = a['layer0.output'].astype('f2').astype('f4')"
judge one
dump last bf16 "a = {'logits': a['logits'].astype('f4') * np.float32(1.0000001)}"
judge last
judge last --precision bf16
echo '== a claim that the numbers contradict'
judge wide --precision f32
judge single --precision bf16
echo '== no such precision'
vernier import wide.npz --model "$M" --ids "@$FIXTURES/prompts/p017.ids" -o x.h5 --precision int4

# A file's claims about itself are checked against its content, and content that is never read is
# reported.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --precision f16 -o f16.h5 2>/dev/null
make() { cp "$2" "$1.h5"; $PYTHON -c "
import h5py, numpy as np, sys
f = h5py.File(sys.argv[1], 'r+')
run, step = f['run'], f['step.0']
def wide(name, d):
    if isinstance(d, h5py.Dataset) and d.dtype == 'f2':
        a = d[()].astype('f4'), d.attrs.get('axes')
        del step[name]
        step.create_dataset(name, data=a[0]).attrs['axes'] = a[1]
names = []
step.visit(names.append)
exec(sys.argv[2])" "$1.h5" "$3"; }
say() {
	echo "== $1"
	shift
	vernier compare "$@" >out 2>&1
	s=$?
	grep -E '^(warning|note *allowed|misshapen|refused|vernier)' out | grep -v 'alone: '
	echo "[$s]"
}
make copy ref.h5 "run.attrs['engine'] = 'gpu'; run.attrs['precision'] = 'f16'"
say "a copy of the reference that claims f16" ref.h5 copy.h5
say "and is allowed to" ref.h5 copy.h5 --allow claims
make wide f16.h5 "
for n in names: wide(n, step[n])
run.attrs['precision'] = 'float16'"
say "f16 written out as float32" ref.h5 wide.h5 --points "layer*.mlp_norm"
G=$FIXTURES/qwen3_5_text-trained
vernier capture ref "$G" --ids "@$FIXTURES/prompts/p017.ids" -o gdn-ref.h5 2>/dev/null
vernier capture ref "$G" --ids "@$FIXTURES/prompts/p017.ids" --precision bf16 --points 'layer*.gdn_{q,k,g,state}' \
	-o gdn.h5 2>/dev/null
say "only what is float32 in every bf16 engine" gdn-ref.h5 gdn.h5 --model "$G" --allow missing
make coarse f16.h5 "run.attrs['precision'] = 'f32'"
say "a reference that claims f32 and ran in f16" coarse.h5 f16.h5
say "a floor that claims f16 and is f32" ref.h5 f16.h5 --floor copy.h5
for side in ref f16; do
	make twice-$side $side.h5 "step['layer1/mlp_norm'].attrs['axes'] = 'token token'"
	make few-$side $side.h5 "step['layer1/q_rope'].attrs['axes'] = 'token head'"
done
say "axes that are one twice, in both" twice-ref.h5 twice-f16.h5
say "fewer axes than there are, in both" few-ref.h5 few-f16.h5
make notes f16.h5 "
f['notes/of/mine'] = np.arange(3)
run['timings'] = np.arange(3)"
say "what nobody reads" ref.h5 notes.h5
vernier show notes.h5 | grep -A1 'not read'

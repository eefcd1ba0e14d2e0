# int32: block tables are what they are; points are of real numbers; another name's zeros are
# compared with nothing.
M=$FIXTURES/qwen2-trained
for p in f32 f16; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" --points '{embed,layer1.q_proj}' --precision $p \
		-o $p.h5 2>/dev/null
done
with() {
	for p in f32 f16; do
		cp $p.h5 $p.x.h5
		"${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
s = h5py.File('$p.x.h5', 'r+')['step.0']
$1"
	done
	echo "\$ $1"
	vernier compare f32.x.h5 f16.x.h5 >said 2>&1
	s=$?
	grep -E '^(refused|verdict|vernier compare|rule|misshapen|outside)' said
	grep -o 'one number everywhere on both sides[^;]*' said | head -1
	echo "[$s]"
}
zeros="s.create_dataset('NAME', data=np.zeros((17, 32), 'i4'))"
with "${zeros/NAME/block_table}"
with "${zeros/NAME/layer1/slot_mapping}"
with "${zeros/NAME/layer1/hidden}"
with "s.create_dataset('layer1/hidden', data=np.arange(17 * 32, dtype='i4').reshape(17, 32))"
with "del s['layer1/q_proj']; ${zeros/NAME/layer1/q_proj}"
with "d = s['layer1/q_proj']; x, a = d[()], dict(d.attrs); del s['layer1/q_proj']; a.pop('digest')
s.create_dataset('layer1/q_proj', data=np.round(x).astype('i4')).attrs.update(a)"

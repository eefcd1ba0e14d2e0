# A tensor that is missing between layers that have it is a warning, for a fault may have lost it; a
# choice of layers is none.
vernier synth tiny --layers 6 --dtype f32 -o m 2>/dev/null
ids='--ids 5,9,2,7,1,8,3'
vernier capture ref m $ids -o all.h5 2>/dev/null
cat >lose.py <<'P'
import editing as h5py, shutil, sys
shutil.copy(sys.argv[1], sys.argv[2])
f = h5py.File(sys.argv[2], 'r+')
for name in sys.argv[3:]:
    del f['step.0/' + name]
P
said() { vernier compare "$@" | grep -E '^(warning|verdict)'; }
$PYTHON lose.py all.h5 lost.h5 layer3/q_rope
said all.h5 lost.h5 --allow missing
said lost.h5 lost.h5 --allow itself
said all.h5 lost.h5 --allow missing --points '*.k_rope'
said all.h5 lost.h5 # it fails as missing
$PYTHON lose.py all.h5 more.h5 layer3/q_rope layer1/up_proj layer4/up_proj layer5/k_rope layer2
said all.h5 more.h5 --allow missing
for n in 0,1 0,2,4 0,5; do
	vernier capture ref m $ids --points "layer{$n}.*proj" -o few.h5 --force 2>/dev/null
	said all.h5 few.h5 --allow missing
done

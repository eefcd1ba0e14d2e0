# vernier show --values writes a tensor as text and as .npy; vernier import reads what it wrote.
M=$FIXTURES/qwen2-trained
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids 3,1,4,1,5 --points 'layer0.q_rope' --points 'layer0.attn_scores' \
	--points layer0.attn_norm -o f32.h5
q vernier capture ref "$M" --ids 3,1,4,1,5 --precision bf16 --points layer0.q_rope -o bf16.h5
q vernier capture ref "$M" --ids 3,1,4,1,5 --precision f16 --points layer0.q_rope -o f16.h5
mkdir text
say show f32.h5 layer0.q_rope --values text/layer0.q_rope.txt
head -n 3 text/layer0.q_rope.txt | cut -c 1-60
say show f32.h5 layer0.attn_norm --values text/layer0.attn_norm.npy
say show f32.h5 layer0.attn_scores --values text/layer0.attn_scores.txt
sed -n '3,4p' text/layer0.attn_scores.txt
say show f32.h5 layer0.q_rope --values q.csv
for p in bf16 f16; do
	vernier show $p.h5 layer0.q_rope --values $p.npy
	vernier show $p.h5 layer0.q_rope --values $p.txt
done

echo "== as numpy reads them"
$PYTHON - <<'PY'
import h5py, numpy as np
q = h5py.File("f32.h5")["step.0/layer0/q_rope"][...]
flat = q.reshape(-1, q.shape[-1])
print("txt", np.array_equal(np.loadtxt("text/layer0.q_rope.txt", dtype=np.float32), flat), "csv",
      np.array_equal(np.loadtxt("q.csv", dtype=np.float32, delimiter=","), flat))
n = np.load("text/layer0.attn_norm.npy")
print("npy", n.dtype, n.shape, np.array_equal(n, h5py.File("f32.h5")["step.0/layer0/attn_norm"][...]))
for p in "bf16", "f16":
    n = np.load(p + ".npy")
    print(p, n.dtype,
          np.array_equal(np.loadtxt(p + ".txt", dtype=np.float32), n.astype(np.float32).reshape(-1, n.shape[-1])))
PY

echo "== and as the import does"
say import text -o again.h5 --ids 3,1,4,1,5 --engine text --precision f32
vernier compare f32.h5 again.h5 --bitwise | tail -n 1

echo "== the form of savetxt: a row a line, no comment"
mkdir plain; echo 'notes of a person' >plain/notes.txt
grep -v '^#' text/layer0.attn_norm.txt 2>/dev/null || $PYTHON -c "
import numpy as np
np.savetxt('plain/layer0.attn_norm.txt', np.load('text/layer0.attn_norm.npy'))"
vernier import plain -o plain.h5 --ids 3,1,4,1,5 --engine text
vernier compare f32.h5 plain.h5 --bitwise --points layer0.attn_norm | tail -n 1

echo "== refused"
say show f32.h5 layer0.q_rope --values q.csv
say show f32.h5 layer0.q_rope --values q.dat
say show f32.h5 --values q.txt
say show f32.h5 layer0.q_rope --values q.txt --format json
say show f32.h5 layer9.q_rope --values q.txt
ls
bad() { mkdir bad; printf "$1" >bad/layer0.q.txt; vernier import bad -o bad.h5 --ids 1 2>&1; echo "[$?]"; rm -rf bad; }
bad ''
bad '# only words\n'
bad '1 2 3\n4 5\n'
bad '1 2 x3\n'
bad '1 0x10\n'
bad '1 \0332J\n'
bad '1 2\000 3\n'
bad '# dtype f32 shape 2 2\n1 2 3\n'
bad '# dtype f32 shape 4294967296 4294967296\n1\n'
bad '# dtype f32 shape 2147483647 2147483647 2147483647\n1\n'
bad '# dtype q4_0 shape 1\n1\n'
bad '# dtype f32 shape 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n1\n'
bad '# dtype f32 lengths 1\n1\n'
bad '1 1111111111111111111111111111111111111111111111111111111111111111111111111111111\n'
echo "== a pipe is no tensor, and is not waited for"
mkdir bad; mkfifo bad/q.txt
vernier import bad -o bad.h5 --ids 1; echo "[$?]"
echo "== numbers that contradict their digest are no file"
$PYTHON -c "
import h5py
d = h5py.File('f16.h5', 'r+')['step.0/layer0/q_rope']
d[0, 0, 0] += 1"
say show f16.h5 layer0.q_rope --values damaged.txt
echo damaged*
echo "== the tokens"
say show f32.h5 token_ids --values ids.txt
cat ids.txt
say show f32.h5 positions --values positions.npy
$PYTHON -c "
import h5py, numpy as np
print((np.load('positions.npy') == h5py.File('f32.h5')['run/positions'][()]).all())"

echo "== a comment may follow the numbers of a row"
mkdir notes; printf '1 2 # a\n3 4 # b\n' >notes/layer0.output.txt
vernier import notes -o notes.h5 --ids 1,2 --engine text
vernier show notes.h5 layer0.output | tail -n 2

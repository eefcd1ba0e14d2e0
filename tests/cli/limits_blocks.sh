# The same weights in blocks of 8 and of 4 bits: limits of their own, which a correct file passes
# and a fault breaks.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p070.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" --ids "$ids" -o q8.h5
q vernier capture ref "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" --ids "$ids" -o q8-half.h5 --precision f16
say() { echo "\$ compare $*"; vernier compare "$@" >said 2>&1; s=$?
	sed -nE 's|^limits .*/([a-z0-9_-]+.yaml)|  \1|p' said; tail -n 1 said; echo "[$s]"; }
damage() { cp $1 bad.h5; $PYTHON -c "
import editing as h5py, numpy as np, sys
d = h5py.File('bad.h5', 'r+')['step.0/' + sys.argv[1].replace('.', '/')]
x = d[()].astype(np.float64)
exec(sys.argv[2])
d[...] = x" "$2" "$3"; }
echo "== Q8_0 against float"
say ref.h5 q8.h5
say ref.h5 q8.h5 --allow weights
say ref.h5 q8-half.h5 --allow weights
say ref.h5 q8-half.h5 --allow weights --model "$M"
damage q8.h5 layer1.v_proj 'x[:, 1] *= 1.2' && say ref.h5 bad.h5 --allow weights
damage q8.h5 layer0.q_rope 'x[1:] = x[1:, :, [4, 5, 6, 7, 0, 1, 2, 3]]' && say ref.h5 bad.h5 --allow weights
echo "== a table judges by the same limits"
for f in q8.h5 bad.h5; do
	vernier table ref.h5 $f --allow weights >table 2>/dev/null; t=$?
	vernier compare ref.h5 $f --allow weights >/dev/null 2>&1; echo "table [$t], compare [$?]"
done
echo "== two runs of one file have the limits of their precision"
say q8.h5 q8-half.h5
say q8.h5 q8-half.h5 --allow weights
echo "== Gated DeltaNet has its own"
q vernier capture ref "$FIXTURES/gguf/qwen35-tiny.f32.gguf" --ids 3,1,4,1,5,9,2,6 -o gdn.h5
q vernier capture ref "$FIXTURES/gguf/qwen35-tiny.q8_0.gguf" --ids 3,1,4,1,5,9,2,6 -o gdn-q8.h5
vernier compare gdn.h5 gdn-q8.h5 --allow weights | sed -nE 's|^limits .*/([a-z0-9_-]+.yaml)|  \1|p'
echo "== Q4_K against what is nearer to float"
q vernier capture ref "$FIXTURES/gguf/qwen2-wide.mixed.gguf" --ids 3,1,4,1,5,9,2,6 -o mixed.h5
q vernier capture ref "$FIXTURES/gguf/qwen2-wide.q4_k_m.gguf" --ids 3,1,4,1,5,9,2,6 -o q4.h5
say mixed.h5 q4.h5 --allow weights
damage q4.h5 layer0.q_proj 'x[:] = x[:, ::-1]' && say mixed.h5 bad.h5 --allow weights
echo "== both files are in order"
for f in q8_0 q8_0-gdn q6_k q5_k q4_k; do
	vernier limits $f.yaml --recording ref.h5 | sed -nE '1s|.*/||p; /warning/p'
done

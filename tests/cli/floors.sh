# A floor measures the precision: a wrong reference or a false floor excuses no candidate.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
run() { vernier capture ref "$M" --ids "$ids" "$@" >/dev/null 2>&1 || echo failed; }
say() { say_lines '^(refused|warning|verdict|vernier compare|rule|note)' compare "$@" |
	sed -E 's/digest is [0-9a-f]+, the file records [0-9a-f]+/digest differs/'; }
change() { cp "$1" "$2" && "${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('$2', 'r+')
d = f['step.0/${4:-layer1/q_proj}']
x = d[...]
$3"; }
run -o ref.h5
run -o cand.h5 --precision f16
run -o floor.h5 --precision f16
say ref.h5 cand.h5 --floor floor.h5

echo "== a reference that is wrong is as far from its floor as from the candidate"
change ref.h5 negated.h5 "d[...] = -x"
change ref.h5 late.h5 "d[...] = np.roll(x, 1, 0)"
for r in negated.h5 late.h5; do
	say $r cand.h5 --floor floor.h5
	say $r cand.h5 --model "$M"
done
say negated.h5 cand.h5 --model "$M" --allow floor
echo "== by less than a limit without a floor would see"
change ref.h5 noise.h5 "d[...] = x * (1 + 0.01 * np.random.default_rng(0).standard_normal(x.shape))"
say noise.h5 cand.h5 --model "$M"
echo "== both of one precision"
change cand.h5 wrong.h5 "d[...] = -x"
say wrong.h5 cand.h5 --model "$M"
say ref.h5 ref.h5 --allow itself --model "$M"

echo "== a floor that is not valid"
change cand.h5 bad.h5 "d[...] = x * np.float16(1.05)"
say ref.h5 bad.h5 --floor bad.h5
change floor.h5 huge.h5 "x[0] = 1e4; d[...] = x"
say ref.h5 bad.h5 --floor huge.h5
run -o faulty.h5 --precision f16 --inject R1@layer1
run -o faulty.floor.h5 --precision f16 --inject R1@layer1.q_rope
say ref.h5 faulty.h5 --floor faulty.floor.h5
say ref.h5 faulty.h5 --floor faulty.floor.h5 --allow floor
change floor.h5 silent.h5 "del f['model'], f['plan']"
say ref.h5 cand.h5 --floor silent.h5
change cand.h5 other.h5 "f['run'].attrs['engine'] = 'other'"
change bad.h5 bad.other.h5 "f['run'].attrs['engine'] = 'other'"
say ref.h5 bad.other.h5 --floor other.h5

echo "== a reference of the candidate's own 16 bits: the floor is the difference of two runs, not of a run from itself"
run -o flip.h5 --precision f16
flip() { cp "$1" "$2" && "${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('$2', 'r+')
f['run'].attrs['engine'] = 'other'
for d in (f['step.0/layer0/attn_context'], f['step.0/layer1/mlp_act'], f['step.0/logits']):
    x = d[...]
    x.flat[7] = np.nextafter(x.flat[7], np.float16(9))
    d[...] = x"; }
flip cand.h5 flip.h5
loud() { say "$@"; vernier compare "$@" | grep -E '^(floor|cleared|OUTSIDE)'; }
loud cand.h5 flip.h5 --model "$M"
loud cand.h5 flip.h5 --floor floor.h5
loud cand.h5 flip.h5 --floor cand.h5
loud flip.h5 cand.h5 --model "$M"
change cand.h5 bent.h5 "d[...] = x * np.float16(1.02)"
loud cand.h5 bent.h5 --model "$M"

echo "== a floor larger than those around it excuses nothing: a failure without it stays one"
both() {
	say "$@" --floor floor.h5 | grep -E '^(verdict|\[)'
	vernier compare "$@" >/dev/null 2>&1
	echo "without [$?]"
}
edit() { cp ref.h5 "$1" && "${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('$1', 'r+')
d = f['step.0/$2']
x = d[...]
g = np.random.default_rng(0).standard_normal(x.shape)
$3
d[...] = x"; both "$1" cand.h5; }
edit context.h5 layer1/attn_context "x += 0.2 * x.std() * g"
edit swapped.h5 layer1/k_rope "x[[0, 1]] = x[[1, 0]]"
edit scores.h5 logits "x += 0.1 * x.std() * g"
edit element.h5 layer1/q_proj "x.flat[np.argsort(np.abs(x).flat)[x.size // 2]] *= -1"

echo "== correct runs in bfloat16 without a floor: few rows, one token over and over, a recurrence"
correct() { M=$FIXTURES/$1-trained; ids=$2; run -o a.h5 --force --points '*'; run -o b.h5 --force --points '*' \
	--precision bf16
	vernier compare a.h5 b.h5 | sed -n 's/^verdict *//p; s/^limits *\([^ ]*\/\)*//p' | sed "s/^/$1: /"; }
correct qwen3 5,9,300,7,7,7,2,441,13,99,100,101,102,250,260,270,280,290,301
correct qwen3_5_text 1,1,1,1,1,1,1,1
correct mistral 1,1,1,1,1,1,1,1

echo "== a reference that is 1 % off is as far from its model as rounding is, and no floor excuses it"
M=$FIXTURES/qwen2-trained; ids=@$FIXTURES/prompts/p070.ids
run -o a.h5 --force; run -o b.h5 --force --precision bf16
change a.h5 off.h5 "d[...] = x * np.float32(1.01)" layer1/attn_norm
say off.h5 b.h5 --model "$M"
run -o c.h5 --precision f16
change c.h5 off16.h5 "d[...] = x * np.float16(1.1)" layer1/down_proj
say off16.h5 b.h5 --model "$M"

echo "== a long reference is asked in some of its tokens, and whole where one of these is wrong"
ids=@$FIXTURES/prompts/p200.ids
run -o a.h5 --force; run -o b.h5 --force --precision f16
say a.h5 b.h5 --model "$M"
change a.h5 token.h5 "x[101] = x[100]; d[...] = x" layer1/attn_out
say token.h5 b.h5 --model "$M"
change a.h5 bent.h5 "x[101] *= np.float32(1.02); d[...] = x" layer0/mlp_norm
say bent.h5 b.h5 --model "$M"
change a.h5 channel.h5 "x[:, 5] *= np.float32(1.1); d[...] = x" layer1/mlp_act
say channel.h5 b.h5 --model "$M"
change a.h5 keys.h5 "x[150:] = x[149:-1]; d[...] = x" layer1/k_rope
say keys.h5 b.h5 --model "$M"

# Name maps with one thing wrong, and maps that do not fit: file, line, column, status 2.
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7,8 --points '*' -o ref.h5 2>/dev/null
try() {
	printf '%b' "$1" >x.yaml
	echo "== $1"
	vernier compare ref.h5 ref.h5 --allow itself --names x.yaml >said 2>&1
	s=$?
	grep -v -e '^$' said | sed '3,$!b;$!d'
	echo "[$s]"
}
R='version: 1\nrules:\n'
try ''
try 'version: 2\n'
try 'version: 1\n'
try 'version: 1\nrules: 3\n'
try 'version: 1\nversion: 1\n'
try 'version: 1\nmaps: []\n'
try "$R"'  - { from: a }\n'
try "$R"'  - { to: a }\n'
try "$R"'  - { from: a, to: "b*" }\n'
try "$R"'  - { from: a, to: "layer{n}.q_proj" }\n'
try "$R"'  - { from: "a{n}{n}", to: b }\n'
try "$R"'  - { from: "a{b", to: b }\n'
try "$R"'  - { from: a, to: b, to: c }\n'
try "$R"'  - { from: a, to: b, ignore: true }\n'
try "$R"'  - { from: a, to: b, ignore: perhaps }\n'
try "$R"'  - { from: a, to: b, shape: [1] }\n'
try "$R"'  - { from: a, to: b, axes: "token (head dim" }\n'
try "$R"'  - { from: a, to: b, axes: "token token" }\n'
try "$R"'  - { from: a, to: b, axes: "token h%%d" }\n'
try "$R"'  - { from: a, parts: [b, c], axes: "token qkv" }\n'
try "$R"'  - { from: a, parts: [b, c], along: x, axes: "token qkv" }\n'
try "$R"'  - { from: a, parts: [b], along: qkv, axes: "token qkv" }\n'
try "$R"'  - { from: a, either: [{ to: b }] }\n'
try "$R"'  - { from: a, either: [{ to: b }, { too: c }] }\n'
try "$R"'  - { from: a, to: b }\n  - { from: a, to: c }\n'
try "$R"'  - { from: &x a, to: b }\n'
try "$R"'  - { from: "a{n-1}", to: "layer{n}.q_proj" }\n'
try "$R"'  - { from: "a{n}", to: "layer{n-}.q_proj" }\n'
try "$R"'  - { from: "a{n}", to: "layer{n--1}.q_proj" }\n'
try "$R"'  - { from: "a{n}", to: "layer{n+10000}.q_proj" }\n'
try "$R"'  - { from: "a{n}", to: "layer{n-1}.{n}" }\n'
try "$R"'  - { from: "a", to: "layer{n-1}.q_proj" }\n'
echo "== two tensors that become one"
try "$R"'  - { from: "layer{n}.{q,k}_rope", to: "layer{n}.q_rope" }\n'
try "$R"'  - { from: "layer{n}.q_rope", to: "layer{n}.q_proj" }\n'
echo "== nothing that it is about, parts that do not add up, terms of other shapes"
try "$R"'  - { from: "model.*", to: b }\n'
try "$R"'  - { from: "layer{n}.q_proj", parts: ["layer{n}.a", "layer{n}.b"], along: x, axes: "token x dim" }\n'
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7,8 --points 'layer*.{gate_proj,mlp_act,attn_norm}' \
	-o few.h5 2>/dev/null
fit() {
	printf '%b' "$1" >x.yaml
	echo "== $1"
	vernier compare ref.h5 few.h5 --names x.yaml --points "$2" >said 2>&1
	s=$?
	grep -v -e '^$' said | sed '3,$!b;$!d'
	echo "[$s]"
}
fit "$R"'  - { from: "layer{n}.gate_proj", parts: ["layer{n}.up_proj", "layer{n}.attn_out"], along: x, '\
'axes: "token x" }\n' 'layer*'
fit "$R"'  - { from: "layer{n}.attn_norm", plus: ["layer{n}.gate_proj"], to: "layer{n}.output" }\n' 'layer*'
fit "$R"'  - { from: "layer{n}.gate_proj", to: "layer{n}.q_proj", axes: "token (head dim)" }\n' 'layer0.q_proj'
fit "$R"'  - { from: "layer{n}.gate_proj", to: "layer{n}.up_proj", axes: "token (ffn 2)" }\n' 'layer0.up_proj'
vernier compare ref.h5 ref.h5 --allow itself --names nowhere 2>&1
echo "== a fallback that is not needed, a sum of two, axes regrouped there and back"
try "$R"'  - { from: "layer{n}.attn_norm", to: "layer{n}.q_norm", fallback: true }\n'
fit "$R"'  - { from: "layer{n}.gate_proj", plus: ["layer{n}.mlp_act"], to: "layer{n}.up_proj" }\n' 'layer0.up_proj'
fit "$R"'  - { from: "layer{n}.mlp_act", axes: "token (4 rest)", to_axes: "token (rest 4)", '\
'to: "layer{n}.up_proj" }\n' 'layer0.up_proj'
echo "== a map that only leaves out: one tensor of the engine's own"
cp ref.h5 dbg.h5; $PYTHON -c "
import h5py
f = h5py.File('dbg.h5', 'r+')
f['step.0'].create_dataset('dbg', data=f['step.0/embed'][...])"
printf 'version: 1\nname: no debugging\nrules:\n  - { from: "dbg*", ignore: true }\n' >dbg.yaml
vernier compare ref.h5 dbg.h5 | tail -n 1
vernier compare ref.h5 dbg.h5 --names dbg.yaml | grep -E '^(verdict|note  *candidate)'
$PYTHON -c "
import h5py
f = h5py.File('dbg.h5', 'r+')
f['run'].attrs['precision'] = 'F32'"
vernier compare ref.h5 dbg.h5 --names dbg.yaml | grep -E '^(verdict|limits)'
echo "== zeros before a number, layers that are not counted from 0"
$PYTHON - <<'P'
import h5py, numpy as np, os
s = h5py.File("ref.h5")["step.0"]
os.makedirs("own")
put = lambda name, a: np.save(f"own/{name}.npy", a)
put("hidden.0", s["embed"][...])
for n in (0, 1):
    a = lambda p: s[f"layer{n}/{p}"][...]
    put(f"h.{n:02}.q", a("q_rope"))
    put(f"block_{n + 1:02}_norm", a("attn_norm"))
    put(f"hidden.{n + 1}", a("output"))
    put(f"half.{n + 9:02}.a", a("mlp_norm") / 2)
    put(f"half.{n + 9:02}.b", a("mlp_norm") / 2)
    put(f"kv.{n + 1}", np.concatenate([a(p).reshape(4, -1) for p in ("k_proj", "v_proj")], 1))
put("rope.0", s["layer1/k_rope"][...])
put("stack", np.stack([s["embed"][...], s["layer0/input"][...], s["layer1/input"][...]]))
P
cat >own.yaml <<'Y'
version: 1
rules:
  - { from: "h.{n}.q", to: "layer{n}.q_rope" }
  - { from: "block_{n}_norm", to: "layer{n-1}.attn_norm" }
  - { from: "hidden.{n}", to: "layer{n-1}.output" }
  - { from: "hidden.*", to: "embed" }
  - { from: "rope.{n}", to: "layer{n+1}.k_rope" }
  - { from: "half.{n}.a", plus: ["half.{n}.b"], to: "layer{n-9}.mlp_norm" }
  - { from: "kv.{n}", parts: ["layer{n-1}.k_proj", "layer{n-1}.v_proj"], along: kv, axes: "token kv" }
  - { from: "stack", to: "layer{n-1}.input", each: layer, axes: "layer token hidden" }
Y
vernier import own --ids 5,6,7,8 --names own.yaml --model "$FIXTURES/qwen2-trained" -o own.h5 2>&1
vernier import own --ids 5,6,7,8 --names own.yaml --model "$FIXTURES/qwen2-trained" --dry-run
vernier compare ref.h5 own.h5 --allow missing --bitwise | tail -n 1

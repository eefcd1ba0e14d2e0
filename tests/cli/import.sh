# Foreign dumps as recordings: all that numpy writes, mapped names, axes with other words; and bad
# input.
cat >dump.py <<'P'
# dump.py RECORDING DIR [how]: a recording as the directory of specs/dump.md, by numpy.
import h5py, json, os, sys
import numpy as np
src, to, how = (sys.argv + [""])[1:4]
os.makedirs(to)
f, lines, n, at = h5py.File(src), [], 0, 0
say = lambda **o: lines.append(json.dumps(o))
say(vernier_dump=1)
say(run=dict(engine="numpy", precision="f32", threads=1))
ids = f["run/token_ids"][...].tolist()
for s in range(sum(k.startswith("step.") for k in f)):
    t = int(f[f"step.{s}"].attrs["tokens"])
    say(step=s, ids=ids[at:at + t])
    at += t
    def visit(name, d):
        global n
        if not isinstance(d, h5py.Dataset):
            return
        a, axes, name = d[...], d.attrs["axes"], name.replace("/", ".")
        if how and name.endswith(("q_rope", "attn_context")):
            axes = "batch token (head dim)"
            a = a.reshape(1, a.shape[0], -1)
        if how and name.endswith("k_rope"):
            axes = "kv_head token dim"
            a = a.transpose(1, 0, 2)
        if how == "foreign" and name.startswith("layer"):
            name = "blk." + name[5:]
        a = [a, np.asfortranarray(a), a.astype(a.dtype.newbyteorder(">"))][n % 3]
        np.save(f"{to}/{n}.npy", a)
        say(tensor=name, file=f"{n}.npy", dtype="f32", shape=a.shape, dims=axes)
        n += 1
    f[f"step.{s}"].visititems(visit)
say(complete=n)
with open(to + "/manifest.jsonl", "w") as m:
    m.write("\n".join(lines) + "\n")
P
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7,8 --decode 2 --points '*' -o ref.h5 2>/dev/null
echo "== every number as it was: Fortran order, big endian, several steps"
$PYTHON dump.py ref.h5 plain
vernier import plain -o a.h5
vernier compare ref.h5 a.h5 --bitwise | grep -E 'checkpoints compared|^verdict'
vernier show a.h5 --check | tail -n 1
vernier import plain -o a.h5; echo "[$?]"
echo "== other names, a batch of one, heads in a row, heads before tokens"
$PYTHON dump.py ref.h5 foreign foreign
$PYTHON -c "
import h5py
print('version: 1\nname: mine\nrules:')
for n in sorted(h5py.File('ref.h5')['step.0/layer0']):
    print('  - { from: \"blk.{n}.' + n + '\", to: \"layer{n}.' + n + '\" }')" >own.yaml
vernier import foreign --names own.yaml --model "$M" -o b.h5
vernier compare ref.h5 b.h5 --bitwise | grep -E 'checkpoints compared|^verdict'
vernier show b.h5 | grep '^  text'
vernier import foreign -o c.h5; echo "[$?]"; test -e c.h5 || echo "no c.h5"
vernier import foreign --dry-run --model "$M" | sed -n '1,4p;/^left/,/blk.0.k_cache/p'
vernier import foreign --names own.yaml --dry-run --model "$M" | sed -n '/step 1/,/k_rope/p'
echo "== our names, and axes in other words: with a model, and without one that knows how long heads are"
$PYTHON dump.py ref.h5 words words
vernier import words --model "$M" -o w.h5
vernier compare ref.h5 w.h5 --bitwise | tail -n 1
vernier import words -o v.h5
echo "== a directory of files named as their tensors"
$PYTHON -c "
import h5py, numpy as np, os
f = h5py.File('ref.h5')
os.makedirs('files/step.1')
for s, to in ((0, 'files/'), (1, 'files/step.1/')):
    for k in ('embed', 'layer0.q_rope', 'layer1.output', 'logits'):
        np.save(to + k + '.npy', f[f'step.{s}'][k.replace('.', '/')])
np.save('files/layer0.block_table.npy', np.arange(4))"
vernier import files -o d.h5; echo "[$?]"
vernier import files --dry-run | sed -n 1,3p
vernier import files --ids 5,6,7,8,220 --engine another --precision f32 -o d.h5
vernier show d.h5 | grep -E 'engine|block_table|imported|step.1'
vernier import files --ids 5 -o e.h5; echo "[$?]"
echo "== folders are words of a name, the last layer may have one row, and a list is whole though an import is not"
$PYTHON -c "
import h5py, numpy as np, os
f = h5py.File('ref.h5')['step.0']
one = ('layer1.output', 'layer1.mlp_norm', 'logits')
for to, n, few in (('some', 2, one), ('none', 0, one), ('slip', 2, one[:2])):
    os.makedirs(to)
    for k in ('embed', 'layer1.q_rope') + one:
        a = f[k.replace('.', '/')][...]
        np.save(to + '/' + k + '.npy', a[:n] if k in few else a)
for to, names in (('nested/', ('embed', 'layer0/q_rope', 'sub/logits')),
                  ('alone/', ('embed', 'layer0.output', 'layer1.q_rope') + one),
                  ('early/', ('embed', 'layer0.output', 'layer1.q_rope'))):
    for k in names:
        os.makedirs(os.path.dirname(to + k), exist_ok=True)
        a = f[k.replace('sub/', '').replace('.', '/')][...]
        np.save(to + k + '.npy', a[-1:] if k in one or (to, k) == ('early/', 'layer0.output') else a)
os.makedirs('debug')
open('debug/Q_FULL_TENSORS.json', 'w')"
vernier import nested --ids 5,6,7,8 -o n.h5; echo "[$?]"
vernier import nested --dry-run
vernier import alone --ids 5,6,7,8 -o l.h5
echo "[$?]"
vernier compare ref.h5 l.h5 --bitwise --allow missing,token_ids | tail -n 1
for t in some none slip; do vernier import $t --ids 5,6,7,8 -o $t.h5; echo "[$?]"; done
vernier compare ref.h5 some.h5 --bitwise --allow missing,token_ids | tail -n 1
vernier import early --ids 5,6,7,8 -o l2.h5; echo "[$?]"
vernier import debug -o x.h5; echo "[$?]"
printf '%b' 'version: 1\nrules:\n  - { from: embed, to: "layer0.output" }\n' \
	'  - { from: logits, parts: ["layer0.q_proj", "layer0.k_proj"], along: qkv, axes: "token qkv" }\n' >stops.yaml
vernier import alone --ids 5,6,7,8 --names stops.yaml --dry-run; echo "[$?]"
echo "== cut off: the complete part is imported, and the file says so"
cp -r plain cut
head -n 20 plain/manifest.jsonl >cut/manifest.jsonl
printf '{"tensor":"layer0.q_ro' >>cut/manifest.jsonl
head -c 100 plain/3.npy >cut/3.npy
vernier import cut -o e.h5; echo "[$?]"
vernier import cut --partial -o e.h5; echo "[$?]"; vernier show e.h5 | sed -n 1p
head -c 100 plain/2.npy >cut/2.npy
vernier import cut --partial -o e2.h5; echo "[$?]"
for n in cut/*.npy; do head -c 100 "$n" >cut/part; mv cut/part "$n"; done
vernier import cut --partial -o e3.h5; echo "[$?]"
echo "== pickles are not opened"
echo x >x.pt; vernier import x.pt -o e.h5 2>&1 | cut -c 1-90
echo "== bad files, one line each"
bad() { # WORDS, python that spoils the lines `m` of a manifest, or the files of `t`, a copy of a dump
	printf '%s\0%s\0' "$1" "$2" >>cases
}
bad "objects" 'np.save(f"{t}/1.npy", np.array([{}, 1], dtype=object), allow_pickle=True)'
bad "a structure" 'np.save(f"{t}/1.npy", np.zeros(3, dtype=[("a", "f4"), ("b", "f4")]))'
bad "complex" 'np.save(f"{t}/1.npy", np.zeros(3, dtype="c8"))'
bad "half of it" 'b = open(f"{t}/1.npy", "rb").read(); open(f"{t}/1.npy", "wb").write(b[:len(b) // 2])'
bad "something behind" 'open(f"{t}/1.npy", "ab").write(b"x")'
bad "absurd shape" '
b = open(f"{t}/1.npy", "rb").read().replace(b"(4, 48), }", b"(99999999999999999, 99999999999999999, 9), }")
b = b[:8] + bytes([b[8] + 36, 0]) + b[10:]; open(f"{t}/1.npy", "wb").write(b)'
bad "seven axes" 'np.save(f"{t}/1.npy", np.zeros((1,) * 7))'
bad "another shape than its line" 'edit(4, shape=[4, 24])'
bad "another dtype than its line" 'edit(4, dtype="f16")'
bad "no file" 'edit(4, file="nowhere.npy")'
bad "a file elsewhere" 'edit(4, file="../plain/1.npy")'
bad "no dims string" 'edit(4, dims="token (hidden")'
bad "dims of three axes" 'edit(4, dims="token head dim")'
bad "dims with a word that no checkpoint has" 'edit(4, dims="token blah")'
bad "dims of none of its words" 'edit(5, dims="foo bar baz")'
bad "dims with a word of another checkpoint" 'edit(4, dims="token ffn")'
bad "with the model: that too" 'edit(4, dims="token ffn")'
bad "with the model: axes in the wrong order" 'edit(5, dims="token dim head")'
bad "with the model: as many heads as no rank has" \
	'np.save(f"{t}/2.npy", np.zeros((4, 4, 8), "f4")); edit(5, shape=[4, 4, 8])'
bad "with the model: the heads of a rank" 'np.save(f"{t}/2.npy", np.zeros((4, 2, 8), "f4")); edit(5, shape=[4, 2, 8])'
bad "with the model: heads in a row, as one axis" \
	'np.save(f"{t}/2.npy", np.zeros((4, 48), "f4")); edit(5, shape=[4, 48], dims="token hidden")'
bad "a name twice" 'edit(4, tensor="embed", file="0.npy")'
bad "a name that is none of ours" 'edit(4, tensor="layer0.q_rop")'
bad "a name with a slash" 'edit(4, tensor="layer0/q_rope")'
bad "a dtype that is none" 'edit(4, dtype="f31")'
bad "a key that is none" 'edit(4, dim="token hidden")'
bad "a key twice" 'm[4] = m[4].replace("{", "{\"op\":\"a\",\"op\":\"b\",", 1)'
bad "a line that is no JSON" 'm[4] = "tensor"'
bad "the wrong number of tensors" 'm[-1] = "{\"complete\":3}"'
bad "behind the end" 'm.append(m[4])'
bad "a negative id" 'edit(2, ids=[5, 6, 7, -1])'
bad "positions of another number" 'edit(2, positions=[1])'
bad "steps out of order" 'edit(2, step=1)'
bad "another number of rows than tokens" 'edit(2, ids=[5, 6, 7])'
bad "a manifest of another version" 'm[0] = "{\"vernier_dump\":2}"'
bad "an empty manifest" 'm.clear()'
bad "int64 that is too large" 'np.save(f"{t}/1.npy", np.full((4, 48), 1 << 40)); edit(4, dtype="i32")'
bad "bits that nothing names" 'np.save(f"{t}/1.npy", np.zeros((4, 48), "u2"))'
cat >spoil.py <<'P'
import json, os, shutil
import numpy as np
case = open("cases").read().split("\0")[:-1]
first = open("plain/manifest.jsonl").read().split("\n")[:7] + ['{"complete":4}']
for n in range(0, len(case), 2):
    t = f"t{n // 2:02}"
    os.makedirs(t)
    for i in range(4):
        shutil.copy(f"plain/{i}.npy", t)
    m = list(first)
    def edit(i, **k):
        o = json.loads(m[i])
        o.update(k)
        m[i] = json.dumps(o)
    exec(case[n + 1])
    with open(t + "/manifest.jsonl", "w") as o:
        o.write("".join(line + "\n" for line in m))
    with open(t + "/words", "w") as o:
        o.write(case[n])
P
$PYTHON spoil.py
for t in t[0-9][0-9]; do
	echo "-- $(cat $t/words)"
	set --; grep -q '^with the model' $t/words && set -- --model "$M"
	vernier import $t "$@" -o t.h5 >said 2>&1; s=$?; sed "s/$t/t/" said | cut -c 1-230; echo "[$s]"
	[ $s = 0 ] && rm t.h5
	test -e t.h5 -o -e t.h5.partial && echo "LEFT A FILE"
done
echo "-- two maps for one name"
printf 'version: 1\nrules:\n  - { from: "layer{n}.{q,k}_rope", to: "layer{n}.q_rope" }\n' >two.yaml
vernier import plain --names two.yaml -o t.h5; echo "[$?]"
echo "-- nothing of it is a checkpoint"
mkdir unrelated && $PYTHON -c 'import numpy as np; np.save("unrelated/a.npy", np.zeros(3, "f4"))'
vernier import unrelated --ids 1 --precision f32 --unmapped drop -o t.h5; echo "[$?]"
echo "-- usage"
vernier import; echo "[$?]"
vernier import plain; echo "[$?]"
vernier import plain -o t.h5 --unmapped maybe; echo "[$?]"
vernier import plain -o t.h5 --ids 1,2,3; echo "[$?]"
vernier import nowhere -o t.h5; echo "[$?]"
vernier import plain -o nowhere/t.h5; echo "[$?]"
ls | grep partial || true

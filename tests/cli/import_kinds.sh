# Dumps in other containers: .npz, .safetensors, GGUF, transformers' debugging tree. The same
# numbers from each; and bad ones.
cat >make.py <<'P'
import h5py, json, os, struct
import numpy as np

f = h5py.File("ref.h5")
steps = [{}, {}]
for s in (0, 1):
    f[f"step.{s}"].visititems(lambda n, d: steps[s].__setitem__(n.replace("/", "."), d[...])
                              if isinstance(d, h5py.Dataset) else None)
both = {("" if s == 0 else "step.1/") + n: a for s in (0, 1) for n, a in steps[s].items()}
np.savez("a.npz", **both)
np.savez_compressed("b.npz", **{n: np.asfortranarray(a) for n, a in both.items()})


def safetensors(path, tensors, **meta):
    head, data = {"__metadata__": meta} if meta else {}, b""
    for n, a in tensors.items():
        word = {"f4": "F32", "f2": "F16", "i8": "I64", "u2": "BF16", "b1": "BOOL"}[a.dtype.str[1:]]
        head[n] = dict(dtype=word, shape=a.shape, data_offsets=[len(data), len(data) + a.nbytes])
        data += np.ascontiguousarray(a).tobytes()
    text = json.dumps(head).encode()
    with open(path, "wb") as o:
        o.write(struct.pack("<Q", len(text)) + text + data)


safetensors("a.safetensors", both, engine="saver", precision="f32")
safetensors("half.safetensors", {"logits": (steps[0]["logits"].view("<u4") >> 16).astype("<u2")})


def gguf(path, tensors):
    head, data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0), b""
    for n, a in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += (struct.pack("<Q", len(n)) + n.encode() + struct.pack("<I", a.ndim)
                 + struct.pack(f"<{a.ndim}Q", *a.shape[::-1]) + struct.pack("<IQ", 0, len(data)))
        data += a.tobytes()
    with open(path, "wb") as o:
        o.write(head + b"\0" * (-len(head) % 32) + data)


gguf("a.gguf", both)

# As transformers.model_debugging_utils writes it with use_repr=False.
os.makedirs("tree")


def value(name, a):
    safetensors(f"tree/{name}.safetensors", {"data": a})
    return dict(shape=repr(a.shape), dtype=repr(a.dtype), value=f"./{name}.safetensors", mean="", std="", min="",
                max="")


def node(path, inputs, outputs, *children):
    o = dict(module_path="Q." + path, inputs={"args": [value(f"Q.{path}_inputs_args_0", inputs)]} if inputs is not None
             else None)
    o["outputs"] = None if children else value(f"Q.{path}_outputs", outputs)
    return dict(o, children=list(children)) if children else o


s = {n: a[None] for n, a in steps[0].items()}
row = lambda n: s[n].reshape(1, s[n].shape[1], -1)
ids = f["run/token_ids"][:4].astype("<i8")[None]
layers = [node(f"model.layers.{n}", s["embed"] if n == 0 else s["layer0.output"], None,
               node(f"model.layers.{n}.input_layernorm", None, s[f"layer{n}.attn_norm"]),
               node(f"model.layers.{n}.self_attn", None, None,
                    *[node(f"model.layers.{n}.self_attn.{p}_proj", None, row(f"layer{n}.{p}_proj")) for p in "qkv"],
                    node(f"model.layers.{n}.self_attn.o_proj", row(f"layer{n}.attn_context"), s[f"layer{n}.attn_out"])))
          for n in (0, 1)]
tree = dict(module_path="Q", inputs={"kwargs": {"input_ids": value("Q_inputs_input_ids", ids),
                                                "mask": value("Q_mask", np.ones(4, bool))}},
            children=[node("model.embed_tokens", ids, s["embed"]),
                      node("model.rotary_emb", s["embed"], s["layer0.q_rope"]), *layers,
                      node("lm_head", s["final_norm"], s["logits"])])
with open("tree/Q_debug_tree_FULL_TENSORS.json", "w") as o:
    json.dump(tree, o)
os.mkdir("batched")
for n, a in s.items():
    np.save(f"batched/{n}.npy", a)
P
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7,8 --decode 1 -o ref.h5 2>/dev/null
ids=$(vernier show ref.h5 --format json |
	$PYTHON -c "import json, sys; print(*json.load(sys.stdin)['token_ids'], sep=',')")
$PYTHON make.py
for kind in a.npz b.npz a.safetensors a.gguf; do
	echo "== $kind"
	vernier import $kind --ids "$ids" --precision f32 -o $kind.h5
	vernier compare ref.h5 $kind.h5 --bitwise | tail -n 1
done
vernier show a.safetensors.h5 | grep -E 'engine|imported'
echo "== bfloat16 as it is"
vernier import half.safetensors --ids 5,6,7,8 -o half.h5
vernier show half.h5 | grep -E 'precision|logits'
echo "== transformers' tree"
vernier import tree/Q_debug_tree_FULL_TENSORS.json --names hf --model "$M" --engine transformers -o t.h5
# A file of a map's name is not the map; "./" asks for it. Where limits cannot be looked at,
# no others are taken.
echo nonsense >hf
vernier import tree/Q_debug_tree_FULL_TENSORS.json --names hf --model "$M" --engine transformers -o t.h5 --force
vernier import tree/Q_debug_tree_FULL_TENSORS.json --names ./hf --model "$M" --engine transformers -o t.h5 --force
rm hf
ln -s fp32.yaml fp32.yaml
vernier limits fp32.yaml | head -n 1
rm fp32.yaml
vernier show t.h5 | grep tokens
vernier compare ref.h5 t.h5 --bitwise --allow missing,token_ids |
	grep -E '^(identical|outside|verdict|within)' | tail -n 2
echo "== arrays as PyTorch shapes them, with a batch of one in front"
vernier import batched --ids 5,6,7,8 -o batched.h5
vernier compare ref.h5 batched.h5 --bitwise --allow missing,token_ids |
	grep -E '^(identical|outside|verdict|within)' | tail -n 2
echo "== blocks of weights become float32"
vernier import "$FIXTURES"/gguf/qwen2-wide.q4_k_m.gguf --ids 1 --unmapped keep -o w.h5 2>&1 | sed 's/.*: //'
vernier show w.h5 | grep -E 'token_embd|blk.0.attn_q.weight'
echo "== names that are paths, and formats that no checkpoint has"
$PYTHON - <<'END'
import json, numpy as np, os, struct
import h5py
f = h5py.File("ref.h5")["step.0"]
np.savez("paths.npz", **{"/model/layers.%d/o_proj/Add_0" % n: f[f"layer{n}/attn_out"][...] for n in (0, 1)},
         **{"/head/MatMul/output:0": f["logits"][...], "dense/relu": np.zeros(3, "f4")})
odd = dict(mask=np.ones((4, 4), bool), i8=np.ones(3, "i1"), u8=np.ones(3, "u1"), z=np.ones(3, "c16"),
           text=np.array(["a", "bcd"]), when=np.array(["2020-01-01"], "M8[D]"))
np.savez("odd.npz", logits=f["logits"][...], **odd)
os.mkdir("odd")
for n, a in dict(odd, logits=f["logits"][...]).items():
    np.save(f"odd/{n}.npy", a)
a = f["logits"][...]
head = json.dumps({"mask": {"dtype": "BOOL", "shape": [4], "data_offsets": [a.nbytes, a.nbytes + 4]},
                   "logits": {"dtype": "F32", "shape": a.shape, "data_offsets": [0, a.nbytes]}}).encode()
open("odd.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + a.tobytes() + b"\1" * 4)
np.savez("asked.npz", **{"layer0.attn_out": np.ones((4, 48), bool)})
END
printf 'version: 1\nrules:\n  - { from: "/model/layers.{n}/o_proj/*", to: "layer{n}.attn_out" }\n%s\n%s\n' \
	'  - { from: "/head/*", to: logits }' '  - { from: "dense/relu", ignore: true }' >slashes.yaml
sed 's|/model/|model.|; s|/o_proj/|.o_proj.|; s|/head/|head.|; s|dense/|dense.|' slashes.yaml >dots.yaml
for map in slashes dots; do
	vernier import paths.npz --names $map.yaml --ids 5,6,7,8 -o $map.h5
	vernier compare ref.h5 $map.h5 --bitwise --allow missing,token_ids | grep -E '^(verdict)'
done
vernier import paths.npz --ids 5,6,7,8 --unmapped keep -o kept.h5
vernier show kept.h5 | grep -oE ' (head|dense|model[.])[^ ]*'
printf 'version: 1\nrules:\n  - { from: "{mask,i8,u8,z,text,when}", ignore: true }\n' >ignored.yaml
for dump in odd.npz odd odd.safetensors; do
	vernier import $dump --ids 5,6,7,8 -o odd.h5 2>&1 | cut -c 1-120
	vernier import $dump --ids 5,6,7,8 --unmapped keep -o odd.h5 2>&1 | cut -c 1-120
	vernier import $dump --ids 5,6,7,8 --unmapped drop -o odd.h5 --force
	vernier import $dump --ids 5,6,7,8 --names ignored.yaml -o odd.h5 --force
	vernier show odd.h5 | grep -oE ' (mask|i8|u8|z|text|when|logits) '
done
vernier import asked.npz --ids 5,6,7,8 --unmapped drop -o asked.h5 2>&1 | cut -c 1-120
echo "== heads before tokens: what to write"
$PYTHON -c "
import h5py, numpy as np
np.savez('heads.npz', **{'layer1.q_rope': h5py.File('ref.h5')['step.0/layer1/q_rope'][...].transpose(1, 0, 2)[None]})"
vernier import heads.npz --ids 5,6,7,8 --model "$M" -o heads.h5
printf 'version: 1\nrules:\n  - { from: "layer{n}.q_rope", to: "layer{n}.q_rope", axes: "batch head token dim" }\n' \
	>heads.yaml
vernier import heads.npz --ids 5,6,7,8 --model "$M" --names heads.yaml -o heads.h5 --force
vernier compare ref.h5 heads.h5 --bitwise --allow missing,token_ids | grep -E '^(verdict)'
echo "== rows of padding behind the tokens: what to write"
$PYTHON -c "
import h5py, numpy as np
np.savez('padded.npz', **{'layer0.q_rope': np.pad(h5py.File('ref.h5')['step.0/layer0/q_rope'][...],
                                                  ((0, 12), (0, 0), (0, 0)))[None]})"
vernier import padded.npz --ids 5,6,7,8 --model "$M" -o padded.h5 2>said; cat said
sed -n 's/.*padding: /version: 1\nrules:\n  - /p' said >padded.yaml
vernier import padded.npz --ids 5,6,7,8 --model "$M" --names padded.yaml -o padded.h5 --force
vernier compare ref.h5 padded.h5 --bitwise --allow missing,token_ids | grep -E '^(verdict)'
echo "== a batch of two prompts, the second padded on its left"
vernier capture ref "$M" --ids 7,8 -o two.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7,8 -o four.h5 2>/dev/null
$PYTHON - <<'END'
import h5py, numpy as np
a, b = (h5py.File(f)["step.0"] for f in ("four.h5", "two.h5"))
both = lambda n: np.stack([a[n][...], np.concatenate([np.ones_like(b[n][...]), b[n][...]])])
np.savez("batch.npz", **{n.replace("/", "."): both(n) for n in ("embed", "layer0/q_rope", "layer1/output", "logits")})
END
vernier import batch.npz --ids '[[5,6,7,8],[-1,-1,7,8]]' --model "$M" -o batch.h5
vernier compare four.h5 batch.h5 --batch-row 0 --bitwise --allow missing | grep -E '^(verdict)'
vernier compare two.h5 batch.h5 --batch-row 1 --bitwise --allow missing | grep -E '^(verdict)'
vernier import batch.npz --ids '[[5,6,7,8],[9,9,7,8]]' --positions '[[0,1,2,3],[-1,-1,0,1]]' --model "$M" \
	-o batch.h5 --force
vernier compare two.h5 batch.h5 --batch-row 1 --bitwise --allow missing | grep -E '^(verdict)'
vernier import batch.npz --ids 5,6,7,8 --model "$M" -o batch.h5 --force
vernier import batch.npz --ids '[[5,6,7,8],[7,8]]' -o batch.h5 --force
vernier import batch.npz --ids '[[5,6,7,8],[7,8,-2,1]]' -o batch.h5 --force
vernier import batch.npz --ids '[[5,6,7,8],[7,8,2,1]]' --positions 0,1,2,3 -o batch.h5 --force
echo "== a prompt in calls of 1 and 3 tokens: shapes say which"
$PYTHON - <<'END'
import h5py, numpy as np
f = h5py.File("ref.h5")["step.0"]
name = ("embed", "layer0.attn_out", "layer0.q_proj", "layer1.output", "logits")
part = lambda a, b, s: {f"step.{s}/{n}" if s else n: f[n.replace(".", "/")][a:b] for n in name}
np.savez("calls.npz", **part(0, 1, 0), **part(1, 4, 1))
END
vernier import calls.npz --ids 5,6,7,8 --model "$M" -o calls.h5
vernier capture ref "$M" --ids 5,6,7,8 -o prompt.h5 2>/dev/null
vernier compare prompt.h5 calls.h5 --allow missing | grep -E '^(verdict)'
echo "== bad ones, one line each"
bad() {
	echo "-- $1"
	shift
	vernier import "$@" --ids "$ids" -o bad.h5 >said 2>&1
	s=$?
	cut -c 1-220 said
	echo "[$s]"
	test -e bad.h5 -o -e bad.h5.partial && echo "LEFT A FILE"
}
head -c 3000 a.npz >cut.npz; bad "half an archive" cut.npz
echo text >text.npz; bad "no archive" text.npz
$PYTHON -c "
import json, struct, zipfile, io, numpy as np
zipfile.ZipFile('other.npz', 'w').writestr('readme.txt', 'x')
z = zipfile.ZipFile('bomb.npz', 'w', zipfile.ZIP_DEFLATED)
z.writestr('embed.npy', bytes(1 << 20))
z.close()
b = bytearray(open('bomb.npz', 'rb').read())
at = b.rfind(b'PK\1\2')
b[at + 24:at + 28] = struct.pack('<I', 0xf0000000)
open('bomb.npz', 'wb').write(b)
np.savez('sum.npz', embed=np.arange(192, dtype='f4').reshape(4, 48))
b = bytearray(open('sum.npz', 'rb').read())
b[400] ^= 1
open('sum.npz', 'wb').write(b)
np.savez('pickled.npz', embed=np.array([{}, 1], dtype=object))
s = open('a.safetensors', 'rb').read()
open('cut.safetensors', 'wb').write(s[:-10])
t = json.load(open('tree/Q_debug_tree_FULL_TENSORS.json'))
t['children'][0]['outputs']['value'] = './../a.safetensors'
json.dump(t, open('tree/away.json', 'w'))
t['children'][0]['outputs']['value'] = './nowhere.safetensors'
json.dump(t, open('tree/gone.json', 'w'))
t['children'][0]['outputs']['value'] = ['tensor([1.])']
json.dump(t, open('tree/repr.json', 'w'))
del t['children'][0]['outputs']['value']
json.dump(t, open('tree/SUMMARY.json', 'w'))
json.dump([1], open('tree/list.json', 'w'))
t['children'] = [json.load(open('tree/Q_debug_tree_FULL_TENSORS.json'))['children'][0]] * 2
json.dump(t, open('tree/twice.json', 'w'))"
# Zip members that share bytes: in one local header, in a member inside another; safetensors, GGUF,
# and many names of one file.
$PYTHON - <<'END'
import io, json, os, struct, zlib, numpy as np
def packed(x):
    b = io.BytesIO()
    np.save(b, x)
    raw = b.getvalue()
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    return raw, c.compress(raw) + c.flush()
def local(name, raw, data, how):
    return struct.pack('<IHHHHHIIIHH', 0x04034b50, 20, 0, how, 0, 33, zlib.crc32(raw), len(data), len(raw),
                       len(name), 0) + name + data
def archive(path, body, entries):
    out = body
    for name, raw, data, how, at in entries:
        out += struct.pack('<IHHHHHHIIIHHHHHII', 0x02014b50, 20, 20, 0, how, 0, 33, zlib.crc32(raw),
                           len(data), len(raw), len(name), 0, 0, 0, 0, 0, at) + name
    n = len(entries)
    open(path, 'wb').write(out + struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, n, n, len(out) - len(body), len(body), 0))
raw, data = packed(np.zeros((4, 1 << 18), 'f4'))
one = local(b't000.npy', raw, data, 8)
archive('shared.npz', one, [(b't%03d.npy' % i, raw, data, 8, 0) for i in range(200)])
archive('apart.npz', one + local(b't001.npy', raw, data, 8),
        [(b't000.npy', raw, data, 8, 0), (b't001.npy', raw, data, 8, len(one))])
for path, n in ('dense.npz', 300), ('less.npz', 250):  # 1.26 and 1.05 GB of zeros
    names = [b't%03d.npy' % i for i in range(n)]
    archive(path, b''.join(local(name, raw, data, 8) for name in names),
            [(name, raw, data, 8, i * len(local(name, raw, data, 8))) for i, name in enumerate(names)])
# A stored member that holds another, as in nested bombs.
outer = packed(np.frombuffer(one + bytes(-len(one) % 16), 'f4').reshape(4, -1))[0]
whole = local(b'outer.npy', outer, outer, 0)
archive('nested.npz', whole, [(b'outer.npy', outer, outer, 0, 0), (b't000.npy', raw, data, 8, whole.index(one))])
head = json.dumps({n: {'dtype': 'F32', 'shape': [4, 4], 'data_offsets': [0, 64]} for n in ('a', 'b')}).encode()
open('shared.safetensors', 'wb').write(struct.pack('<Q', len(head)) + head + bytes(64))
def entry(name, at):
    return struct.pack('<Q', len(name)) + name + struct.pack('<IQQIQ', 2, 4, 4, 0, at)
g = b'GGUF' + struct.pack('<IQQ', 3, 2, 0) + entry(b'a', 0) + entry(b'b', 0)
open('shared.gguf', 'wb').write(g + bytes(-len(g) % 32 + 64))
os.mkdir('shared')
np.save('shared/1.npy', np.zeros((4, 4), 'f4'))
lines = [{'vernier_dump': 1}, {'step': 0, 'ids': [5, 6, 7, 8]}]
lines += [{'tensor': 't%d' % i, 'file': '1.npy', 'dtype': 'f32', 'shape': [4, 4]} for i in range(65)]
open('shared/manifest.jsonl', 'w').write(''.join(json.dumps(l) + '\n' for l in lines + [{'complete': 65}]))
os.mkdir('long')
open('long/manifest.jsonl', 'w').write('{"vernier_dump":1}\n{"step":0,"ids":[' + '1,' * (17 << 20) + '1]}\n')
END
for z in shared.npz nested.npz dense.npz shared.safetensors shared.gguf shared long; do
	bad "$z" $z --unmapped keep; done
vernier import apart.npz --ids 5,6,7,8 --unmapped keep -o apart.h5 >said 2>&1; echo "apart [$?]"
vernier import less.npz --ids 5,6,7,8 --unmapped keep --dry-run >said 2>&1; echo "less [$?]"
ids=5,6,7,8,9; bad "more tokens than rows" half.safetensors
for z in other bomb sum pickled; do bad $z.npz $z.npz; done
bad "cut off" cut.safetensors
head -c 700 a.gguf >cut.gguf; bad "cut off" cut.gguf
ids=5,6,7,8
for t in away gone repr SUMMARY list twice; do bad "$t" tree/$t.json; done
ids=5,6,7,9
bad "other ids than it says" tree/Q_debug_tree_FULL_TENSORS.json
# Weights that a manifest lists: read, or refused.
listed() { # WHAT LINES...
	rm -rf listed
	mkdir listed
	$PYTHON -c "import numpy as np; np.save('listed/1.npy', np.zeros((1, 4), 'f4'))"
	{
		echo '{"vernier_dump":1}'
		echo '{"run":{"engine":"x","precision":"f32"}}'
		printf '%s\n' "${@:2}"
		echo '{"step":0,"ids":[5]}'
		echo '{"tensor":"embed","file":"1.npy","dtype":"f32","shape":[1,4]}'
		echo '{"complete":1}'
	} >listed/manifest.jsonl
	vernier import listed -o listed.h5 --force 2>&1 | sed "s/^/$1: /"
}
w='{"weight":"b","dtype":"f16","shape":[2,3],"digest":"0123456789abcdef0123456789abcdef"'
listed good "$w,\"min\":-1,\"max\":2.5,\"mean\":0,\"rms\":1e-3,\"nan\":1,\"inf\":0}" "${w/\"b\"/\"a\"}}"
$PYTHON -c "
import h5py
t = h5py.File('listed.h5', 'r')['model/weights']
for r in t: print(*(x.decode() if isinstance(x, bytes) else x for x in r.tolist()))"
listed twice "$w}" "$w}"
listed digest "${w/ef\"/EF\"}}"
listed format "${w/f16/q4_k}}"
listed name "${w/\"b\"/\"a\/b\"}}"
listed key "$w,\"sum\":1}"
true

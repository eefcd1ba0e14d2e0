# --prompts keeps a recording only while everything that its bits and its verdict depend on is as it
# was, and says again what the run warned of.
M=$FIXTURES/qwen2-trained
cp -r "$M" m; cp -r "$(dirname "$FIXTURES")/specs" specs; chmod -R u+w m specs
export VERNIER_SPECS=$PWD/specs
printf 'Hello one\nAnother two\n' >p.txt
clean() { sed 's/ in [0-9.]* s (.*//; s/ is the first outside its limits: .*/ is the first outside/'; }
capture() { vernier capture ref m --prompts p.txt "$@" 2>&1 | clean | tail -n 2; echo "[${PIPESTATUS[0]}]"; }
changed() { # WHAT COMMAND...: after the change (and before it was undone), the recordings are refused
	echo "-- $1"; shift; capture "$@"
}
echo "== what the run reads"
capture -o o; capture -o o
sed -i 's/"rms_norm_eps": *[0-9.e-]*/"rms_norm_eps": 0.01/' m/config.json; changed eps -o o
cp "$M/config.json" m; sed -i 's/"rope_theta": *[0-9.e-]*/"rope_theta": 10.0/' m/config.json
changed theta -o o
cp "$M/config.json" m
$PYTHON - m/tokenizer.json <<'P'
import sys, json
import editing as h5py
with open(sys.argv[1], encoding="utf-8") as f:
    o = json.load(f)
a, b = (int(i) for i in h5py.File("o/001.h5")["run/token_ids"][:2])
swap = {a: b, b: a}
o["model"]["vocab"] = {t: swap.get(i, i) for t, i in o["model"]["vocab"].items()}
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(o, f)
P
changed "a tokenizer with two tokens exchanged" -o o
rm m/tokenizer.json; mv p.txt text; printf '{"ids": [1, 2]}\n{"ids": [3, 4]}\n' >p.txt
changed "without a tokenizer, other ids" -o o
capture -o ids; capture -o ids
cp "$M/tokenizer.json" m; changed "a tokenizer that shows the tokens" -o ids
mv text p.txt
capture -o o
$PYTHON -c "
import editing as h5py
with h5py.File('o/002.h5', 'r+') as f: f['run'].attrs['engine_version'] = '0.0.9'"
changed "another version" -o o
rm o/002.h5; capture -o o
$PYTHON -c "
import editing as h5py
with h5py.File('o/002.h5', 'r+') as f: f['run'].attrs['force_ref'] = 'layer0.*'"
changed "a setting that it had" -o o
rm o/002.h5; capture -o o
$PYTHON -c "
import editing as h5py
with h5py.File('o/002.h5', 'r+') as f: f['run'].attrs['blas_kernel'] = 'Other'"
changed "another kernel of the library" -o o
echo "== what changes no number: it is kept"
capture -o "$PWD/o2" --threads 1; capture -o ./o2 --strict --threads 2
capture -o refs0 >/dev/null; mkdir elsewhere
capture --precision f16 --against refs0 -o o5; mv p.txt elsewhere/q.txt
(cd elsewhere; vernier capture ref ../m --prompts q.txt --precision f16 --against ../refs0/ -o ../o5 2>&1 | tail -n 1)
mv elsewhere/q.txt p.txt
echo "== what changes what is recorded: it is refused"
for chosen in "--points layer0.q_rope" "--layers 0-0" "--tokens last" ""; do
	capture $chosen -o c >/dev/null
	for other in "--points layer0.q_rope" "--points layer0.k_rope" "--layers 1-1" "--tokens 0-0" ""; do
		echo "$chosen, then $other:" $(capture $other -o c)
	done
	rm -r c
done
capture --precision f16 --against refs0 --stop-at-first -o o5
echo "== interrupted with --force"
for i in {1..400}; do echo "{\"name\": \"n$i\", \"ids\": [$i, 6], \"decode\": 3}"; done >many.jsonl
"$VERNIER" capture ref m --prompts many.jsonl -o i --force 2>said & pid=$!
while [ ! -e i/n3.h5 ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid; wait $pid; echo "[$?]"
tail -n 1 said | sed 's/at n[0-9]*, [0-9]* of/at N of/'
vernier capture ref m --prompts many.jsonl -o i 2>&1 | tail -n 1 |
	sed 's/[0-9]* recorded, [1-9][0-9]* already/N recorded, N already/'
rm -r i many.jsonl refs0 o2 o5 elsewhere
echo "== a GGUF file"
cp "$FIXTURES/gguf/qwen2-trained.f32.gguf" g.gguf; chmod u+w g.gguf
gguf() { vernier capture ref g.gguf --prompts p.txt -o g 2>&1 | clean | tail -n 1; echo "[${PIPESTATUS[0]}]"; }
gguf; gguf
$PYTHON -c "
import struct
key = b'qwen2.attention.layer_norm_rms_epsilon'
d = bytearray(open('g.gguf', 'rb').read())
at = d.index(struct.pack('<Q', len(key)) + key) + 8 + len(key) + 4
struct.pack_into('<f', d, at, 0.01)
open('g.gguf', 'wb').write(d)"
gguf
echo "== a command longer than a recording holds"
long=$(printf -- '--points layer0.q_rope --points layer0.k_rope %.0s' {1..8})
capture $long --inject R1@layer1 -o l
capture $long --inject R1@layer1 -o l
capture $long --inject R1@layer0 -o l
echo "== what judges it"
capture -o refs >/dev/null
strict() { capture --precision f16 --inject R1@layer1 --against refs --strict -o "$@"; }
strict o2; strict o2; strict o2 # never forgotten
judged() { capture --precision f16 --against refs -o o3; }
judged; judged
cp -r refs good
vernier capture ref m --prompts p.txt --inject R1@layer1 -o refs --force 2>/dev/null
changed "the reference" --precision f16 --against refs -o o3
rm -r refs; cp -r good refs; judged
rm refs/002.h5; changed "a reference is gone" --precision f16 --against refs -o o3
cp good/002.h5 refs
sed -i 's/nmse: *[0-9.e-]*/nmse: 1e-30/' specs/limits/fp16-acc32.yaml
changed "the limits of the precision" --precision f16 --against refs -o o3
cp "$(dirname "$FIXTURES")/specs/limits/fp16-acc32.yaml" specs/limits; judged
cp specs/limits/fp16-acc32.yaml mine.yaml
mine() { capture --precision f16 --against refs --limits mine.yaml -o o4; }
mine; mine
echo '# one more' >>mine.yaml; mine
echo "== weights that hold a NaN: the warning is given again"
$PYTHON -c "
f = open('m/model.safetensors', 'r+b'); f.seek(-4, 2); f.write(b'\xff\xff\xff\xff')"
for i in 1 2; do
	vernier capture ref m --prompts p.txt --points layer0.q_rope --strict -o n >said 2>&1
	echo "[$?] $(grep -c 'warning: .*NaN' said)"
done

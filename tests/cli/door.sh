# What people give and ask: other files and addresses as a model, names of a hub, words, examples,
# the model from where it is known, colours.
M=$FIXTURES/qwen2-trained
run() { say capture ref "$1" --ids 1,2 -o x.h5 --force 2>&1 | sed 's/ in [0-9.]* s (.*//'; }
"${PYTHON:-python3}" - <<'P'
import gzip, tarfile, zipfile
with zipfile.ZipFile("m.pt", "w") as z:
    z.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
open("m.bin", "wb").write(open("m.pt", "rb").read())
open("m.onnx", "wb").write(b"\x08\x08\x12\x07pytorch")
with gzip.open("m.gguf.gz", "wb") as f:
    f.write(b"GGUF" + b"\0" * 100)
open("empty.gguf", "w").close()
with tarfile.open("m.tar", "w") as t:
    t.add("m.onnx")
P
head -c 5000 "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" >cut.gguf
printf '7z\274\257' >m.7z && echo hello >m.txt && cp m.pt m.zip
sed 's/qwen2/qwenx/' "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" >other.gguf
mkdir -p alone && cp m.bin alone/pytorch_model.bin
mkdir -p pickled && cp "$M/config.json" pickled && cp m.bin pickled/pytorch_model.bin
for m in m.pt m.bin m.onnx m.gguf.gz m.tar m.7z m.txt empty.gguf cut.gguf pickled alone other.gguf \
	https://huggingface.co/Qwen/Qwen2.5-0.5B/tree/main https://example.org/m.gguf; do
	run $m
done
mkdir -p listed pipeline && cp "$M/config.json" listed && echo '{}' >pipeline/model_index.json
echo '{"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}' >listed/model.safetensors.index.json
for m in listed pipeline; do run $m; done
echo "== the same as a dump, and as a recording"
vernier capture ref "$M" --ids 1,2 -o x.h5 2>/dev/null
head -c -1 x.h5 >cut.h5
for m in m.pt m.zip m.gguf.gz https://example.org/m.npz; do
	say import $m -o y.h5 | cut -c1-130
	say compare x.h5 $m | cut -c1-130
done
say compare x.h5 cut.h5 | sed 's/[0-9]* of its [0-9]*/N of its M/'
"${PYTHON:-python3}" -c 'import tarfile
with tarfile.open("x.tar", "w") as t:
    t.add("x.h5")'
vernier compare x.h5 x.h5 --allow itself -q -o r.json -o r.html
for m in x.tar r.json r.html; do say compare x.h5 $m; done
echo "== near names"
vernier capture ref "$M" --ids 1,2 -o longer.h5 2>/dev/null
for m in logner.h5 longer lonely.h5 "$PWD/longest.h5"; do say compare x.h5 "$m"; done
mv longer.h5 run12.h5
for m in run13.h5 rnu12.h5; do say compare x.h5 $m; done
ln -s "$M" trained && say points tarined
for m in q_rop layer1.q_rop nonesuch; do say show x.h5 $m; done
say import "$M/model.safetensors" --like x.h5 -o y.h5 | grep -o 'no tensor of it.*'
printf 'version: 1\nrules:\n  - match: "*"\n    nmes_over_floor: 3\n    cosine_over_floor: 3\n' >l.yaml
say limits l.yaml
sed -i /nmes/d l.yaml && say limits l.yaml
printf 'version: 1\ndefaults: {match: "*"}\n' >l.yaml && say limits l.yaml
mkfifo pipe
say compare x.h5 pipe
say explain nowhere.h5 x.h5
echo "== a name of a hub: from its cache, wherever that is"
mkdir -p hub/models--Qwen--tiny/refs hub/models--Qwen--tiny/snapshots
ln -s "$(realpath "$M")" hub/models--Qwen--tiny/snapshots/abc123
printf 'abc123\n' >hub/models--Qwen--tiny/refs/main
run Qwen/tiny
run hub
run hub/models--Qwen--tiny
mkdir -p two/b two/a two/none && ln -s .. two/none/loop && ln -s "$(realpath "$M")" two/b/x && run two
ln -s "$(realpath "$M")" two/a/y && run two
export HF_HUB_CACHE=$PWD/hub
ln -s models--Qwen--tiny hub/models--tiny
for m in tiny tony hf.co/tiny hf.co/Qwen/tiny hf.co/Qwen/other/tree/main Qwen/tiny; do run $m; done
say show x.h5 tiny
run Qwen/other
run qwen/Tiny
vernier capture ref Qwen/tiny --ids-from x.h5 --precision f16 --inject 'R2.1e4@layer1.*' -o cand.h5 2>/dev/null
say_lines '^(note|verdict)' compare x.h5 cand.h5 --model=Qwen/tiny
printf '../x' >hub/models--Qwen--tiny/refs/main
run Qwen/tiny
echo "== the model: an option, VERNIER_MODEL, what the recording names"
VERNIER_MODEL=$M say_lines '^(note|floor)' compare x.h5 cand.h5
VERNIER_MODEL=nowhere say_lines '^(note|floor)' compare x.h5 cand.h5 --model "$M"
VERNIER_MODEL=nowhere say_lines '^(note|floor)|vernier' compare x.h5 cand.h5
say_lines '^(note|explained)' explain x.h5 cand.h5
VERNIER_MODEL=Qwen/tiny say_lines '^note +--model|vernier' compare x.h5 cand.h5
printf 'abc123' >hub/models--Qwen--tiny/refs/main
VERNIER_MODEL=Qwen/tiny say_lines '^note +--model' compare x.h5 cand.h5
VERNIER_MODEL=$FIXTURES/llama-trained say_lines 'vernier' explain x.h5 cand.h5
echo "== words"
for w in R2.1e4 R2.1.5e5 W4 floor runner-up verdict glossary nmse_over_floor "first divergence" step "capture ref" \
	specs/develop.md CONTRIBUTING.md nonesuch R99 --ids-from --nonesuch MODEL environment \
	prompt precision "exit statuses"; do
	say help $w | head -n 6 | cut -c1-90
done
say points x.h5
say compare x.h5 x.h5 --metric cosine
say completions
echo "== examples, in short"
say compare -h
for c in $(vernier help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	vernier $c --help | grep -A2 '^Examples' | grep -c "^  vernier" | sed "s/^/$c: /"
done | grep -v ': 2$'
echo "== colours"
colours() { "$@" | grep -c "$(printf '\033')\[31m"; }
unset NO_COLOR
colours vernier compare x.h5 cand.h5
colours vernier compare x.h5 cand.h5 --color always
CLICOLOR_FORCE=1 colours vernier compare x.h5 cand.h5
CLICOLOR_FORCE=1 NO_COLOR=1 colours vernier compare x.h5 cand.h5
CLICOLOR_FORCE=1 colours vernier compare x.h5 cand.h5 --color never

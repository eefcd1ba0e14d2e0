# Text for a prompt: the same run as its ids, what the tokens say in the recording,
# and what is refused.
export PYTHON
M=$FIXTURES/qwen2-trained
digests() { $PYTHON -c "
import editing as h5py, sys
f = h5py.File(sys.argv[1])
print(f['step.0/logits'].attrs['digest'], f['run/token_ids'].attrs['digest'])" "$1"; }
same() { [ "$(digests a.h5)" = "$(digests b.h5)" ] && echo "$1: the same run"; }
for p in p001 p002 p017 p070 p200; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/$p.ids" -o a.h5 --force 2>/dev/null
	vernier capture ref "$M" --prompt "@$FIXTURES/prompts/$p.txt" -o b.h5 --force 2>/dev/null
	same $p
	vernier show b.h5 | grep -E '^  (tokens|text) '
done
vernier capture ref "$M" --prompt "$(cat "$FIXTURES/prompts/p017.txt")" -o a.h5 --force 2>/dev/null
vernier capture ref "$M" --prompt "@$FIXTURES/prompts/p017.txt" -o b.h5 --force 2>/dev/null
same "on the command line"
rm a.h5
cat "$FIXTURES/prompts/p017.txt" | vernier capture ref "$M" --prompt @/dev/stdin -o a.h5 --force 2>/dev/null
same "from stdin"
rm a.h5
vernier capture ref "$M" --prompt @<(cat "$FIXTURES/prompts/p017.txt") -o a.h5 --force 2>/dev/null
same "from a pipe"
shown() {
	vernier capture ref "$M" "$@" -o a.h5 --force 2>said || { echo "[$?]"; head -n 1 said; return; }
	vernier show a.h5 | grep -E '^  text '
}
echo "== bytes that are no text, controls, an @"
shown --prompt "$(printf 'a\377\344\270 b\001\033[31mc\342\200\256d\\')"
shown --prompt @@home
printf 'two\nlines\n\0x' >zero.txt
shown --prompt @zero.txt
shown --ids 1,511,5
vernier show a.h5 --format json | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['token_text'])"
$PYTHON -c "
import editing as h5py
print([t.decode() for t in h5py.File('a.h5')['run/token_text'][()]])"
echo "== files that are no text"
printf '\223NUMPY' >a.npy && printf 'PK\003\004' >a.npz && cp a.npz a.zip && gzip -k a.npy
printf '\377\376a\0' >16.txt && printf '\377\376\0\0a\0\0\0' >32.txt && printf '\200\2}' >a.pkl && tar cf a.tar a.npy
for file in a.npy a.npz a.zip a.npy.gz a.pkl a.tar 16.txt 32.txt a.h5; do
	say capture ref "$M" --prompt @$file -o b.h5
done
say capture ref "$M" --ids @a.npy -o b.h5
echo "== a text may have any name, and begin as other files do"
for file in a.pt a.onnx a.bin; do printf 'BZhang %0250d ustar' 0 >$file && shown --prompt @$file | cut -c 1-40; done
echo "== a token that begins every text"
cp -r "$M" llama
cat >change.py <<'P'
import json
with open("llama/tokenizer.json", encoding="utf-8") as f:
    o = json.load(f)
o["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                       "special_tokens": {"<|endoftext|>": {"id": "", "ids": [500], "tokens": []}}}
with open("llama/tokenizer.json", "w", encoding="utf-8") as f:
    json.dump(o, f)
P
$PYTHON change.py
M=llama shown --prompt hello
M=llama shown --prompt hello --no-special-tokens
echo "== vocab.json and merges.txt"
cp -r "$M" older
cat >change.py <<'P'
import json, os
with open("older/tokenizer.json", encoding="utf-8") as f:
    o = json.load(f)
os.unlink("older/tokenizer.json")
with open("older/vocab.json", "w", encoding="utf-8") as f:
    json.dump(o["model"]["vocab"], f)
with open("older/merges.txt", "w", encoding="utf-8") as f:
    f.write("\n".join(["#version: 0.2"] + [" ".join(m) for m in o["model"]["merges"]]) + "\n")
P
$PYTHON change.py
vernier capture ref older --prompt "@$FIXTURES/prompts/p017.txt" -o a.h5 --force 2>/dev/null
same "older files"
echo "== refused"
try() { echo "\$ vernier $*"; vernier "$@" </dev/null >said 2>&1; s=$?; head -n 1 said; rm said; echo "[$s]"; }
rm -f a.h5 b.h5
try capture ref "$M" -o a.h5 --prompt ""
try capture ref "$M" -o a.h5 --prompt @nowhere.txt
: >empty.txt
try capture ref "$M" -o a.h5 --prompt @empty.txt
try capture ref "$M" -o a.h5 --prompt x --ids 1
try capture ref "$M" -o a.h5 --ids 1 --no-special-tokens
$PYTHON -c "print('word ' * 400)" >long.txt
try capture ref "$M" -o a.h5 --prompt @long.txt
try capture ref nowhere -o a.h5 --prompt x

echo "== a comparison says what the worst token is"
vernier capture ref "$M" --prompt 'He said: "Dïaz' -o a.h5 2>/dev/null
cp a.h5 d.h5
$PYTHON -c "
import editing as h5py
f = h5py.File('d.h5', 'r+'); f['step.0/layer1/q_rope'][6, 2] *= 2"
vernier compare a.h5 d.h5 | grep -E '^ +worst element' | sed 's/: reference.*//'
rm a.h5 d.h5

broken() { # name, a statement that changes the file o, a text
	cp -r "$M" m
	$PYTHON -c "
import json
with open('m/tokenizer.json', encoding='utf-8') as f:
    o = json.load(f)
$2
with open('m/tokenizer.json', 'w', encoding='utf-8') as f:
    f.write(o if isinstance(o, str) else json.dumps(o))"
	echo "== $1"
	vernier capture ref m --prompt "${3:-x}" -o a.h5
	echo "[$?]"
	vernier capture ref m --ids 1,2 -o b.h5 2>said
	echo "[$?] $(grep warning said | cut -c 1-60)"
	rm -rf m b.h5
}
broken "no tokenizer" "o = ''"
broken "cut short" "o = json.dumps(o)[:5000]"
broken "another model" "o['model']['type'] = 'Unigram'"
broken "no merges" "del o['model']['merges']"
broken "a merge of nothing" "o['model']['merges'][3] = ['q', 'q']"
broken "two tokens with one id" "o['model']['vocab']['!'] = 7"
broken "an id out of range" "o['model']['vocab']['new'] = 1 << 40"
broken "a pattern that does not compile" "o['pre_tokenizer']['pretokenizers'][0]['pattern']['Regex'] = '(a'"
broken "another pattern" "o['pre_tokenizer']['pretokenizers'][0]['pattern']['Regex'] = r'\w+'"
broken "another normalizer" "o['normalizer']['type'] = 'NFKC'"
broken "another pre-tokenizer" "o['pre_tokenizer'] = {'type': 'Metaspace'}"
broken "ids beyond the model" "o['added_tokens'].append(dict(o['added_tokens'][0], id=600, content='<x>'))" 'a<x>'
cp -r "$M" m
rm m/tokenizer.json
vernier capture ref m --prompt x -o a.h5
echo "[$?]"
echo "left behind:" *.h5*

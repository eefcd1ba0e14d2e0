# Manners: misspelt words are answered with the likely ones, token ids are read in every form, and a
# report proposes the next command.
M=$FIXTURES/qwen2-trained
try() { echo "\$ vernier $*"; vernier "$@" </dev/null >said 2>&1; s=$?; head -n 1 said; rm -f said; echo "[$s]"; }
ids() { vernier show "$1" --format json | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['token_ids'])"; }

echo "== help fits a screen of 24 lines of 80 columns"
vernier help | awk 'length > 80 { wide++ } END { print (NR <= 24 ? "fits" : NR " lines"), wide + 0, "too wide" }'
$PYTHON "$TESTS/support/silent.py" --most 60 --show -- "$VERNIER" compare --help | tr -d '\r' |
	awk '/^silent/ { next } length > 80 { wide++ } END { print wide + 0, "too wide on a terminal of 80 columns" }'
for columns in 79 60 40; do
	for command in help $(vernier help | awk 'NF == 0 { block++ } NF && block == 1 { print $1 }'); do
		COLUMNS=$columns vernier $command --help
	done |
		awk -v columns=$columns \
			'length > columns { print; wide++ } END { print wide + 0, "too wide for", columns, "columns" }'
done
$PYTHON "$TESTS/support/silent.py" --most 60 --show -- sh -c 'stty cols 60; "$VERNIER" help' | tr -d '\r' |
	awk '/^silent/ { next } length > 60 { wide++ } END { print wide + 0, "too wide on a terminal of 60 columns" }'
echo "== a number in the title of a mistake"
for id in N1 R5 R3b R2.1.5e5; do vernier help $id; done
for word in help -h --help; do vernier $word | cmp - <(vernier help) && echo "$word: the same"; done
for word in version -v --version; do vernier $word | sed 's/[0-9.]*$/N/'; done
vernier help help | cmp - <(vernier --help --help) && echo "--help --help: the options of help"
vernier help version | cmp - <(vernier --version --help) && echo "--version --help: the options of version"

echo "== did you mean"
try compar
try verison
try --json compare a.h5 b.h5
try compare --json
try compare --modle x
try compare --fo
try show x.h5 --format jsn
try capture ref "$M" --ids 1 -o a.h5 --precision fp16
try capture ref "$M" --ids 1 -o a.h5 --precision float32
try evaluate "$M" --ids 1 --precision bf61
try isolate "$M" --ids 1 --reference-precision half
try capture ref "$M" --ids 1 -o a.h5 --points 'layer*.q_rop'
for glob in q_rope qrop 'attn_*' rope layer1 nothing; do try capture ref "$M" --ids 1 -o a.h5 --points "$glob"; done
try capture ref "$M" --ids 1 -o a.h5 --inject R2.1e5@layer0
try diff a.h5 b.h5
try compare a.h5 b.h5 --rtol 1e-3
try limits fp16-acc32
vernier help usage | cmp - <(vernier help usage.md)
echo Hello >a.txt
try capture ref "$M" --prompt a.txt --points embed -o name.h5
try points "$M" --faults=R2.1e5

echo "== token ids"
for list in 1,2,3 "1 2 3" "1, 2, 3" "[1,2,3]" " [[1, 2, 3]] " '{"input_ids": [1, 2, 3]}'; do
	vernier capture ref "$M" --ids "$list" -o a.h5 --force 2>err || cat err
	ids a.h5
done
echo '{"model": "x", "ids": [4, 5]}' >ids.json
vernier capture ref "$M" --ids @ids.json -o a.h5 --force 2>err || cat err
ids a.h5
for list in '[1,"2"]' '[1,2' '{"tokens":[1]}' '[[1],[2]]' '[]' '[1.5]' '[-1]' '[2147483648]' ids.json '1,,2' '1 2 x'; do
	try capture ref "$M" --ids "$list" -o b.h5
done
vernier capture ref "$M" --ids 54,71,263,271,68,286,485,64,74,278,285,466,413,461,11,271,54 --decode 3 -o ref.h5 \
	2>err || cat err
vernier capture ref "$M" --ids-from ref.h5 --force-ids-from ref.h5 -o again.h5 2>err || cat err
[ "$(ids ref.h5)" = "$(ids again.h5)" ] && echo "the same tokens, decoded ones too"
vernier compare ref.h5 again.h5 --bitwise | tail -n 1
try capture ref "$M" --ids-from a.h5 --force-ids-from a.h5 -o b.h5
try capture ref "$M" --ids-from ref.h5 --ids 1 -o b.h5
try capture ref "$M" --ids-from ref.h5 --prompt x -o b.h5
try capture ref "$M" --ids-from ref.h5 --decode 2 --force-ids-from ref.h5 -o b.h5
try capture ref "$M" --ids-from nowhere.h5 -o b.h5
try capture ref "$M" --ids-from ids.json -o b.h5
try capture ref "$M" --ids 1 --force-ids-from ids.json -o b.h5
try capture ref "$M" --ids-from "$M/config.json" -o b.h5

echo "== swapped files, and files that are not comparable"
vernier capture ref "$M" --ids-from ref.h5 --force-ids-from ref.h5 --precision f16 -o half.h5 2>err || cat err
vernier compare half.h5 again.h5 --points embed 2>&1 | grep swapped
vernier compare again.h5 half.h5 --points embed 2>&1 | grep -c swapped
vernier capture ref "$FIXTURES/llama-trained" --ids 1,2,3 -o llama.h5 2>err || cat err
vernier compare ref.h5 llama.h5 2>&1 | head -n 2
try compare ref.h5 again.h5 --points layer0.qrope
try show ref.h5 layer0.qrope
try show ref.h5 step.1/layer0.qrope
try show ref.h5 q_rope
try show ref.h5 step.7

echo "== reports: a line of what was written, -o - is stdout, what to type next"
vernier capture ref "$M" --ids-from ref.h5 --inject 'R2.1e4@layer1.q_rope' -o 'a fault.h5' 2>err || cat err
vernier capture ref "$M" --ids-from ref.h5 -o prompt.h5 2>err || cat err
try compare prompt.h5 'a fault.h5' -o r.html -o r.json
try show prompt.h5 -o shown.json
try show prompt.h5 layer0.embed -o shown.html
try show prompt.h5 --check -o checked.txt
try show prompt.h5 -o checked.txt
try show prompt.h5 embed --values embed.npy -o x.txt
try show prompt.h5 embed --values embed.npy
try show prompt.h5 step.0 --values step.npy
try show prompt.h5 layer1
vernier show ref.h5 step.2 --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['schema'], j['step'], len(j['tensors']), {t['step'] for t in j['tensors']})"
try weights prompt.h5 half.h5 -o weights.json
vernier show prompt.h5 embed | cmp - <(vernier show prompt.h5 embed -o -) && echo "show -o - is stdout"
for f in shown weights; do $PYTHON -c "import json, sys; print(json.load(open(sys.argv[1]))['schema'])" $f.json; done
vernier compare prompt.h5 'a fault.h5' -o - | head -n 2
vernier compare prompt.h5 'a fault.h5' --format json -o - | head -n 2
vernier compare prompt.h5 'a fault.h5' -o - --format json | $PYTHON -m json.tool >both.json &&
	echo "-o - --format json is one report"
next() { $PYTHON -c "import json, sys; print(*json.load(open(sys.argv[1]))['next'], sep='\n')" "$1"; }
next r.json
eval "$(next r.json | sed -n 1p) -o e.json -o e.txt"
next e.json
grep -A 3 'neighbours' e.txt
vernier compare prompt.h5 prompt.h5 --allow itself -o w.json >said; next w.json

echo "== compare.md explains every column of the table"
vernier compare ref.h5 half.h5 --model "$M" --all | sed -n 's/^ *\(checkpoint  \)/\1/p' | sed 's/   */\n/g' |
	while read -r column; do
	vernier help compare.md | grep -c "^| \`$column\` | [^|]*[a-z]" | sed "s/^/$column: /"
done

echo "== the mistakes of a first hour say what to do next"
try capture "$M" --ids 1,2 -o b.h5
try capture "$M" gpu --ids 1,2 -o b.h5
try capture ref prompt.h5 --ids 1,2 -o b.h5
try capture ref owner/model --ids 1,2 -o b.h5
mkdir downloaded
try capture ref downloaded --ids 1,2 -o b.h5
touch downloaded/model-Q8_0.gguf downloaded/model-Q4_K.gguf
try capture ref downloaded --ids 1,2 -o b.h5
try compare prompt.h5 "$M"
try explain prompt.h5 'a fault.h5' "$M"
try compare prompt.h5 'a fault.h5' "$FIXTURES/gguf/qwen2-trained.f16.gguf"
try compare "$FIXTURES/gguf/qwen2-trained.f16.gguf" "$M"
try compare "$M/../gguf/qwen2-trained.f16.gguf"
mkdir ranks
try compare prompt.h5 ranks
try compare prompt.h5 'a fault.h5' ranks
try compare prompt.h5 ids.json
$PYTHON -c "
import h5py
with h5py.File('foreign.h5', 'w') as f:
    f['layer0/q'] = [1.0]"
try compare prompt.h5 foreign.h5
try import foreign.h5 -o b.h5
try explain prompt.h5 again.h5
cp -r "$M" 'a model'
vernier capture ref 'a model' --ids 1,2 -o moved.h5 2>err || cat err
try explain moved.h5 moved.h5
rm -r 'a model'
try explain moved.h5 moved.h5
vernier show moved.h5 --format json | grep '"vernier compare'
for limits in fp61.yaml q8 nowhere; do try compare prompt.h5 half.h5 --limits $limits; done
vernier compare prompt.h5 'a fault.h5' --model "$FIXTURES/llama-trained" 2>&1 | head -n 1
vernier compare half.h5 again.h5 -o swapped.json --points embed >said; next swapped.json
vernier compare half.h5 again.h5 --model "$M" -o swapped.json --points embed --force >said; next swapped.json
vernier compare prompt.h5 'a fault.h5' --bitwise -o bits.json >said; next bits.json
vernier compare ref.h5 half.h5 --bitwise -o formats.json >said; next formats.json
vernier compare prompt.h5 ref.h5 --format json 2>/dev/null >refused.json; echo "[$?]"; cat refused.json

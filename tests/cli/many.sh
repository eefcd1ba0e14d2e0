# Several candidates judged by one reference: a column each, the odd one out,
# what cannot be compared.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p070.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$M" --ids "$ids" --precision f16 -o half.h5
q vernier capture ref "$M" --ids "$ids" --precision f16 --inject R1@layer1 -o rope.h5
q vernier capture ref "$M" --ids "$ids" --precision bf16 -o bf16.h5
q vernier capture ref "$M" --ids 1,2,3 -o other.h5
q vernier capture ref "$M" --ids "$ids" --points 'layer0.*' -o part.h5
say compare ref.h5 half.h5 bf16.h5 --model "$M"
say compare ref.h5 half.h5 rope.h5 bf16.h5 --model "$M" --points 'layer1.*'
say compare ref.h5 half.h5 rope.h5 --points '*.k_rope' --all

echo "== all are outside"
q vernier capture ref "$M" --ids "$ids" --inject R1@layer1 -o rope2.h5
vernier compare ref.h5 rope.h5 rope2.h5 | tail -n 7

echo "== one candidate that cannot be compared does not keep the others from it"
head -c 300 half.h5 >short.h5
say compare ref.h5 other.h5 half.h5 short.h5 none.h5 part.h5 --points 'layer0.q_*' --points 'layer1.q_*'
say compare none.h5 half.h5 rope.h5

echo "== the other forms"
say compare ref.h5 half.h5 rope.h5 short.h5 -o r.md -o r.json -o r.html
grep -c '^| `layer' r.md
grep -oE '<h1.*</h1>|<p>[0-9].*' r.html
grep -h 'judged by' r.md r.html
grep -hE '^- (next|then)|class="next"' r.md r.html
$PYTHON - <<'PY'
import json, subprocess, os
j = json.load(open("r.json"))
print(j["schema"], j["verdict"], j["reference"], len(j["checkpoints"]))
print(*j["next"], sep="\n")
for c in j["candidates"]:
    print(c["about"], c["report"] and c["report"]["schema"])
print(*(f"{p['name']}:{p['odd_one_out']}:{''.join(p['outside'])}" for p in j["checkpoints"][18:24]))
alone = json.loads(subprocess.run([os.environ["VERNIER"], "compare", "ref.h5", "rope.h5", "--format", "json"],
                                  capture_output=True).stdout)
print("as alone:", alone == j["candidates"][1]["report"])
PY

echo "== in whatever order, and with whatever threads"
vernier compare ref.h5 rope.h5 half.h5 bf16.h5 --format json --threads 1 >1.json
vernier compare ref.h5 rope.h5 half.h5 bf16.h5 --format json --threads 3 >3.json
cmp 1.json 3.json && echo same

echo "== a process that is killed costs time only"
"$VERNIER" compare ref.h5 rope.h5 half.h5 bf16.h5 --format json --threads 4 >killed.json &
until read -r one two three </proc/$!/task/$!/children; [ -n "$two" ]; do kill -0 $! || break; done 2>/dev/null
kill -9 $two && echo killed
wait $!; echo "[$?]"
cmp 1.json killed.json && echo same

echo "== sixteen"
many=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cp half.h5 m$i.h5; many="$many m$i.h5"; done
vernier compare ref.h5 $many | tail -n 1
say compare ref.h5 $many rope.h5

echo "== without a reference the majority decides"
say compare --vote half.h5 rope.h5 bf16.h5 --points 'layer1.*_rope'
vernier compare --vote half.h5 rope.h5 bf16.h5 --points 'layer1.*_rope' -o v.md -o v.html >/dev/null
grep '^| [A-C]' v.md; grep -o '<tr><th scope="row">[A-C]<.*' v.html
say compare --vote rope.h5 short.h5 ref.h5 half.h5 --points 'layer1.*_rope'
vernier compare --vote half.h5 rope.h5 bf16.h5 -o vote.json -o vote.html
$PYTHON -c "
import json
j = json.load(open('vote.json'))
print(j['reference'], j['elected'], [c['report'] and c['report']['verdict'] for c in j['candidates']],
      sum(p['odd_one_out'] == 'B' for p in j['checkpoints']))"
echo "== two against two, and nothing to vote on"
cp half.h5 half2.h5; cp rope.h5 rope3.h5
vernier compare --vote half.h5 half2.h5 rope.h5 rope3.h5 --points 'layer1.*_rope' | tail -n 2
echo "== the elected one is the reference of the command"
q vernier capture ref "$M" --ids "$ids" --precision f16 --points 'layer0.*' -o half0.h5
vernier compare --vote rope.h5 half.h5 half2.h5 --points 'layer1.*_rope' | grep next
echo "== who recorded less is not outvoted; who has nothing in common is not judged"
vernier compare --vote half0.h5 half.h5 half2.h5 | grep -E 'majority: |^(all|NOT)'
q vernier capture ref "$M" --ids "$ids" --precision f16 --points 'layer1.q_rope' -o one.h5
vernier compare --vote half0.h5 one.h5 one.h5 --allow itself 2>&1 | grep -E 'majority: |none of'
say compare --vote half.h5 rope.h5
say compare --vote other.h5 short.h5 half.h5
say compare --vote half.h5 rope.h5 half.h5
say compare --vote half.h5 rope.h5 bf16.h5 --floor ref.h5

echo "== no vote without every pair: the second and third agree with the first, which does not say its weights"
q vernier capture ref "$M" --ids 1,2,3 --points final_norm -o a.h5
cp -r "$M" other
$PYTHON - <<'PY'
import h5py, json, struct
with h5py.File("a.h5", "r+") as f:
    del f["model/weights"]
with open("other/model.safetensors", "r+b") as f:
    n = struct.unpack("<Q", f.read(8))[0]
    f.seek(8 + n + json.loads(f.read(n))["model.norm.weight"]["data_offsets"][0])
    first = f.read(1)[0]
    f.seek(-1, 1)
    f.write(bytes([first ^ 1]))
PY
q vernier capture ref "$M" --ids 1,2,3 --points final_norm -o b.h5
q vernier capture ref other --ids 1,2,3 --points final_norm -o c.h5
for pair in "a.h5 b.h5" "a.h5 c.h5" "b.h5 c.h5"; do
	vernier compare $pair -q --allow weights,itself >/dev/null
	echo $?
done
say compare --vote a.h5 b.h5 c.h5
vernier compare --vote a.h5 b.h5 c.h5 --allow weights | tail -n 1

echo "== refused"
say compare ref.h5 half.h5 rope.h5 half.h5
say compare ref.h5 half.h5 ref.h5
say compare ref.h5 half.h5 rope.h5 --format junit
say compare ref.h5 half.h5 rope.h5 --baseline r.json
say compare ref.h5 half.h5 rope.h5 --format text -o half.h5 --force
say explain ref.h5 half.h5 rope.h5 --model "$M"
mkdir folder
say compare ref.h5 half.h5 folder

# Several candidates that are folders of recordings, or the ranks of runs.
M=$FIXTURES/qwen2-trained
q() { "$@" 2>/dev/null; }
mkdir refs half bf16 wrong
for p in p001 p002 p017; do
	ids=@$FIXTURES/prompts/$p.ids
	q vernier capture ref "$M" --ids "$ids" -o refs/$p.h5
	q vernier capture ref "$M" --ids "$ids" --precision f16 -o half/$p.h5
	q vernier capture ref "$M" --ids "$ids" --precision bf16 -o bf16/$p.h5
	q vernier capture ref "$M" --ids "$ids" --precision f16 --inject R1@layer1 -o wrong/$p.h5
done
say compare refs half bf16 wrong --points '*_rope' -o r.md -o r.json -o r.html --summary whole.json
ls r.*
$PYTHON - <<'PY'
import json, os, subprocess
for p in "p001", "p002", "p017":
    j = json.load(open(f"r.{p}.json"))
    alone = subprocess.run([os.environ["VERNIER"], "compare", f"refs/{p}.h5",
                            *(f"{d}/{p}.h5" for d in ("half", "bf16", "wrong")), "--points", "*_rope", "--format",
                            "json"],
                           capture_output=True).stdout
    print(p, j["schema"], j["verdict"], "as files:", json.loads(alone) == j)
j = json.load(open("whole.json"))
print(j["schema"], j["verdict"], j["reference"], j["candidates"], j["total"], j["next"])
print(*(f"{p['name']} {p['in']} {p['status']} {p['each']}" for p in j["pairs"]), sep="\n")
PY
echo "== shared by processes"
for n in 1 2 3 7; do
	mkdir $n
	for i in $(seq $n); do
		vernier compare refs half bf16 wrong --points '*_rope' --part $i/$n -q --summary $n/$i.json
		echo -n "$? "
	done
	vernier merge $n/*.json -o $n/all.json >/dev/null; echo "[$?]"
	cmp $n/all.json whole.json && echo "$n: the same bytes"
done
vernier compare refs half bf16 half/../wrong --points '*_rope' --part 2/2 -q --summary other.json
say merge 2/1.json other.json
sed 's/"each": \[/"each": ["trouble",/' 2/1.json >each.json
say merge each.json 2/2.json
sed 's/"reference",$/"@",/' 2/1.json >at.json
say merge at.json 2/2.json

echo "== files that are not in every folder"
rm bf16/p002.h5 wrong/p001.h5; echo no >wrong/p001.h5
cp refs/p001.h5 refs/alone.h5; cp half/p001.h5 half/extra.h5; cp bf16/p001.h5 bf16/extra.h5
say compare refs half bf16 wrong -q
vernier compare refs half bf16 wrong --summary s.json 2>/dev/null | sed -n '/^== together/,$p'
vernier compare refs half bf16 wrong --allow missing,extra 2>/dev/null | sed -n '/^== together/,$p'
printf 'version: 1\nname: l\ndefaults:\n  nmse: 1\n  missing: allowed\n' >l.yaml
for how in "--limits l.yaml" "--allow missing,extra --strict"; do
	echo "$how"; vernier compare refs half bf16 wrong $how 2>/dev/null | grep 'alone.h5\|extra.h5'
done
$PYTHON -c "
import json
print(*(f\"{p['name']} {p['in']} {p['each']}\" for p in json.load(open('s.json'))['pairs']), sep='\n')"

echo "== ranks: a folder or files joined by commas are one candidate"
mkdir two six
$PYTHON - <<'PY'
import h5py, shutil
def ranks(source, n, name):
    for r in range(n):
        shutil.copy(source, name % r)
        with h5py.File(name % r, "r+") as f:
            f["run"].attrs.update(rank=r, world_size=n)
            for layer in "01":
                d = f[f"step.0/layer{layer}/q_rope"]
                kept = {k: v for k, v in d.attrs.items()
                        if k in ("order", "layer", "point", "op", "basis", "axes", "dtype")}
                x = d[:, r * d.shape[1] // n : (r + 1) * d.shape[1] // n]
                del f[f"step.0/layer{layer}/q_rope"]
                f[f"step.0/layer{layer}"].create_dataset("q_rope", data=x).attrs.update(kept)
print("heads", h5py.File("half/p017.h5", "r")["step.0/layer0/q_rope"].shape[1])
ranks("half/p017.h5", 2, "two/rank%d.h5")
ranks("wrong/p017.h5", 6, "six/rank%d.h5")
ranks("bf16/p017.h5", 2, "b%d.h5")
PY
S="--points layer1.*_rope"
say compare refs/p017.h5 --shard two/ six b0.h5,b1.h5 wrong/p017.h5 $S
say compare refs/p017.h5 --shard two -q
vernier compare refs/p017.h5 --shard two/rank1.h5 two/rank0.h5 >files
vernier compare refs/p017.h5 --shard two >folder
cmp files folder && echo "the same"
cp half/p017.h5 a,b.h5
say compare refs/p017.h5 --shard a,b.h5 two $S
say compare refs/p017.h5 --shard six two -o r.json $S --force
vernier compare refs/p017.h5 --shard six two $S --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print([c['about']['path'] for c in j['candidates']], j['verdict'], j['next'])"

echo "== refused"
say compare refs half bf16 half
say compare refs half refs
say compare refs half refs/p017.h5
say compare refs/p017.h5 half bf16
say compare --vote refs half bf16
say compare refs half bf16 --baseline r.json
say compare refs half bf16 --format junit -o j.xml
say compare refs half bf16 --format json
say explain refs half bf16 --model "$M"
say compare refs --shard two six
say compare refs/p017.h5 --shard two
say compare refs/p017.h5 --shard two two/rank0.h5
say compare refs/p017.h5 --shard b0.h5,,b1.h5 two
mkdir none
say compare refs/p017.h5 --shard none
say compare refs/p017.h5 --shard none,two
say compare refs/p017.h5 --shard b0.h5
say compare refs/p017.h5 --shard b0.h5,b1.h5 two -o b1.h5 --force
say compare refs/p017.h5 --shard two six --summary s2.json

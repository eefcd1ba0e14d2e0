# Two folders, their pairs shared by several processes.
. "$TESTS/cli/two_folders.bash"
touch refs/notes.txt; mkdir cands/old
vernier compare refs cands -q --summary whole.json 2>/dev/null; echo "[$?]"
sed -E 's/"work": ".*"/"work": "..."/; s/"[0-9a-f]{16} /"DIGEST /' whole.json
for n in 1 2 3 7; do
	mkdir $n
	for i in $(seq $n); do
		vernier compare refs cands --part $i/$n -q --summary $n/$i.json -o $n/r.json 2>/dev/null
		echo -n "$? "
	done
	vernier merge $(ls $n/[0-9].json | sort -r) -o $n/all.json >$n/said; echo "[$?]"
	cmp $n/all.json whole.json && echo "$n: the same bytes"
	cmp $n/said 1/said && ls $n/r.*.json | wc -l
done
cat 1/said
echo "== one part"
vernier compare refs cands --part 2/2 2>/dev/null | sed -n '/^== together/,$p'
SLURM_PROCID=1 SLURM_NTASKS=2 vernier compare refs cands --part 2 -q --summary slurm.json 2>/dev/null
cmp slurm.json 2/2.json && echo "the same by srun"
echo "== refused"
say() { echo "\$ vernier $*"; vernier "$@" 2>&1 >/dev/null | grep -v -- --help; echo "[${PIPESTATUS[0]}]"; }
say merge
say merge 2/1.json
say merge 2/1.json 2/2.json 2/1.json
say merge 2/1.json 3/2.json
vernier compare refs cands --part 2/2 -q --points embed --summary points.json 2>/dev/null
say merge 2/1.json points.json
echo "== what was asked counts, however long the paths are"
long=$(printf '%0250d' 0)
mkdir -p $long/$long; cp -r refs $long/$long
part() { vernier compare $long/$long/refs cands --part $1/2 -q --summary $2.json "${@:3}" 2>/dev/null; }
part 1 embed --points embed; part 2 logits --points logits; part 2 rest --points embed
say merge embed.json logits.json
say merge embed.json rest.json
part 1 half --model "$M" --floor-precision f16; part 2 bf16 --model "$M" --floor-precision bf16
say merge half.json bf16.json
echo "== what limits and name maps say counts, not what they are called"
rule() { printf 'version: 1\nname: x\nrules:\n  - { %s, why: test }\n' "$1"; }
printf 'version: 1\nname: y\nextends: base.yaml\n' >own.yaml
rule 'match: "*", nmse: 0.5' >base.yaml; part 1 was --limits own.yaml
part 2 same --limits own.yaml; rule 'match: "*", nmse: 0.9' >base.yaml; part 2 is --limits own.yaml
say merge was.json is.json; say merge was.json same.json
rm was.json same.json is.json
rule 'from: embed, to: embed' | grep -v name >map.yaml; sed -i 's/, why: test//' map.yaml; part 1 was --names map.yaml
part 2 same --names map.yaml; echo '# another' >>map.yaml; part 2 is --names map.yaml
say merge was.json is.json; say merge was.json same.json
cp -r "$TESTS/../specs" shipped; cp map.yaml shipped/names/own.yaml; export VERNIER_SPECS=$PWD/shipped
rm was.json same.json is.json
part 1 was --names own; part 2 same --names own; echo '# more' >>shipped/names/own.yaml; part 2 is --names own
say merge was.json is.json; say merge was.json same.json; unset VERNIER_SPECS
echo "== so do a model, and the limits that nobody names"
rm was.json same.json is.json
cp -r "$M" m; part 1 was --model m --allow config; part 2 same --model m --allow config
sed -i 's/"max_position_embeddings": [0-9]*/&0/' m/config.json; part 2 is --model m --allow config
say merge was.json is.json; say merge was.json same.json; rm was.json same.json is.json
export VERNIER_SPECS=$PWD/shipped; part 1 was; part 2 same
sed -i 's/nmse_over_floor: [0-9.e]*/nmse_over_floor: 1e9/' shipped/limits/*.yaml; part 2 is
say merge was.json is.json; say merge was.json same.json; unset VERNIER_SPECS
echo "== so does what the recordings, a floor and a baseline hold, of the same size"
rm was.json same.json is.json; cp -r refs floors
part 1 was --floor floors; part 2 same --floor floors
for f in refs/p001 cands/p017 floors/p002; do
	f=$f.h5; [ ${f%%/*} = refs ] && f=$long/$long/$f
	cp $f kept; $PYTHON - $f <<'P'
import sys
b = bytearray(open(sys.argv[1], "rb").read())
at = b.index(b"Z", b.index(b"-", b.index(b"created")))
b[at - 1] ^= 1
open(sys.argv[1], "wb").write(b)
P
	rm -f is.json; part 2 is --floor floors; say merge was.json is.json; cp kept $f
done
say merge was.json same.json
cat >remade.py <<'P'
import os, shutil, subprocess, sys
p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
for line in p.stdout:
    if line == b"== p001.h5\n":
        shutil.copy("cands/p017.h5", "new")
        os.replace("new", "cands/p017.h5")
print(p.wait())
P
$PYTHON remade.py compare refs cands --part 1/1 --threads 1 --summary during.json; test -e during.json && echo LEFT
part 1 all; part 2 all2; vernier merge all.json all2.json -q -o both.json; grep -A 1 '"next"' both.json
say merge whole.json
say merge 2/r.p001.json 2/2.json
head -c 300 2/2.json >cut.json; say merge 2/1.json cut.json
sed '0,/"status": ./s//"status": 3/' 2/2.json >status.json
say merge 2/1.json status.json
$PYTHON -c "
import json
j = json.load(open('2/2.json')); j['pairs'].pop(); json.dump(j, open('fewer.json', 'w'))
j = json.load(open('2/2.json'))
j['pairs'] += json.load(open('2/1.json'))['pairs']
j['pairs'].sort(key=lambda p: p['name'])
json.dump(j, open('more.json', 'w'))
j['pairs'].reverse(); json.dump(j, open('order.json', 'w'))"
say merge 2/1.json fewer.json
say merge 2/1.json more.json
say merge 2/1.json order.json
sed 's/"both"/"none"/' 2/2.json >holders.json; say merge 2/1.json holders.json
echo "== a status that its verdict denies"
sed 's/"status": [12]/"status": 0/' 2/2.json >denied.json; say merge 2/1.json denied.json
sed '0,/"verdict": "[a-z]*"/s//"verdict": "within"/' 2/2.json >denied.json; say merge 2/1.json denied.json
say merge 2/1.json absent.json
say merge 2/1.json 2/2.json -o 2/2.json --force
say merge 2/1.json 2/2.json -o whole.json
say merge 2/1.json 2/2.json -o whole.json --force -q
say compare refs/p001.h5 cands/p001.h5 --part 1/2
say compare refs/p001.h5 cands/p001.h5 --summary s.json
say compare refs cands --part 3/2
say compare refs cands --part 2
echo mine >notes
say compare refs cands --summary notes --force -q

# The report of an earlier comparison in another form: what vernier compare writes, without the
# recordings; and what is refused.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7 --precision f16 --inject R1@layer1 -o rope.h5 2>/dev/null
for f in json html md xml csv txt; do
	vernier compare ref.h5 rope.h5 --model "$M" --explain -q -o was.$f; echo "[$?]"
done
rm ref.h5 rope.h5
for f in json html md xml csv txt; do
	vernier report was.json -o now.$f; echo "[$?]"
	cmp was.$f now.$f && echo "the same as $f"
done
vernier report was.json | cmp - was.txt && echo "the same on stdout"
vernier report was.json --format junit | cmp - was.xml && echo "the same in the form that is asked for"

echo "== the schema before"
$PYTHON - <<'P'
import json
j = json.load(open("was.json"))
j["schema"] = "vernier-compare/2"
for key in ("verdict_words", "start", "origins_are", "cleared", "explained", "changes", "measured", "bitwise",
            "replayed", "plan"):
    del j[key]
for c in j["checkpoints"]:
    for key in ("broken", "vacuous", "finite", "first_nonfinite", "floor_of_steps"):
        c.pop(key, None)
json.dump(j, open("older.json", "w"))
P
vernier report older.json | sed -n '1,2p;/^verdict/p'
vernier report older.json --format html | grep -c '<html'

echo "== what is refused"
try() { echo "\$ $1"; $PYTHON - "$1" <<'P'
import json, sys
j = json.load(open("was.json"))
c = {x["name"]: x for x in j["checkpoints"]}
exec(sys.argv[1])
json.dump(j, open("x.json", "w"))
P
	vernier report x.json 2>&1 | head -3; }
try 'j["schema"] = "vernier-compare/4"'
try 'j["schema"] = "vernier-show/1"'
try 'del j["schema"]'
try 'del j["limits"]'
try 'del j["start"]'
try 'j["warnings"] = "none"'
try 'j["verdict"] = "within"'
try 'j["verdict"] = "known"'
try 'j["strict"]["decided"] = True'
try 'for x in c.values(): x["fails"] = False'
try 'c["layer1.q_rope"]["status"] = "within"'
try 'c["layer1.q_rope"]["fails"] = False; c["logits"]["fails"] = False; j["checkpoints"] = [c["embed"]]'
try 'j["first_divergence"] = "embed"'
try 'j["first_divergence"] = "nothing"'
try 'j["origins"] = ["embed"]'
try 'j["checkpoints"].append(c["embed"])'
try 'del c["embed"]["metrics"]'
try 'c["embed"]["metrics"]["distance"] = 1'
try 'c["embed"]["shape"] = [3, -1]'
try 'c["embed"]["limits"][0]["holds"] = None'
try 'c["layer1.q_rope"]["broken"] = 99'
try 'c["layer1.attn_context"]["replay"]["fault_at"] = "nothing"'
try 'j["divergences"][0]["inputs"] = [{"name": "nothing"}]'
head -c 3000 was.json >x.json; vernier report x.json
echo '[]' >x.json; vernier report x.json
: >x.json; vernier report x.json
vernier report was.json -o was.json; vernier report was.json -o now.html; vernier report was.json was.json
vernier report was.json --format xml; vernier report nothing.json

# --strict: a warning is a failure, by name, in every command that warns and in every report.
model=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
vernier capture ref "$model" --ids "$ids" -o ref.h5 2>/dev/null
vernier capture ref "$model" --ids "$ids" --precision f16 -o half.h5 2>/dev/null
vernier capture ref "$model" --ids "$ids" --precision f16 -o floor.h5 2>/dev/null
cat > w.yaml <<'Y'
version: 1
name: w
defaults: { cosine: -1, nonfinite: 1.0e300, max_abs: 1.0e40 }
rules:
  - { match: "nothing*", nmse: 0.1, why: "x" }
Y
printf 'version: 1\nname: g\ndefaults: { nmse: 1.0e-3 }\n' > good.yaml
echo "== warnings are seen with -q"
vernier compare ref.h5 half.h5 --limits w.yaml -q; echo $?
echo "== and fail with --strict"
vernier compare ref.h5 half.h5 --limits w.yaml -q --strict; echo $?
echo "== a report on stdout has them, and stderr names them once"
vernier compare ref.h5 half.h5 --limits w.yaml --strict 2>err | grep -E '^(verdict|warning|OUTSIDE)'; cat err
echo "== nothing to warn of"
vernier compare ref.h5 half.h5 --limits good.yaml -q --strict -o good.xml; echo $?
grep -E 'strict|<testsuites' good.xml
echo "== in every report"
vernier compare ref.h5 half.h5 --limits w.yaml -q --strict -o r.json -o r.xml -o r.md -o r.html 2>/dev/null; echo $?
grep -E '"(verdict|summary|strict|asked|decided)"' r.json
grep -A2 -E '<testsuites|classname="strict"' r.xml | cut -c1-100
grep -E 'vernier:|Warning' r.md
grep -E '<h1|<dt>warning' r.html
echo "== two folders"
mkdir a b; cp ref.h5 a/x.h5; cp half.h5 b/x.h5; cp ref.h5 a/y.h5; cp half.h5 b/y.h5
vernier compare a b --limits w.yaml --strict 2>/dev/null | sed -n '/^== together/,$p'; echo "${PIPESTATUS[0]}"
echo "== limits"
vernier limits w.yaml nothing1 --strict; echo $?
vernier limits w.yaml nothing1 --format json >/dev/null; echo $?
vernier limits good.yaml embed --strict >/dev/null; echo $?
echo "== calibrate writes nothing"
python=${PYTHON:-/usr/bin/python3}
$python -c 'import h5py, shutil
shutil.copy("half.h5", "more.h5")
with h5py.File("more.h5", "r+") as f:
    f.create_group("notes")'
vernier calibrate ref.h5 more.h5 -o fit.yaml --strict; echo $?
vernier calibrate ref.h5 more.h5 -o fit.yaml; echo $?
echo "== show, import"
$python - <<'P'
import h5py, shutil
shutil.copy("ref.h5", "cut.h5")
with h5py.File("cut.h5", "r+") as f:
    f.attrs["complete"] = 0
P
vernier show cut.h5 --strict >/dev/null; echo $?
vernier show cut.h5 --check --strict >/dev/null; echo $?
mkdir dump
$python - <<'P'
import json, numpy as np
np.save("dump/1.npy", np.zeros((3, 4), "f4"))
with open("dump/manifest.jsonl", "w") as f:
    for x in {"vernier_dump": 1}, {"run": {"engine": "e", "precision": "f32"}}, {"step": 0, "ids": [1, 2, 3]}, {
        "tensor": "embed", "file": "1.npy", "dtype": "f32", "shape": [3, 4]}:
        f.write(json.dumps(x) + "\n")
P
vernier import dump -o in.h5 --partial --strict; echo $?
vernier import dump -o in2.h5 --partial --strict --dry-run >/dev/null; echo $?
echo "== models"
cp -r "$model" m; printf x > m/tokenizer.json; rm -f m/vocab.json
vernier capture ref m --ids 1,2,3 -o m.h5 --strict 2>&1 | sed 's/ in .* computing.*)//'; echo "${PIPESTATUS[0]}"
vernier evaluate m --ids 1,2,3,4 --candidate ref --decode 0 --strict >/dev/null; echo $?
vernier points m --strict >/dev/null; echo $?
echo "== an incomplete file, however it is shown"
$python -c 'import h5py, shutil
shutil.copy("half.h5", "part.h5")
h5py.File("part.h5", "r+").attrs["complete"] = 0'
for how in "" "--format json" "--weights" "--check" "logits"; do
	vernier show part.h5 $how --strict 2>&1 >/dev/null | tail -1
	echo "${PIPESTATUS[0]}"
done
echo "== several candidates, a vote, a table"
cp half.h5 half2.h5
for how in "compare ref.h5 half.h5 half2.h5" "compare --vote ref.h5 half.h5 half2.h5" \
	"table ref.h5 half.h5 -o t.csv --force"; do
	vernier $how --limits w.yaml >/dev/null; echo $?
	vernier $how --limits w.yaml --strict >/dev/null; echo $?
done
vernier compare --vote ref.h5 half.h5 half2.h5 --limits w.yaml --strict | grep -v '^embed'

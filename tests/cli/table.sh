# vernier table: values and statistics of every checkpoint, side by side.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$M" --ids "$ids" --precision f16 -o half.h5
q vernier capture ref "$M" --ids "$ids" --inject R1@layer1 -o rope.h5
q vernier capture ref "$M" --ids "$ids" --points 'layer0.*' --points all -o all.h5
q vernier capture ref "$M" --ids 1,2,3 -o other.h5
say table ref.h5 half.h5 --points 'layer?.q_rope' --first 4
say table ref.h5 half.h5 rope.h5 --points 'layer?.q_rope' --first 2 --token 5
say table ref.h5 half.h5 --points logits --first 0
say table ref.h5 half.h5 --points layer0.k_rope --token 16 --first 2
say table ref.h5 half.h5 --points layer0.k_rope --token 17 --first 2

echo "== forms"
say table ref.h5 rope.h5 half.h5 --points '*.q_rope' --first 2 --format markdown
say table ref.h5 rope.h5 half.h5 --points '*.q_rope' --first 2 --format csv
say table ref.h5 rope.h5 -o t.html
grep -c '^<tr>' t.html
grep -o '<td class="n out">[^<]*\|<span class="outside">[^<]*' t.html | uniq -c
say table ref.h5 rope.h5 -o t.csv
wc -l <t.csv

say table ref.h5 rope.h5 half.h5 --points '*.q_rope' --first 1 --format json
say table ref.h5 rope.h5 -o t.json

echo "== the numbers are those of the files"
$PYTHON - <<'PY'
import csv, h5py, numpy as np
f = {"reference": h5py.File("ref.h5")["step.0"], "candidate": h5py.File("rope.h5")["step.0"]}
rows, bad = list(csv.reader(open("t.csv"))), 0
head = rows[0]
for row in rows[1:]:
    x, r, c = (f[side][row[0].replace(".", "/")][...].astype(np.float64) for side in (row[2], "reference", "candidate"))
    at = dict(zip(head, row))
    values = np.ravel(x[int(row[1])])[:8]
    close = lambda a, b: np.allclose(float(a), b, rtol=1e-8, atol=1e-12)
    good = all(close(at[f"[{i}]"], v) for i, v in enumerate(values))
    good &= (close(at["min"], x.min()) and close(at["max"], x.max()) and close(at["mean"], x.mean())
             and close(at["rms"], np.sqrt((x * x).mean())))
    if row[2] == "candidate":
        good &= close(at["max abs"], np.abs(c - r).max())
    if np.abs(c - r).max() > 0:  # the worst token is where the error is largest, or as large against its row
        e = np.square((c - r).reshape(len(r), -1)).sum(1) / np.square(r.reshape(len(r), -1)).sum(1)
        good &= e[int(row[1])] >= 0.5 * e.max()
    bad += not good
    if not good: print(row)
print(len(rows) - 1, "lines,", bad, "wrong")

import json, math
t = json.load(open("t.json"))
wrong = 0 if [p["name"] for p in t["checkpoints"]] == [row[0] for row in rows[1::2]] else 1
for p, (r, c) in zip(t["checkpoints"], zip(rows[1::2], rows[2::2])):
    for of, row in ((p["reference"], r), (p["candidates"][0]["tensor"], c)):
        own = [str(p["token"])] + of["values"] + [of[k] for k in ("min", "max", "mean", "rms")]
        wrong += not all(math.isclose(float(a), float(b), rel_tol=1e-8, abs_tol=1e-12) for a,
                         b in zip(own, [row[1]] + row[3:15]))
    wrong += p["candidates"][0]["status"] != c[-2].lower() or not math.isclose(p["candidates"][0]["max_abs"],
                                                                               float(c[-4]), rel_tol=1e-8)
print(len(t["checkpoints"]), "checkpoints in JSON,", wrong, "other than in CSV;", t["schema"], t["verdict"])
PY

echo "== missing tensors, other tokens, trouble"
say table ref.h5 other.h5 half.h5 --points layer0.q_rope --first 1
say table ref.h5 other.h5
say table ref.h5 other.h5 --format json
say table ref.h5 ref.h5
say table ref.h5 none.h5
say table ref.h5
say table ref.h5 half.h5 --token last
say table ref.h5 half.h5 --format xml
say table ref.h5 half.h5 --format text -o half.h5 --force
cp ref.h5 cut.h5
$PYTHON -c "
import editing as h5py
f = h5py.File('cut.h5', 'r+')['step.0']
del f['layer1/q_rope']"
say table ref.h5 half.h5 cut.h5 --points 'layer1.q_rope' --first 2
say table ref.h5 cut.h5 --points 'layer1.q_rope' --first 1 --format json
$PYTHON -c "
import editing as h5py
f = h5py.File('cut.h5', 'r+')['step.0']
f['layer1/k_rope'][0, 0, 1] = float('nan')"
say table ref.h5 cut.h5 --points 'layer1.k_rope' --first 2 --token 0 --format json --allow digest

echo "== compare --all has the largest relative error as well"
vernier compare ref.h5 half.h5 --points '*.q_rope' --all | grep -A2 checkpoint

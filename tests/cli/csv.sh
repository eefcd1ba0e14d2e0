# The report as CSV: a row per checkpoint, the numbers of the JSON report, an empty cell for what
# was not measured.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7 --precision f16 --inject R1@layer1 -o rope.h5 2>/dev/null
vernier compare ref.h5 rope.h5 --model "$M" -q -o run.csv -o run.json; echo "[$?]"
head -1 run.csv
vernier compare ref.h5 rope.h5 --model "$M" --format csv 2>/dev/null | cmp - run.csv && echo "the same on stdout"
$PYTHON - <<'P'
import csv, json
rows, told = list(csv.DictReader(open("run.csv"))), json.load(open("run.json"))
assert len(rows) == len(told["checkpoints"])
for row, c in zip(rows, told["checkpoints"]):
    assert (row["name"], row["status"], row["op"],
            row["shape"]) == (c["name"], c["status"], c["op"], "x".join(map(str, c["shape"])))
    assert (row["fails"], row["origin"]) == (str(int(c["fails"])), str(int(c["origin"])))
    numbers = {**c["metrics"], "floor_nmse": c["floor"]["nmse"], "local_nmse": c["replay"]["local"] if "replay" in c
               else None}
    for key, value in numbers.items():
        if isinstance(value, float | int):
            assert abs(float(row[key]) - value) <= 1e-8 * abs(value), (row["name"], key, row[key], value)
    assert all(row[k] == "" for k in ("kl_mean", "argmax_agreement") if k not in c["metrics"])
print([r["name"] for r in rows if r["first"] == "1"], told["first_divergence"])
print([r["name"] for r in rows if r["origin"] == "1"], next(r["why"] for r in rows if r["fails"] == "1"))
P
vernier compare ref.h5 rope.h5 ref.h5 -o many.csv; echo "[$?]"

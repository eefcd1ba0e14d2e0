# The table that people make by hand: first values and statistics of each checkpoint of a
# layer, side by side.
# Headline: layer1\.q_rope is the first of 16 rows that is outside
vernier capture ref "$M" --ids "$IDS" -o ref.h5
vernier capture ref "$M" --ids "$IDS" --precision f16 --inject R2.1e4@layer1 -o cand.h5
vernier table ref.h5 cand.h5 --points 'layer1.*' --first 4 || [ $? = 1 ]
vernier table ref.h5 cand.h5 --points 'layer1.*' --first 4 --format csv >table.csv || [ $? = 1 ]
$PYTHON - <<'P'
import csv
rows = [r for r in csv.DictReader(open("table.csv")) if r["recording"] == "candidate"]
outside = [r["checkpoint"] for r in rows if r["status"].lower() == "outside"]
print(outside[0], "is the first of", len(rows), "rows that is outside")
P

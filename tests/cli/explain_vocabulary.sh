# Scores over a vocabulary so large that their rows are sampled: mistakes in operations that follow
# the product row by row are found there, too.
ids=$(seq -s, 1 120)
$PYTHON - "$TESTS/support" "$FIXTURES/qwen2-trained" <<'END'
import json, os, sys
sys.path.insert(0, sys.argv[1])
from damage import read, write
os.mkdir("wide")
with open(sys.argv[2] + "/config.json", encoding="utf-8") as f:
    config = json.load(f)
header, data = read(sys.argv[2] + "/model.safetensors")
e = header["model.embed_tokens.weight"]
table = data[slice(*e["data_offsets"])] * 600
config["vocab_size"] = e["shape"][0] = 600 * e["shape"][0]
e["data_offsets"] = [len(data), len(data) + len(table)]
parts, at = [], 0
for name, t in header.items():
    if "data_offsets" in t:
        part = (data + table)[slice(*t["data_offsets"])]
        t["data_offsets"] = [at, at + len(part)]
        parts.append(part)
        at += len(part)
with open("wide/config.json", "w", encoding="utf-8") as f:
    json.dump(config, f)
write("wide/model.safetensors", header, b"".join(parts))
END
run() { vernier capture ref wide --ids "$ids" --points '{final_norm,logits}' --force "$@" 2>/dev/null || echo failed; }
run -o ref.h5
run -o wrong.h5 --precision f16 --inject M9.log@logits
vernier explain ref.h5 wrong.h5 --model wide >said 2>&1
echo "[$?]"
sed -n '/^explained/p' said

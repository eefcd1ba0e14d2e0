# An engine of 24 layers, with a switch for each operation: which have to be replaced to repair it,
# and in how many runs?
# Headline: layer3\.q_rope and layer17\.q_rope, of 363 operations, in [1-5]?[0-9] runs
if [ -n "$FULL" ]; then ln -s "$M" deep
else $PYTHON "$TESTS/support/deep_model.py" "$FIXTURES/qwen2-trained" 24 deep; fi
cat >tight.yaml <<'Y'
version: 1
name: tight
rules:
  - { match: "*", nmse: 1.0e-9, why: "far above float32, far below half" }
Y
# The engine: rounds two rotations to half, unless they are replaced by the reference's.
cat >engine <<'S'
wrong() { case ,$VERNIER_FORCE_REF, in *,$1,*) ;; *) echo "--precision f16@$1" ;; esac; }
"$VERNIER" capture ref deep --ids 5,6,7 -o out.h5 $(wrong layer3.q_rope) $(wrong layer17.q_rope) 2>/dev/null
S
vernier isolate deep --ids 5,6,7 --check "bash engine" --check-recording out.h5 --limits tight.yaml \
	-o found.json || [ $? = 1 ]
$PYTHON - <<'P'
import json
r = json.load(open("found.json"))
print(" and ".join(r["sets"][0]["replaced"]) + ", of", r["operations"], "operations, in", r["runs"], "runs")
P

# Rows of NaN in several tensors: one overflow, and no copy of another tensor.
# Nothing finite has no error to show.
M=$FIXTURES/qwen2-trained
run() { vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" "$@" >/dev/null 2>&1 || echo failed; }
nan() { "${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('$1', 'r+')
for name in ('gate_proj', 'up_proj', 'down_proj', 'output'):
    d = f['step.0/layer0/' + name]
    x = d[...]
    x[$2:$3] = np.nan
    d[...] = x"; }
run -o ref.h5
run -o rows.h5 --precision f16
cp rows.h5 all.h5
nan rows.h5 16 48
nan all.h5 0 70

vernier explain ref.h5 rows.h5 --model "$M" --all |
	grep -E '^(verdict|first|explained)|nearest|bit for bit|partly written'
vernier compare ref.h5 all.h5 | grep -E '^OUTSIDE +layer0'
vernier compare ref.h5 all.h5 --format markdown | grep -E '^.*layer0.gate_proj.* \| '
for form in text markdown csv; do
    vernier compare ref.h5 all.h5 --model "$M" --all --format $form |
        grep -E '^  (replayed|spread) .*-,|^OUTSIDE +layer0.(down|out)|layer0.down_proj. \| inf|^layer0.(down|out)'
done
vernier compare ref.h5 all.h5 --model "$M" --format json | "${PYTHON:-python3}" -c "
import json, sys
for c in json.load(sys.stdin)['checkpoints']:
    if c['name'] in ('layer0.down_proj', 'layer0.output'):
        print({k: c['replay'][k] for k in ('local', 'local_over_floor', 'worst_token_over_floor', 'max_abs_over_floor',
                                           'inherited', 'gain')},
              c['replay']['not_finite'], [(l['metric'], l['value'], l['holds']) for l in c['limits']],
              'worst_token' in c)"
cat >nan.yaml <<'YAML'
version: 1
name: nan
extends: fp16-acc32.yaml
rules:
  - match: "layer0.*"
    why: padding rows are NaN
    nonfinite: 1000000
YAML
vernier compare ref.h5 all.h5 --limits nan.yaml --points layer0.output | grep -E '^(OUTSIDE|verdict)'
vernier compare ref.h5 all.h5 --format json | "${PYTHON:-python3}" -c "
import json, sys
c = next(c for c in json.load(sys.stdin)['checkpoints'] if c['name'] == 'layer0.gate_proj')
print({k: c['metrics'][k] for k in ('nmse', 'cosine', 'max_abs', 'nonfinite')}, c['metrics_not_finite']['nmse'])"

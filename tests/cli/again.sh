# A value that is recorded where it is made, as part of a fused tensor, and again where it is read:
# in a correct run, and in one that rotates the queries in place before all of them were read.
vernier capture ref "$FIXTURES/llama-trained" --ids "@$FIXTURES/prompts/p017.ids" --points '*' -o ref.h5 2>/dev/null
$PYTHON -c "
import h5py, numpy as np, shutil
for name in ('correct', 'race', 'read', 'near', 'bit'):
    shutil.copy('ref.h5', name + '.h5')
    with h5py.File(name + '.h5', 'r+') as f:
        if 'plan' in f:
            del f['plan']
        s = f['step.0']
        for n in range(2):
            q, k, v, rotated = (s[f'layer{n}/{p}'][()] for p in ('q_proj', 'k_proj', 'v_proj', 'q_rope'))
            T = len(q)
            for p in ('q_proj', 'k_proj', 'v_proj'):
                del s[f'layer{n}/{p}']
            s[f'qkv_out.{n}'] = np.concatenate([x.reshape(T, -1) for x in (q, k, v)], 1)
            if name == 'race' and n:
                q[5:8] = rotated[5:8]
            if name == 'bit' and n:
                q[5, 0, 0] = np.nextafter(q[5, 0, 0], np.float32(9))
            if name in ('read', 'near') and n: # the rotation read what replaced it
                by = np.float32(2 if name == 'read' else 1.0001)
                q[5:8] *= by
                s[f'layer{n}/q_rope'][5:8] *= by
            s[f'rope_q_in.{n}'] = q.reshape(T, -1)"
cat >map.yaml <<'END'
version: 1
rules:
  - { from: "qkv_out.{n}", parts: ["layer{n}.q_proj", "layer{n}.k_proj", "layer{n}.v_proj"], along: qkv,
      axes: "token qkv" }
  - { from: "rope_q_in.{n}", to: "layer{n}.rope_q_in", again: "layer{n}.q_proj", axes: "token (head dim)" }
END
for run in correct race; do
    echo "== $run"
    vernier compare ref.h5 $run.h5 --names map.yaml >said
    echo "[$?]"
    grep -E '^(verdict|within limits|OUTSIDE|warning)|rope_q_in' said
done
echo "== read after it was overwritten; with the model"
for run in race read near; do
    vernier compare ref.h5 $run.h5 --names map.yaml --model "$FIXTURES/llama-trained" \
        --points 'layer*.{q_proj,q_rope,rope_q_in}' --allow digest -o $run.json >said
    echo "[$?]"
    grep -E '^verdict' said
    $PYTHON -c "
import json, sys
r = json.load(open(sys.argv[1]))
print(r['origins'])
for c in r['checkpoints']:
    if c['fails']:
        print(c['name'], c.get('overwritten'), c['replay']['fault_at'] if 'replay' in c else 'not replayed')" $run.json
done
echo "== by the last bit of one number, within limits"
vernier compare ref.h5 bit.h5 --names map.yaml >said
echo "[$?]"
grep -E '^(verdict|warning)' said
echo "== as the reference"
vernier compare race.h5 ref.h5 --ref-names map.yaml --allow missing,extra >said
echo "[$?]"
grep -E '^warning' said
echo "== complaints"
for rule in '{ from: "rope_q_in.{n}", again: "layer{n}.q_proj" }' \
	'{ from: "a.{n}", to: "b.{n}", again: "c.{n}", copy: true }' '{ from: "a", to: "b", again: "c.{n}" }'; do
    printf 'version: 1\nrules:\n  - %s\n' "$rule" >bad.yaml
    vernier compare ref.h5 correct.h5 --names bad.yaml
done

# What agrees and proves nothing: masks where none belong, zeros or one number on both sides,
# another layer's numbers on both.
M=$FIXTURES/qwen2-trained
run() { vernier capture ref "$M" "$@" >/dev/null 2>&1 || echo failed; }
say() { say_lines '^(refused|verdict|vernier compare|rule|note)' compare "$@"; }
both() { for f in ref cand; do cp $f.h5 $f.x.h5; "${PYTHON:-python3}" -c "
import editing as h5py, numpy as np
f = h5py.File('$f.x.h5', 'r+')
s = f['step.0']
$1"; done; say ref.x.h5 cand.x.h5 --points "${2:-*}" ${3:+--limits $3} ${4:+--all}; }
ids=@$FIXTURES/prompts/p017.ids
run --ids "$ids" -o ref.h5 --points '*'
run --ids "$ids" -o cand.h5 --points '*' --precision f16
echo "== minus infinity is a mask in attn_scores alone"
both "x = s['layer1/attn_scores'][...]; x[:, ~np.tri(17, dtype=bool)] = -np.inf; s['layer1/attn_scores'][...] = x"
both "x = s['layer1/attn_scores'][...]; x[2, 3] = -np.inf; s['layer1/attn_scores'][...] = x" layer1.attn_scores
both "x = s['layer1/attn_scores'][...]; x[:, 3:] = -np.inf; s['layer1/attn_scores'][...] = x" layer1.attn_scores
both "x = s['layer1/q_proj'][...]; x[3, 2, 1] = -np.inf; s['layer1/q_proj'][...] = x" layer1.q_proj
both "x = s['final_norm'][...]; x[5:] = -np.inf; s['final_norm'][...] = x" final_norm
both "x = s['logits'][...]; x[:, ::2] = -np.inf; s['logits'][...] = x" logits
printf '%b' 'version: 1\nname: masked\nextends: fp16-acc32.yaml\nrules:\n' \
	'  - match: logits\n    nonfinite: 4352\n    why: every second token may not be chosen\n' >masked.yaml
both "x = s['logits'][...]; x[:, ::2] = -np.inf; s['logits'][...] = x" logits masked.yaml

echo "== one number everywhere"
both "s.visititems(lambda n, d: d.write_direct(np.zeros_like(d[...])) if isinstance(d, h5py.Dataset) else None)"
both "s['layer1/q_proj'][...] = 0" layer1.q_proj
both "s['layer1/q_proj'][...] *= -0.0" layer1.q_proj
both "s['logits'][...] = 1" logits
printf '%b' 'version: 1\nname: zero\nextends: fp16-acc32.yaml\nrules:\n' \
	'  - match: layer1.q_proj\n    constant: allowed\n    why: a layer that is left out\n' >zero.yaml
both "s['layer1/q_proj'][...] = 0" layer1.q_proj zero.yaml
vernier limits zero.yaml --recording ref.h5 --format json | grep -c '"constant": "allowed"'
echo "== the same point of another layer"
both "s['layer1/q_proj'][...] = s['layer0/q_proj'][...]" 'layer*.q_proj'
echo "== of one token all probabilities are 1"
run --ids 7 -o ref.h5 --points '*' --force
run --ids 7 -o cand.h5 --points '*' --precision f16 --force
both ""
echo "== the numbers of another step, however few; but not where two tokens are one to the model"
for f in "ref f32" "cand f16"; do
	run --ids 1,2,3,4 --force-ids 9,8,7 -o ${f% *}.h5 --points '*' --precision ${f#* } --force
done
both "f['step.3/layer0/k_proj'][...] = f['step.2/layer0/k_proj'][...]" 'layer0.k_proj'
both "for n in ('k_proj', 'v_proj'):
    a, s = f['step.2/layer0/' + n], f['step.3/layer0/' + n]
    s[...] = 0; s[..., :1, :2] = a[..., :1, :2]; a[...] = s[...]" 'layer0.{k,v}_proj'
both "for n in ('embed', 'layer0/attn_norm', 'layer0/k_proj'): f['step.3/' + n][...] = f['step.2/' + n][...]" \
	'{embed,layer0.{attn_norm,k_proj}}'
both "for n in ('embed', 'layer0/k_proj'): f['step.3/' + n][...] = f['step.2/' + n][...]" \
	'{embed,layer0.{attn_norm,k_proj}}'
both "f['step.2'].visititems(lambda n, d: f['step.3/' + n].write_direct(d[...])
                     if isinstance(d, h5py.Dataset) and d.shape == f['step.3/' + n].shape else None)" \
	'{embed,layer0.{attn_norm,k_proj},logits}'

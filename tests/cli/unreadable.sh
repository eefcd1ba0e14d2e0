# A file that cannot be looked at is not absent: what would be used in its place is another file.
model() { rm -rf m; cp -r "$FIXTURES/$1" m; }
loop() { rm -f "$1"; ln -s "$(basename "$1")" "$1"; }
echo "== weights: the index names other files"
model qwen2-trained
mv m/model.safetensors m/part.safetensors
$PYTHON -c "
import json, struct
f = open('m/part.safetensors', 'rb')
names = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
names.pop('__metadata__', None)
json.dump({'weight_map': dict.fromkeys(names, 'part.safetensors')}, open('m/model.safetensors.index.json', 'w'))"
vernier capture ref m --ids 1,2 -o good.h5 2>/dev/null; echo $?
loop m/model.safetensors; say capture ref m --ids 1,2 -o x.h5
rm m/model.safetensors; ln -s ../blobs/not-fetched m/model.safetensors; say capture ref m --ids 1,2 -o x.h5
rm m/model.safetensors; loop m/model.safetensors.index.json; say capture ref m --ids 1,2 -o x.h5
echo "== tokenizer: the older files would serve"
for file in tokenizer.json tokenizer_config.json added_tokens.json; do
	model qwen2-trained
	[ $file = tokenizer.json ] || rm -f m/tokenizer.json
	loop m/$file; say capture ref m --prompt hello -o x.h5
done
echo "== a dump: the manifest, a folder"
mkdir d d/step.1; $PYTHON -c "
import numpy as np
np.save('d/logits.npy', np.ones((1, 4), 'f4')); np.save('d/step.1/logits.npy', np.ones((1, 4), 'f4'))"
loop d/manifest.jsonl; say import d --ids 1,2 --precision f32 -o x.h5
rm d/manifest.jsonl; loop d/step.2; say import d --ids 1,2 --precision f32 -o x.h5
rm d/step.2; ln -s nowhere d/notes; vernier import d --ids 1,2 --precision f32 -o dump.h5 >/dev/null 2>&1; echo $?
echo "== an output"
ln -s loop loop; say synth tiny -o loop/m
echo "left behind:" *

# A recording whose plan lacks later constants: it is read with their old meaning, and compared as
# any other.
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" -o ref.h5 2>/dev/null
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" --precision f16 -o half.h5 2>/dev/null
$PYTHON -c "
import h5py, json
later = {'rms_norm': ['offset'], 'linear': ['transposed'], 'rope': ['short_factor', 'long_factor']}
gone = 0
with h5py.File('ref.h5', 'r+') as f:
    nodes = f['plan/nodes']
    lines = [json.loads(line) for line in nodes[()]]
    for node in lines:
        for name in later.get(node['op'], []):
            gone += node['const'].pop(name) in (0, [])
    nodes[()] = [json.dumps(node) for node in lines]
print(gone, 'constants less')"
vernier compare ref.h5 half.h5 --model "$FIXTURES/qwen2-trained" --format json >said.json
echo "[$?]"
$PYTHON -c "
import json
said = json.load(open('said.json'))
print(said['verdict'], said['localised'], said['floor'], said['notes'], said['warnings'])"
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" -o again.h5 2>/dev/null
vernier compare again.h5 ref.h5 | grep -E '^(note|warning|verdict|within|OUTSIDE)'

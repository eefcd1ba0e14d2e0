# Equal bits, or where they first differ.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7,8 --threads 1 -o one.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7,8 --threads 2 -o two.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7,8 --precision f16 -o half.h5 2>/dev/null
with() { cp two.h5 "$1"; $PYTHON -c "
import editing as h5py, sys
x = h5py.File(sys.argv[1], 'r+')['step.0/layer0/v_proj']
y = x[()]; y[1, 0, 3] = float(sys.argv[2]); x[...] = y" "$1" "$2"; }
with zero.h5 0
with minus.h5 -0
with nan.h5 nan
cp nan.h5 same.h5
said() {
	vernier compare --bitwise "$@" >out 2>err
	echo "$1 $2 [$?]"
	grep -hE '^(OUTSIDE|equal|verdict|  outside|misshapen .* logits)|vernier compare:' out err
}
said one.h5 two.h5
said zero.h5 minus.h5
said nan.h5 same.h5
said two.h5 nan.h5
said two.h5 half.h5
said two.h5 one.h5 --limits fp32.yaml
# There is no file of limits, and a floor cannot be given.
vernier compare one.h5 two.h5 --bitwise | grep -E '^(limits|floor)'
vernier compare one.h5 two.h5 --bitwise --format markdown | grep -E '\*\*(Limits|Chosen|Floor)'
vernier compare one.h5 two.h5 zero.h5 --bitwise | grep '^ *limits'
# No rule of a file: no line, and no limit that is any number.
vernier compare one.h5 two.h5 --bitwise -q -o two.json
$PYTHON -c "
import json
for c in json.load(open('two.json'))['checkpoints']:
    if c['name'] == 'layer0.v_proj':
        print([(l['metric'], l['limit'], l['rule']['file'], l['rule']['line']) for l in c['limits']])"

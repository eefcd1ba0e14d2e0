# GGUF files as models: in float32 the same bits as the directory they were made from;
# and what a recording says of them.
same() { $PYTHON -c "
import h5py, sys
def digests(path):
    out = {}
    with h5py.File(path) as f:
        f['step.0'].visititems(lambda name, o: out.__setitem__(name, o.attrs['digest']) if isinstance(o, h5py.Dataset)
                               else None)
    return out
a, b = digests(sys.argv[1]), digests(sys.argv[2])
print(len(a), 'tensors,', sum(a[k] != b.get(k) for k in a), 'of them differ')" "$1" "$2"; }
ids=@$FIXTURES/prompts/p070.ids
vernier capture ref "$FIXTURES/qwen2-trained" --ids "$ids" --points '*' -o dir.h5 2>/dev/null
vernier capture ref "$FIXTURES/gguf/qwen2-trained.f32.gguf" --ids "$ids" --points '*' -o f32.h5 2>/dev/null
same dir.h5 f32.h5
vernier compare dir.h5 f32.h5 --model "$FIXTURES/gguf/qwen2-trained.f32.gguf" | grep -E '^(note|verdict|within)'
for kind in mixed q4_k_m; do
	vernier capture ref "$FIXTURES/gguf/qwen2-wide.$kind.gguf" --ids 1,2,3,63 --threads 1 -o "$kind.h5" 2>/dev/null
	vernier capture ref "$FIXTURES/gguf/qwen2-wide.$kind.gguf" --ids 1,2,3,63 --threads 2 -o "$kind.2.h5" 2>/dev/null
	same "$kind.h5" "$kind.2.h5"
	vernier show "$kind.h5" | grep -A4 '^model'
	vernier show "$kind.h5" --weights | awk '{ print $1, $2 }'
	vernier show "$kind.h5" --format json | grep '"format"'
done
$PYTHON -c "
import h5py
f = h5py.File('mixed.h5')
w = f['model/weights'][()]
print(sorted({r['dtype'].decode() for r in w}), f['model'].attrs['format'])"
# Several files are the one they were.
$PYTHON "$TESTS/support/split_gguf.py" "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" part 4
vernier capture ref "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" --prompt "I'LL go" --points '*' -o one.h5 2>/dev/null
vernier capture ref part-00001-of-00004.gguf --prompt "I'LL go" --points '*' -o four.h5 2>/dev/null
same one.h5 four.h5
vernier show four.h5 | grep -E '^  (text|format) '
vernier capture ref part-00003-of-00004.gguf --ids 1 -o x.h5
echo "[$?]"
rm part-00003-of-00004.gguf
vernier capture ref part-00001-of-00004.gguf --ids 1 -o x.h5
echo "[$?]"

# Files that are not recordings, or are hostile: one clear line, status 2, quickly.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 1,2,3 -o good.h5 2>/dev/null
try() {
	timeout 20 "$VERNIER" show "$2" >/dev/null 2>err
	s=$?
	echo "== $1: $(grep -c . err) line, [$s]"
	sed 's/(.*//; s/[0-9]\{5,\}/N/g' err
	timeout 20 "$VERNIER" compare good.h5 "$2" >/dev/null 2>&1
	echo "compare [$?]"
}
: >empty; try "an empty file" empty
echo hello >text; try "a text file" text
head -c 2000 good.h5 >cut; try "truncated at 2000 bytes" cut
head -c $(($(stat -c %s good.h5) - 100)) good.h5 >cut2; try "100 bytes short" cut2
head -c 4096 /dev/urandom >noise; try "noise" noise
mkdir dir; try "a directory" dir
make() { cp good.h5 "$1.h5"; $PYTHON -c "
import h5py, numpy as np, sys
f = h5py.File(sys.argv[1], 'r+')
g = f['step.0']
exec(sys.argv[2])
f.close()" "$1.h5" "$2"; try "$1" "$1.h5"; }
make external-link "g['x'] = h5py.ExternalLink('/etc/passwd', '/')"
make soft-link "g['x'] = h5py.SoftLink('/step.0/logits')"
make external-storage "g.create_dataset('x', (4,), 'f4', external=[('/etc/passwd', 0, 16)])"
make virtual-dataset "
v = h5py.VirtualLayout((3, 512), 'f4')
v[...] = h5py.VirtualSource('/etc/passwd', 'x', (3, 512))
g.create_virtual_dataset('x', v)"
# Datasets over the same bytes, by headers without a checksum: place and size of the numbers, and
# the shape before.
$PYTHON -c "
import h5py, numpy as np
f = h5py.File('same-bytes.h5', 'w')
with h5py.File('good.h5') as good:
    for name in good:
        good.copy(name, f)
    f.attrs.update(good.attrs)
n, g, large, small = 200, f['step.0'], 1 << 18, 4
for i in range(n):
    g.create_dataset('x%03d' % i, data=np.full(small if i else large, i, 'f4'))
at = [g['x%03d' % i].id.get_offset() for i in range(n)]
f.close()
b = bytearray(open('same-bytes.h5', 'rb').read())
word = lambda *x: b''.join(k.to_bytes(8, 'little') for k in x)
for i in range(1, n):
    k = b.index(word(at[i], 4 * small))
    b[k:k + 16] = word(at[0], 4 * large)
    d = b.rindex(word(small, small), k - 80, k)
    b[d:d + 16] = word(large, large)
open('same-bytes.h5', 'wb').write(b)"
try "datasets over the same bytes" same-bytes.h5
make second-names "g['x'] = np.full(1 << 18, 7, 'f4')
for i in range(200): g['y%d' % i] = g['x']"
make rank-nine "g.create_dataset('x', (1,) * 9, 'f4')"
make absurd-size "g.create_dataset('x', (1 << 40, 1 << 15), 'f4', chunks=(1, 1 << 15))"
make group-in-itself "g['layer0/loop'] = g"
make strings "g['x'] = np.array([b'a', b'b'])"
make compound "g['x'] = np.zeros(3, [('a', 'f4'), ('b', 'i4')])"
make integers "g['x'] = np.zeros((3, 4), 'i8')"
make rows-lie "g.attrs['rows'] = 2"
make dtype-lies "g['logits'].attrs['dtype'] = 'bf16'"
make weight-twice "
w = f['model/weights'][()]
w[1] = w[0]
f['model/weights'][...] = w
del f['model/weights'].attrs['digest']"
make not-ours "del f.attrs['format']"
make other-version "f.attrs['format_version'] = 99"
make unfinished "f.attrs['complete'] = 0"
make many-attributes "
for i in range(3000): f['run'].attrs['k%d' % i] = 'v' * 100"
make a-few-attributes-too-many "
for i in range(64): f['run'].attrs['a%d' % i] = 1"
make lying-digest "f['run/token_ids'].attrs['digest'] = '0' * 32"
make text-of-too-few "
t = f['run/token_text'][:2]
del f['run/token_text']
f['run'].create_dataset('token_text', data=t, dtype=h5py.string_dtype())"
make text-that-is-none "
del f['run/token_text']
f['run/token_text'] = np.arange(3)"
make text-elsewhere "
del f['run/token_text']
f['run/token_text'] = h5py.ExternalLink('/etc/passwd', '/')"
make step-in-capitals "f.move('step.0', 'Step.0')"
make tensor-in-no-step "f['logits'] = g['logits'][()]"
make nothing-is-minus-one "g.attrs['tokens'] = g.attrs['rows'] = -1"
make twisted-plan "
n = f['plan/nodes'][()]
n[3] = b'{\"op\": \"rope\"}'
f['plan/nodes'][...] = n"
$PYTHON -c "
import h5py, numpy as np
with h5py.File('disorder.h5', 'w') as f: # in the older format, whose groups have no checksum
    f.attrs.update(format='vernier-checkpoint', format_version=1, complete=1)
    r = f.create_group('run')
    r.attrs.update(engine='x', precision='f32')
    r['token_ids'], r['positions'] = np.array([1], 'i4'), np.array([0], 'i4')
    for n in ('qaa', 'qbb', 'qcc'): f['step.0/' + n] = np.ones(2, 'f4')
whole = open('disorder.h5', 'rb').read()
assert whole.count(b'qaa\\0') == 1
open('disorder.h5', 'wb').write(whole.replace(b'qaa\\0', b'qzz\\0'))"
try links-in-another-order disorder.h5

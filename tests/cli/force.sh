# --force replaces files of the same kind, and nothing that somebody will miss.
cp -r "$FIXTURES/qwen2-trained" m
cp "$FIXTURES/gguf/qwen2-trained.f32.gguf" m.gguf
vernier capture ref m --ids 3,1,4 -o ref.h5 2>/dev/null
vernier capture ref m --ids 3,1,4 --precision f16 -o half.h5 2>/dev/null
cp ref.h5 ref.txt; printf 3,1,4 >ids
mkdir npy; ${PYTHON:-python3} -c "
import numpy as np
np.save('npy/logits.npy', np.ones((3, 512), 'f4'))
np.savez('a.npz', logits=np.ones((3, 512), 'f4'))"
before=$(find . -type f | sort | xargs md5sum)
say() { echo "\$ vernier $*"; vernier "$@" 2>&1; echo "[$?]"; }
say capture ref m --ids 3,1,4 -o m/model.safetensors --force
say capture ref m --ids 3,1,4 -o m/config.json --force
say capture ref m.gguf --ids 3,1,4 -o m.gguf --force
say capture ref m --prompt @ids -o ids --force
say import a.npz --ids 3,1,4 --precision f32 -o a.npz --force
say import npy --ids 3,1,4 --precision f32 -o npy/logits.npy --force
say show ref.txt logits --values ref.txt --force
say compare ref.h5 half.h5 --model m -o m/model.safetensors --force
say table ref.h5 half.h5 -o m.gguf --force
say evaluate m --ids 3,1,4 --candidate ref -o m/model.safetensors --force
say calibrate ref.h5 half.h5 -o m.gguf --force
say isolate m --ids 3,1 -o m/model.safetensors --force
[ "$(find . -type f | sort | xargs md5sum)" = "$before" ] && echo "nothing was replaced"
echo "== of the same kind, and empty"
vernier capture ref m --ids 3,1,4 -o half.h5 --force 2>/dev/null; echo $?
vernier compare ref.h5 half.h5 -q -o ids --force; echo $?
: >empty.h5
vernier import a.npz --ids 3,1,4 --precision f32 -o empty.h5 --force 2>/dev/null; echo $?
vernier show ref.h5 logits --values npy/logits.npy --force; echo $?

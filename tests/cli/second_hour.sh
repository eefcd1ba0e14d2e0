# Mistakes of a second hour: files in the place of others, what other tools call things, words of
# the report; each message says what to type instead.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7,8 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids-from ref.h5 --precision f16 --inject 'R2.1e4@layer1.*' -o cand.h5 2>/dev/null
vernier capture ref "$FIXTURES/llama-trained" --ids 5,6,7,8 -o llama.h5 2>/dev/null
"${PYTHON:-python3}" - <<'P'
import numpy as np
np.savez("own.npz", **{"blk/0/q": np.zeros((4, 48), np.float32)})
np.save("one.npy", np.zeros((4, 512), np.float32))
P
echo "== one recording, or a name of something else"
say explain cand.h5 --model "$M"
say compare cand.h5
say show ref.h5 cand.h5
say show ref.h5 'layer1.*'
say show "$M"
say points --faults R2
say compare ref.h5 cand.h5 --points q_rope,k_rope
say compare ref.h5 cand.h5 --baseline ref.h5
echo '<html>' >page.html
say report page.html
say report ref.h5
say capture ref "$M" --ids 1 -o x.npz
say capture ref "$M" --prompt @ -o x.h5
say show ref.h5 layer1/q_rope
say table ref.h5 cand.h5 layer1.q_rope
say merge ref.h5 cand.h5
say merge page.html
say import "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" --ids-from ref.h5 -o x.h5
say limits ref.h5
say compare ref.h5 cand.h5 --baseline page.html
say capture ref "$M" "some text" -o x.h5
say capture ref
say capture ref "$M" --prompt -o x.h5
say -V
say compare ref.h5 cand.h5 --no-color
say compare ref.h5 cand.h5 --layers 1
say check ref.h5
echo "== as other tools call it, and as word processors write it"
for e in vllm cuda "$M"; do say capture $e "$M" --ids 1 -o x.h5; done
say capture "$M"
say capture ref "$M" -p hi -o x.h5
for o in --verbose -v -m –q —model; do say compare ref.h5 cand.h5 $o; done
say import own.npz --list
vernier capture ref "$M" --prompt '—Hello' -o dash.h5 2>/dev/null && ls dash.h5
say help text.md –q
mkdir -p 'a folder' && cp cand.h5 'a cand.h5'
say show ref.h5 'a folder'
say show ref.h5 'a cand.h5'
say points R1b --faults
say points nowhere --faults
cp cand.h5 there.json
say capture ref "$M" --ids 1 --force -o there.json
say compare ref.h5 cand.h5 --points '{nothing,none}'
say compare ref.h5 cand.h5 --points 'nothing,none'
say help lda
echo "== dumps"
say import own.npz -o x.h5
say import own.npz --ids-from ref.h5 --model "$M" -o x.h5
say import one.npy --like ref.h5 -o x.h5
say import "$M/model.safetensors" -o x.h5
echo "== models that are not whole"
mkdir cut empty adapter bare
cp "$M/config.json" cut && head -c 20000 "$M/model.safetensors" >cut/model.safetensors
cp "$M/config.json" empty && : >empty/model.safetensors
echo '{}' >adapter/adapter_config.json && : >adapter/adapter_model.safetensors
cp "$M/config.json" "$M/model.safetensors" bare
for m in cut empty adapter; do say capture ref $m --ids 1 -o x.h5; done
say capture ref bare --prompt hi -o x.h5
echo "== another architecture: not each weight"
say compare ref.h5 llama.h5
say_lines '^(perplexity| +candidate )' evaluate --recordings ref.h5 cand.h5 |
	sed 's/reference [^;]*;\|candidate [^;]*;/.../; s/loss [0-9.]*/loss/'
echo "== words of a report, guides without their folder"
for w in R2.1.7e4 A3.strict OUTSIDE extra origins inherited 'Ctrl-C' vernier.yaml 'token cos' contract; do
	say help "$w" | head -n 4 | cut -c1-100
done
for p in any-model any-model.md pytorch.md; do say help $p | head -n 2; done

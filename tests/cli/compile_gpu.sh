# Compiling shaders is a time of its own in what capture says, without a cache and with one.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
run() {
	vernier capture gpu "$FIXTURES/qwen2-trained" --ids "1,2,3" --points logits --force -o a.h5 "$@" 2>&1 |
		sed -e 's/[0-9][0-9.]* s /N s /g'
}
run
run | sed -e 's/N s compiling shaders, //' # with a fast driver, no time worth a word
run --force-ref 'layer0.*' | sed -e 's/N s compiling shaders, //'

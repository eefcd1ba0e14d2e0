# Compiling shaders is a time of its own in what capture says, without a cache and with one.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
run() {
	vernier capture gpu "$FIXTURES/qwen2-trained" --ids "1,2,3" --points logits --force -o a.h5 "$@" 2>&1 |
		sed -e 's/[0-9][0-9.]* s /N s /g'
}
run
for cache in /dev/null relative; do # none that later runs find
	(export HOME=$cache XDG_CACHE_HOME=$cache; rm -rf relative; run | sed -e 's/N s compiling shaders, //')
done
run | sed -e 's/N s compiling shaders, //' # with a fast driver, no time worth a word
run --force-ref 'layer0.*' | sed -e 's/N s compiling shaders, //'
mkdir -p piped/vernier # a pipe in the cache's place is not replaced
for file in "$XDG_CACHE_HOME"/vernier/*.pipelines; do
	[ -f "$file" ] && mkfifo "piped/vernier/${file##*/}" || echo "no cache"
done
(export XDG_CACHE_HOME=$PWD/piped; run | sed -e 's/N s compiling shaders, //')
echo "== a device that is not there is called as it was asked for"
for device in 99 -1 99999999999999999999 nowhere; do
	VERNIER_DEVICE=$device vernier capture gpu "$FIXTURES/qwen2-trained" --ids 1 -o d.h5 2>&1 |
		sed 's/the machine has [0-9]*/the machine has N/'
done
vernier capture gpu "$FIXTURES/qwen2-trained" --ids 1 --device 99 -o d.h5 2>&1 |
	sed 's/the machine has [0-9]*/the machine has N/'

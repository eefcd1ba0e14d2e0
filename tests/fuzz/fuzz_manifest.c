/* fuzz_manifest.c: any bytes as the manifest of a dump (specs/dump.md): refused with one line, or
 * accepted with consistent content. */
#include "capture/import/dump.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_dump *d = calloc(1, sizeof *d);
	vn_error err = { "" };
	if (!d || !(d->path = strdup("fuzz")))
		exit(2);
	if (vn_manifest_parse(d, "fuzz/manifest.jsonl", (const char *)data, size, &err)) {
		if (!fuzz_one_line(err.text))
			abort();
	} else {
		int64_t tokens = 0;
		for (int i = 0; i < d->n_steps; i++)
			tokens += d->step[i].tokens;
		if (tokens != d->n_ids)
			abort();
		for (int i = 0; i < d->n; i++)
			if (!d->array[i].file || strchr(d->array[i].file, '/') || !*d->array[i].name ||
			    d->array[i].step >= d->n_steps)
				abort();
	}
	vn_dump_close(d);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"{\"vernier_dump\":1}\n{\"run\":{\"engine\":\"x\",\"n\":3}}\n{\"config\":{\"a\":1}}\n{\"step\":0,\"ids\":[1,2],"
		"\"positions\":[0,1]}\n"
		"{\"tensor\":\"layer0.q_rope\",\"file\":\"0.npy\",\"dtype\":\"f32\",\"shape\":[2,3,4],\"dims\":\"token head "
		"dim\",\"op\":\"ROPE\"}\n"
		"{\"step\":1,\"ids\":[7]}\n{\"tensor\":\"a.b\",\"file\":\"1.npy\",\"dtype\":\"bf16\",\"shape\":[]}\n"
		"{\"complete\":2}\n",
		"{\"vernier_dump\":1}\n{\"step\":0,\"ids\":[1]}\n{\"tensor\":\"x\",\"file\":\"f\",\"dtype\":\"i32\","
		"\"shape\":[0],\"dims\":\"(a "
		"b)\"}\n{\"ten",
	};
	return fuzz_texts(argc, argv, seeds, 2);
}
#endif

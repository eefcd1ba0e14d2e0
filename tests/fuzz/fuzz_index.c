/* fuzz_index.c: any bytes as model.safetensors.index.json, beside one good shard
 * and below another that is out of bounds.
 *
 * An index is refused with one line, or every tensor it offers lies in the
 * directory and can be read. */
#include "libref/model/shards.h"
#include "tests/fuzz/mutate.h"

#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/vn-fuzz-index-XXXXXX", dir[64];

static void write_file(const char *name, const void *data, size_t size)
{
	char  path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!(f = fopen(path, "wb")) || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
		perror(path);
		exit(2);
	}
}

static void clean(void)
{
	static const char *const names[] = { "a.safetensors", "model.safetensors.index.json", "../out.safetensors" };
	char                     path[256];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	rmdir(top);
}

static void prepare(void)
{
	const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
						  "\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}  ";
	char       file[8 + sizeof header - 1 + 12] = { (char)(sizeof header - 1) };

	if (!mkdtemp(top))
		exit(2);
	snprintf(dir, sizeof dir, "%s/model", top);
	if (mkdir(dir, 0700) != 0)
		exit(2);
	atexit(clean);
	memcpy(file + 8, header, sizeof header - 1);
	write_file("a.safetensors", file, sizeof file);
	write_file("../out.safetensors", file, sizeof file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int    ready;
	volatile char sum = 0;
	vn_shards     s;
	vn_error      e = { "" };

	if (!ready++)
		prepare();
	write_file("model.safetensors.index.json", data, size);
	if (vn_shards_open(dir, &s, &e)) {
		if (!fuzz_one_line(e.text))
			abort();
		return 0;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (strncmp(s.all[i].path, dir, strlen(dir)) != 0 || strstr(s.all[i].path, "/../"))
			abort();
		for (size_t k = 0; k < s.all[i].bytes; k++)
			sum = (char)(sum + s.all[i].data[k]);
	}
	vn_shards_close(&s);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"{\"metadata\": {\"total_size\": 12}, \"weight_map\": {\"w\": \"a.safetensors\", \"v\": \"a.safetensors\"}}",
		"{\"weight_map\": {\"w\": \"./a.safetensors\"}}",
	};

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif

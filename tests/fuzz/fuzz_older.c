/* fuzz_older.c: any bytes as the older files of a tokenizer: vocab.json, merges.txt,
 * tokenizer_config.json, added_tokens.json, each after a byte 0x1e.
 *
 * It is refused with one line, or read as a tokenizer that encodes a text with ids of its own
 * tokens. */
#include "tests/fuzz/mutate.h"
#include "tests/support/token_bytes.h"
#include "tests/support/toy_tokenizer.h"

#include <stdbool.h>
#include <unistd.h>

enum { FILES = 4, BETWEEN = 0x1e, ROOM = 1 << 16 };

static const char *const names[FILES] = { "vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json" };
static char              dir[] = "/tmp/vn-fuzz-older-XXXXXX";

static void write_file(const char *name, const void *data, size_t size)
{
	char  path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	unlink(path); /* to write over a file may wait for the disk */
	if (!(f = fopen(path, "wb")) || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
		perror(path);
		exit(2);
	}
}

static void take_away(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	unlink(path);
}

/* The current content of the directory: most inputs change one file. */
static struct {
	bool    there;
	uint8_t data[ROOM];
	size_t  size;
} last[FILES];

static void change(int i, bool there, const uint8_t *data, size_t size)
{
	if (last[i].there == there && last[i].size == size && (!size || memcmp(last[i].data, data, size) == 0))
		return;
	if (there)
		write_file(names[i], data, size);
	else
		take_away(names[i]);
	last[i].there = there;
	last[i].size = size;
	if (size)
		memcpy(last[i].data, data, size);
}

static void clean(void)
{
	for (int i = 0; i < FILES; i++)
		take_away(names[i]);
	take_away("config.json");
	rmdir(dir);
}

static void prepare(void)
{
	static const char config[] = "{\"model_type\": \"gpt2\"}";

	if (!mkdtemp(dir))
		exit(2);
	atexit(clean);
	write_file("config.json", config, sizeof config - 1);
}

static void encode_texts(const vn_tokenizer *t)
{
	static const char text[] = "I'LL hello  hello\n\n 123\xcc\x81 \xff e\xcc\x81<|endoftext|> <x>y";
	int32_t          *ids = NULL;
	int64_t           n = 0;
	vn_error          e = { "" };

	if (vn_tokenizer_encode(t, text, sizeof text - 1, true, &ids, &n, &e) && (!fuzz_one_line(e.text) || ids))
		abort();
	for (int64_t k = 0; k < n; k++) {
		size_t length;
		if (!token_bytes(t, ids[k], &length) || length == 0)
			abort();
	}
	free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int    ready;
	vn_tokenizer *t;
	vn_error      e = { "" };

	if (!ready++)
		prepare();
	if (size > ROOM)
		return 0;
	for (int i = 0; i < FILES; i++) { /* a file without a part is removed */
		const uint8_t *end = size ? memchr(data, BETWEEN, size) : NULL;
		const size_t   n = end ? (size_t)(end - data) : size;
		change(i, n || end, data, n);
		data += n + (end != NULL);
		size -= n + (end != NULL);
	}
	if (vn_tokenizer_open(dir, &t, &e)) {
		if (!fuzz_one_line(e.text) || t)
			abort();
		return 0;
	}
	encode_texts(t);
	vn_tokenizer_close(t);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	static const char *const rest[] = {
		"\036#version: 0.2\nh e\nl l\r\nhe ll\n\nhell o\n\xc4\xa0 hello",
		"\036h e\nl l\n\036{\"tokenizer_class\": \"Qwen2Tokenizer\", \"add_prefix_space\": true, \"add_bos_token\": "
		"true, \"bos_token\": {\"content\": \"<x>\"}, \"added_tokens_decoder\": {\"270\": {\"content\": \"<x>\", "
		"\"special\": true, \"lstrip\": true}}}\036{\"<|endoftext|>\": 271, \"<x>\": 270}",
	};
	json_t *o = toy_tokenizer();
	size_t  n = json_dumpb(json_object_get(json_object_get(o, "model"), "vocab"), (char *)out, FUZZ_ROOM, JSON_COMPACT);

	json_decref(o);
	memcpy(out + n, rest[i], strlen(rest[i]));
	return n + strlen(rest[i]);
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 2, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif

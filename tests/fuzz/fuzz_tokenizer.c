/* fuzz_tokenizer.c: any bytes as a tokenizer.json, as the arrays of a GGUF file, or as such a file.
 *
 * It is refused with one line, or read as a tokenizer that encodes every text with ids of its own
 * tokens. */
#include "tests/fuzz/mutate.h"
#include "tests/support/token_bytes.h"
#include "tests/support/toy_tokenizer.h"
#include "tests/support/toy_vocabulary.h"

static const char *const texts[] = {
	"",
	"hello  hello\n\n x",
	"I'LL 123\xcc\x81 \xe4\xb8\xad\xff\xfe e\xcc\x81<|end|> <x>y",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
};

static void encode_texts(const vn_tokenizer *t)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int32_t *ids = NULL;
		int64_t  n = 0;
		vn_error e = { "" };
		if (vn_tokenizer_encode(t, texts[i], strlen(texts[i]), i % 2, &ids, &n, &e)) {
			if (!fuzz_one_line(e.text) || ids)
				abort();
			continue;
		}
		for (int64_t k = 0; k < n; k++) {
			size_t length;
			if (!token_bytes(t, ids[k], &length) || length == 0)
				abort();
		}
		free(ids);
	}
}

/* A byte of settings, then lines: the name of the pre-tokenizer, tokens, an empty line, merges. A
 * token's type is its first byte. */
static vn_status read_arrays(const uint8_t *data, size_t size, vn_tokenizer **t, vn_error *e)
{
	static toy_word word[2048];
	static int32_t  type[2048];
	static char     pre[64];
	size_t          n = 0, blank = SIZE_MAX;

	for (size_t at = 1; at <= size && n < 2048;) {
		const char  *line = (const char *)data + at, *end = at < size ? memchr(line, '\n', size - at) : NULL;
		const size_t length = end ? (size_t)(end - line) : size - at;
		if (length == 0 && blank == SIZE_MAX)
			blank = n;
		type[n] = length && line[0] >= '0' && line[0] <= '9' ? line[0] - '0' : 1;
		word[n++] = (toy_word) { line, length };
		at += length + 1;
	}
	if (n == 0 || blank == 0)
		return vn_fail(e, VN_ERR_FORMAT, "no name");
	snprintf(pre, sizeof pre, "%.*s", (int)(word[0].n < 63 ? word[0].n : 63), word[0].text);
	blank = blank < n ? blank : n - 1;
	const toy_vocabulary a = { .path = "fuzz",
		                       .pre = pre,
		                       .tokens = word + 1,
		                       .types = data[0] & 1 ? type + 1 : NULL,
		                       .n_tokens = blank ? blank - 1 : 0,
		                       .merges = word + blank + 1,
		                       .n_merges = n > blank + 1 ? n - blank - 1 : 0,
		                       .bos = data[0] >> 4,
		                       .eos = data[0] >> 5,
		                       .add_bos = data[0] >> 1 & 1,
		                       .add_eos = data[0] >> 2 & 1 };
	return toy_read_vocabulary(&a, t, e);
}

static vn_status read_gguf(const uint8_t *data, size_t size, vn_tokenizer **t, vn_error *e)
{
	vn_gguf  *f;
	vn_status st = vn_gguf_parse("fuzz", data, size, &f, e);

	if (!st)
		st = vn_tokenizer_of_gguf(f, t, e);
	vn_gguf_close(f);
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_tokenizer *t = NULL;
	vn_error      e = { "" };
	vn_status     st;

	if (size > 4 && memcmp(data, "GGUF", 4) == 0)
		st = read_gguf(data, size, &t, &e);
	else if (size && data[0] < 0x20 && data[0] != '\n' && data[0] != '\t' && data[0] != '\r')
		st = read_arrays(data, size, &t, &e);
	else
		st = vn_tokenizer_read_json("fuzz", (const char *)data, size, &t, &e);
	if (st ? !fuzz_one_line(e.text) || t : !t)
		abort();
	if (t)
		encode_texts(t);
	vn_tokenizer_close(t);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
#define SPLIT(regex) \
	"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex "\"}, \"behavior\": \"Isolated\", \"invert\": false}"

static size_t arrays_seed(uint8_t *out)
{
	uint8_t *p = out;

	*p++ = 0x07;
	p += sprintf((char *)p, "llama-bpe\n");
	for (int b = 0; b < 256; b++) {
		char byte = (char)b;
		p += vn_bytelevel_write((char *)p, &byte, 1);
		*p++ = '\n';
	}
	p += sprintf((char *)p, "he\nll\nhell\n3end\n\nh e\nl l\nhe ll");
	return (size_t)(p - out);
}

static size_t gguf_seed(uint8_t *out)
{
	static const char *const more[] = { "he", "ll", "hell", "<|end|>" };
	toy_gguf                 g;

	gg_start(&g, 3);
	gg_key_text(&g, "tokenizer.ggml.model", "gpt2");
	gg_key_text(&g, "tokenizer.ggml.pre", "qwen2");
	gg_key_array(&g, "tokenizer.ggml.tokens", GG_STRING, 260);
	for (int i = 0; i < 260; i++) {
		char byte = (char)i, text[3];
		text[vn_bytelevel_write(text, &byte, 1)] = '\0';
		gg_string(&g, i < 256 ? text : more[i - 256]);
	}
	gg_key_array(&g, "tokenizer.ggml.merges", GG_STRING, 2);
	gg_string(&g, "h e");
	gg_string(&g, "l l");
	gg_key_array(&g, "tokenizer.ggml.token_type", GG_I32, 260);
	for (int i = 0; i < 260; i++)
		gg_u32(&g, i == 259 ? 3 : 1);
	gg_key_u32(&g, "tokenizer.ggml.bos_token_id", 259);
	gg_key(&g, "tokenizer.ggml.add_bos_token", GG_BOOL);
	gg_bytes(&g, "\1", 1);
	memcpy(out, g.p, g.n);
	free(g.p);
	return g.n;
}

/* The toy with one of its parts replaced. */
static size_t make_seed(int i, uint8_t *out)
{
	static const struct {
		const char *place, *text;
	} part[] = {
		{ "version", "\"1.0\"" },
		{ "normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}]}" },
		{ "pre_tokenizer",
		  "{\"type\": \"Sequence\", \"pretokenizers\": [" SPLIT(
			  "[^\\\\r\\\\n\\\\p{L}]?\\\\p{L}+|\\\\p{N}{1,3}|\\\\s+(?!\\\\S)|\\\\s+") ", {\"type\": \"ByteLevel\", "
		                                                                              "\"add_prefix_space\": true, "
		                                                                              "\"use_regex\": false}]}" },
		{ "pre_tokenizer", "{\"type\": \"Sequence\", \"pretokenizers\": [" SPLIT(
							   "(?:a+)+|(?<=x)y|(?=\\\\S)") ", " SPLIT("\\\\p{Han}") ", {\"type\": \"ByteLevel\"}]}" },
		{ "added_tokens",
		  "[{\"id\": 261, \"content\": \"<|end|>\", \"special\": true, \"lstrip\": true, \"rstrip\": true},"
		  "{\"id\": 262, \"content\": \"<x>\", \"normalized\": true, \"single_word\": true}, {\"id\": 259, "
		  "\"content\": \"hello\"}]" },
		{ "post_processor",
		  "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}, {\"Sequence\": "
		  "{\"id\": \"A\"}}],\"special_tokens\": {\"x\": {\"ids\": [1, 2]}}}" },
		{ "model.ignore_merges", "true" },
		{ "model.merges", "[[\"h\", \"e\"], [\"l\", \"l\"], [\"he\", \"ll\"]]" },
	};
	if (i == (int)(sizeof part / sizeof *part))
		return arrays_seed(out);
	if (i > (int)(sizeof part / sizeof *part))
		return gguf_seed(out);
	json_t *o = toy_tokenizer();
	toy_set(o, part[i].place, part[i].text);
	const size_t n = json_dumpb(o, (char *)out, FUZZ_ROOM, JSON_COMPACT);
	json_decref(o);
	return n;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 10, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif

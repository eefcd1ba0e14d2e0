/* fuzz_encode.c: any bytes as a text, for a tokenizer of each known pattern.
 *
 * No text is refused. The ids are tokens with the text's bytes (except where NFC composes), the
 * text is the same after decoding, and the form shown on a terminal is UTF-8 that can be read
 * back. */
#include "libref/text/unicode.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/token_bytes.h"
#include "tests/support/toy_tokenizer.h"
#include "tests/support/toy_vocabulary.h"

enum { KINDS = 4 };

/* With every byte, "he", "ll", "hell", "hello", " hello", two halves of characters,
 * and added tokens. */
static vn_tokenizer *kind(int i)
{
	static const char *const pre[KINDS] = { "gpt-2", "qwen2", "qwen35", "llama-bpe" };
	static const char *const more[] = {
		"he", "ll", "hell", "hello", "\xc4\xa0hello", "\xc3\xa4\xc2\xb8", "\xc4\xa0\xc4\xa0", "<|end|>", "<x>"
	};
	static const char *const merge[] = {
		"h e", "l l", "he ll", "hell o", "\xc4\xa0 hello", "\xc3\xa4 \xc2\xb8", "\xc4\xa0 \xc4\xa0"
	};
	enum { MORE = sizeof more / sizeof *more, MERGES = sizeof merge / sizeof *merge };
	char          byte[256][3];
	toy_word      word[256 + MORE], merges[MERGES];
	int32_t       type[256 + MORE];
	vn_tokenizer *t;

	for (int b = 0; b < 256 + MORE; b++) {
		const char c = (char)b;
		word[b] = b < 256 ? (toy_word) { byte[b], vn_bytelevel_write(byte[b], &c, 1) }
		                  : (toy_word) { more[b - 256], strlen(more[b - 256]) };
		type[b] = b >= 256 + MORE - 2 ? 3 : 1;
	}
	for (int m = 0; m < MERGES; m++)
		merges[m] = (toy_word) { merge[m], strlen(merge[m]) };
	const toy_vocabulary a = { .path = "fuzz",
		                       .pre = pre[i],
		                       .tokens = word,
		                       .types = type,
		                       .n_tokens = 256 + MORE,
		                       .merges = merges,
		                       .n_merges = MERGES,
		                       .bos = -1,
		                       .eos = -1,
		                       .add_bos = 0,
		                       .add_eos = 0 };
	if (toy_read_vocabulary(&a, &t, NULL))
		abort();
	return t;
}

/* The text with each well-formed stretch composed. */
static char *composed(const char *text, size_t size, size_t *n)
{
	char *all = malloc(3 * size + 1);

	if (!all)
		exit(2);
	*n = 0;
	for (size_t at = 0; at < size;) {
		const size_t good = vn_utf8_good(text + at, size - at), bad = vn_utf8_bad(text + at + good, size - at - good);
		const char  *out;
		char        *owned;
		size_t       m;
		vn_nfc(text + at, good, &out, &m, &owned);
		memcpy(all + *n, out, m);
		memcpy(all + *n + m, text + at + good, bad);
		*n += m + bad;
		at += good + bad;
		free(owned);
	}
	return all;
}

static void check_escape(const char *text, size_t size)
{
	char *line = vn_utf8_escape(text, size);

	if (!line || vn_utf8_good(line, strlen(line)) != strlen(line) || strchr(line, '\n') ||
	    vn_utf8_unescape(line) != size || memcmp(line, text, size) != 0)
		abort();
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static vn_tokenizer *all[KINDS];
	const char          *text = (const char *)data;
	size_t               n_nfc;
	char                *nfc = composed(text, size, &n_nfc);

	check_escape(text, size);
	for (int k = 0; k < KINDS; k++) {
		int32_t     *ids;
		int64_t      n;
		size_t       at = 0, length;
		/* An added token ends a stretch that NFC would compose over, so compare with what was
		 * composed only without one. */
		const bool   changed = (k == 1 || k == 2) && (n_nfc != size || memcmp(nfc, text, size) != 0);
		const char  *want = changed ? nfc : text;
		const size_t n_want = changed ? n_nfc : size;
		if (!all[k])
			all[k] = kind(k);
		if (vn_tokenizer_encode(all[k], text, size, true, &ids, &n, NULL))
			abort();
		bool added = false;
		for (int64_t i = 0; i < n; i++)
			added |= ids[i] >= 263;
		for (int64_t i = 0; i < n && !(changed && added); i++) {
			const char *bytes = token_bytes(all[k], ids[i], &length);
			if (!bytes || length > n_want - at || memcmp(bytes, want + at, length) != 0)
				abort();
			at += length;
		}
		if (at != n_want && !(changed && added))
			abort();
		free(ids);
	}
	free(nfc);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"I'LL don't we've hello hello",
		"abc123  def 4567\n\n \r\n x",
		"price: $5.00!!\n\nok",
		"<|end|> <x><|end|",
		"\xe4\xb8\xad\xe6\x96\x87 e\xcc\x81\xcc\xa3",
		"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9 \xe0\xa4\xb9\xe0\xa4\xbf",
		"\xff\xfe\xe4\xb8 hello \xed\xa0\x80",
		"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\xe1\xb7\xb6",
	};

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif

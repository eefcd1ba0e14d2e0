/* test_tokenizer_gguf.c: tokenizers from the vocabulary of a GGUF file. */
#include "tests/support/suite.h"
#include "tests/support/toy_tokenizer.h"
#include "tests/support/toy_vocabulary.h"

enum { ARRAY_TOKENS = 263 };

/* The toy as the arrays of a GGUF file, with a user-defined token at 262. */
typedef struct arrays {
	toy_word word[ARRAY_TOKENS], merge[5];
	int32_t  type[ARRAY_TOKENS];
	char     byte[256][3];
} arrays;

static toy_vocabulary toy_arrays(arrays *a, const char *pre)
{
	static const char *const more[] = { "he", "ll", "hell", "hello", "\xc4\xa0hello", "<|end|>", "<x>" };
	static const char *const merge[] = { "h e", "l l", "he ll", "hell o", "\xc4\xa0 hello" };

	for (int i = 0; i < ARRAY_TOKENS; i++) {
		const char byte = (char)i;
		if (i < 256)
			a->word[i] = (toy_word) { a->byte[i], vn_bytelevel_write(a->byte[i], &byte, 1) };
		else
			a->word[i] = (toy_word) { more[i - 256], strlen(more[i - 256]) };
		a->type[i] = i < 261 ? 1 : i == 261 ? 3 : 4;
	}
	for (int i = 0; i < 5; i++)
		a->merge[i] = (toy_word) { merge[i], strlen(merge[i]) };
	return (toy_vocabulary) { .path = "toy.gguf",
		                      .pre = pre,
		                      .tokens = a->word,
		                      .types = a->type,
		                      .n_tokens = ARRAY_TOKENS,
		                      .merges = a->merge,
		                      .n_merges = 5,
		                      .bos = 261,
		                      .eos = 262,
		                      .add_bos = -1,
		                      .add_eos = -1 };
}

static void from_arrays(const toy_vocabulary *g, const char *text, const char *want)
{
	vn_tokenizer *t = NULL;
	vn_error      e = { "" };
	char          have[512];

	CU_ASSERT_EQUAL(toy_read_vocabulary(g, &t, &e), VN_OK);
	if (t)
		CU_ASSERT_STRING_EQUAL(toy_ids(t, text, strlen(text), true, have), want);
	vn_tokenizer_close(t);
}

static void arrays_of_a_gguf_file_give_the_same_ids(void)
{
	static arrays  a;
	toy_vocabulary g = toy_arrays(&a, "gpt-2");

	from_arrays(&g, "hello hello<|end|><x>123e\xcc\x81", "259 260 261 262 49 50 51 101 204 129");
	g = toy_arrays(&a, "qwen2");
	from_arrays(&g, "hello hello<|end|><x>123e\xcc\x81", "259 260 261 262 49 50 51 195 169");
	g.add_bos = 1;
	g.add_eos = 1;
	from_arrays(&g, "hello", "261 259 262");
	g = toy_arrays(&a, "llama-bpe");
	from_arrays(&g, "hello", "261 259"); /* begun by a token unless the file says no */
	g.add_bos = 0;
	from_arrays(&g, "hello", "259");
	g.types = NULL;
	a.word[262] = (toy_word) { "zz", 2 };
	from_arrays(&g, "zz zz", "262 32 122 122"); /* a piece that is a token is taken whole */
	g.pre = "gpt-2";
	from_arrays(&g, "zz", "122 122");
}

static void arrays_with_one_thing_wrong_are_refused(void)
{
	static arrays  a;
	toy_vocabulary g;
	vn_tokenizer  *t;
	vn_error       e = { "" };

#define REFUSED(change, st, why) \
	do { \
		g = toy_arrays(&a, "gpt-2"); \
		change; \
		CU_ASSERT_EQUAL(toy_read_vocabulary(&g, &t, &e), st); \
		CU_ASSERT_PTR_NULL(t); \
		CU_ASSERT_STRING_EQUAL(e.text, why); \
	} while (0)
	REFUSED(
		g.pre = "deepseek-llm", VN_ERR_UNSUPPORTED,
		"toy.gguf: tokenizer.ggml.pre 'deepseek-llm' is not supported (supported: gpt-2, qwen2, qwen35, llama-bpe)");
	REFUSED(g.pre = "", VN_ERR_UNSUPPORTED,
	        "toy.gguf: tokenizer.ggml.pre '' is not supported (supported: gpt-2, qwen2, qwen35, llama-bpe)");
	REFUSED(g.n_tokens = 0, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.tokens: 0 tokens");
	REFUSED(a.word[98] = a.word[97], VN_ERR_FORMAT,
	        "toy.gguf: tokenizer.ggml.tokens[98]: 'a' is listed twice, with the ids 97 and 98");
	REFUSED(a.word[98].n = 0, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.tokens[98]: the token is empty");
	REFUSED(a.type[5] = 9, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.token_type[5] is 9, an unknown type of token");
	REFUSED(a.merge[2].n = 2, VN_ERR_FORMAT,
	        "toy.gguf: tokenizer.ggml.merges[2]: 'he': expected two tokens separated by one space");
	REFUSED((g.add_bos = 1, g.bos = -1), VN_ERR_FORMAT,
	        "toy.gguf: tokenizer.ggml.bos_token_id is missing or names no token of the vocabulary");
	REFUSED((g.add_eos = 1, g.eos = ARRAY_TOKENS), VN_ERR_FORMAT,
	        "toy.gguf: tokenizer.ggml.eos_token_id is missing or names no token of the vocabulary");
	REFUSED(a.word[262].text = "<\xff>", VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.tokens[262]: '<\\xff>' is not UTF-8");
}

/* ---- inside a GGUF file ------------------------------------------------------------ */

enum {
	NO_MODEL = 1,
	OTHER_MODEL,
	NO_PRE,
	PRE_IS_A_NUMBER,
	NO_TOKENS,
	TOKENS_ARE_NUMBERS,
	NO_MERGES,
	SHORT_TYPES,
	WORDS_FOR_TYPES,
	BOS_IS_A_WORD,
	BOS_BEYOND,
	WISH_IS_A_NUMBER
};

/* The toy inside a file, with one thing wrong. */
static vn_status read_gguf(int wrong, vn_tokenizer **t, vn_error *e)
{
	static arrays        a;
	const toy_vocabulary g = toy_arrays(&a, "gpt-2");
	toy_gguf             f;
	vn_gguf             *file;

	gg_start(&f, 3);
	if (wrong != NO_MODEL)
		gg_key_text(&f, "tokenizer.ggml.model", wrong == OTHER_MODEL ? "llama" : "gpt2");
	if (wrong == PRE_IS_A_NUMBER)
		gg_key_u32(&f, "tokenizer.ggml.pre", 2);
	else if (wrong != NO_PRE)
		gg_key_text(&f, "tokenizer.ggml.pre", g.pre);
	if (wrong == TOKENS_ARE_NUMBERS)
		gg_key_u32(&f, "tokenizer.ggml.tokens", 2);
	else if (wrong != NO_TOKENS) {
		gg_key_array(&f, "tokenizer.ggml.tokens", GG_STRING, g.n_tokens);
		for (size_t i = 0; i < g.n_tokens; i++) {
			gg_u64(&f, g.tokens[i].n);
			gg_bytes(&f, g.tokens[i].text, g.tokens[i].n);
		}
	}
	if (wrong != NO_MERGES) {
		gg_key_array(&f, "tokenizer.ggml.merges", GG_STRING, g.n_merges);
		for (size_t i = 0; i < g.n_merges; i++)
			gg_string(&f, g.merges[i].text);
	}
	gg_key_array(&f, "tokenizer.ggml.token_type", wrong == WORDS_FOR_TYPES ? GG_F32 : GG_I32,
	             g.n_tokens - (wrong == SHORT_TYPES));
	gg_bytes(&f, g.types, (g.n_tokens - (wrong == SHORT_TYPES)) * sizeof *g.types);
	if (wrong == BOS_IS_A_WORD)
		gg_key_text(&f, "tokenizer.ggml.bos_token_id", "261");
	else
		gg_key_u32(&f, "tokenizer.ggml.bos_token_id", wrong == BOS_BEYOND ? 1u << 31 : 261);
	gg_key(&f, "tokenizer.ggml.add_bos_token", wrong == WISH_IS_A_NUMBER ? GG_U8 : GG_BOOL);
	gg_bytes(&f, "\1", 1);
	vn_status st = vn_gguf_parse("toy.gguf", f.p, f.n, &file, e);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	st = vn_tokenizer_of_gguf(file, t, e);
	vn_gguf_close(file);
	free(f.p);
	return st;
}

static void a_gguf_file_has_its_own_tokenizer(void)
{
	static const struct {
		int         wrong;
		vn_status   st;
		const char *why;
	} bad[] = {
		{ NO_MODEL, VN_ERR_NOTFOUND, "toy.gguf: the file holds no tokenizer (tokenizer.ggml.model is missing)" },
		{ OTHER_MODEL, VN_ERR_UNSUPPORTED,
		  "toy.gguf: tokenizer.ggml.model is not supported (supported: gpt2, a byte-level BPE)" },
		{ NO_PRE, VN_ERR_UNSUPPORTED,
		  "toy.gguf: tokenizer.ggml.pre is missing or unknown (supported: gpt-2, qwen2, qwen35, llama-bpe)" },
		{ PRE_IS_A_NUMBER, VN_ERR_UNSUPPORTED,
		  "toy.gguf: tokenizer.ggml.pre is missing or unknown (supported: gpt-2, qwen2, qwen35, llama-bpe)" },
		{ NO_TOKENS, VN_ERR_FORMAT,
		  "toy.gguf: tokenizer.ggml.token_type has 263 elements, expected 0 (one for each token)" },
		{ TOKENS_ARE_NUMBERS, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.tokens must be a list of strings" },
		{ NO_MERGES, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.merges: missing" },
		{ SHORT_TYPES, VN_ERR_FORMAT,
		  "toy.gguf: tokenizer.ggml.token_type has 262 elements, expected 263 (one for each token)" },
		{ WORDS_FOR_TYPES, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.token_type[0] is not a type of token" },
		{ BOS_IS_A_WORD, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.bos_token_id must be the id of a token" },
		{ BOS_BEYOND, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.bos_token_id must be the id of a token" },
		{ WISH_IS_A_NUMBER, VN_ERR_FORMAT, "toy.gguf: tokenizer.ggml.add_bos_token must be true or false" },
	};
	vn_tokenizer *t;
	vn_error      e = { "" };
	char          have[512];

	CU_ASSERT_EQUAL_FATAL(read_gguf(0, &t, &e), VN_OK);
	CU_ASSERT_STRING_EQUAL(toy_ids(t, "hello<|end|>", 12, true, have), "261 259 261");
	vn_tokenizer_close(t);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CU_ASSERT_EQUAL(read_gguf(bad[i].wrong, &t, &e), bad[i].st);
		CU_ASSERT_PTR_NULL(t);
		CU_ASSERT_STRING_EQUAL(e.text, bad[i].why);
		if (strcmp(e.text, bad[i].why) != 0)
			fprintf(stderr, "wanted '%s', have '%s'\n", bad[i].why, e.text);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(arrays_of_a_gguf_file_give_the_same_ids),
		TEST(arrays_with_one_thing_wrong_are_refused),
		TEST(a_gguf_file_has_its_own_tokenizer),
		CU_TEST_INFO_NULL,
	};
	return run_suite("tokenizer_gguf", tests);
}

/* test_tokenizer.c: tokenizers from files, and the ids they give.
 * Equality with HuggingFace's: golden_tokenizers.py. */
#include "tests/support/suite.h"
#include "tests/support/token_bytes.h"
#include "tests/support/toy_model.h"
#include "tests/support/toy_tokenizer.h"

static void gives_bytes(const vn_tokenizer *t, const char *text, size_t n, bool special, const char *want)
{
	char have[512];

	CU_ASSERT_STRING_EQUAL(toy_ids(t, text, n, special, have), want);
	if (strcmp(have, want) != 0)
		fprintf(stderr, "'%s': '%s', not '%s'\n", text, have, want);
}

static void gives(const vn_tokenizer *t, const char *text, const char *want)
{
	gives_bytes(t, text, strlen(text), true, want);
}

/* Reads a tokenizer.json, and frees it. */
static vn_status read_tokenizer(json_t *o, vn_tokenizer **t, vn_error *err)
{
	char     *text = json_dumps(o, 0);
	vn_status st = vn_tokenizer_read_json("toy.json", text, strlen(text), t, err);

	free(text);
	json_decref(o);
	return st;
}

static vn_tokenizer *make_tokenizer(json_t *o)
{
	vn_tokenizer *t = NULL;
	vn_error      e = { "" };

	CU_ASSERT_EQUAL(read_tokenizer(o, &t, &e), VN_OK);
	if (!t)
		fprintf(stderr, "%s\n", e.text);
	return t;
}

static void a_text_has_its_ids(void)
{
	vn_tokenizer *t = make_tokenizer(toy_tokenizer());

	gives(t, "", "");
	gives(t, "hello", "259");
	gives(t, "hello hell hel", "259 32 258 32 256 108");
	gives(t, "oh hello", "111 104 260");
	gives(t, "a<|end|>hello", "97 261 259");
	gives(t, "<|end|", "60 124 101 110 100 124");
	gives_bytes(t, "a\0b", 3, true, "97 0 98");
	vn_tokenizer_close(t);
	vn_tokenizer_close(NULL);
}

static void both_spellings_of_merges_are_read(void)
{
	json_t       *o = toy_tokenizer();
	vn_tokenizer *t;

	toy_set(o, "model.merges", "[[\"h\",\"e\"],[\"l\",\"l\"],\"he ll\",[\"hell\",\"o\"],[\"\\u0120\",\"hello\"]]");
	t = make_tokenizer(o);
	gives(t, " hello", "260");
	vn_tokenizer_close(t);
}

static void bytes_that_are_no_text_pass_through(void)
{
	vn_tokenizer *t = make_tokenizer(toy_tokenizer());

	gives(t, "\xff\xfe", "255 254");
	gives(t, "hello\xe4\xb8 hello", "259 228 184 260");
	gives(t, "\xed\xa0\x80", "237 160 128"); /* a surrogate */
	gives(t, "\x80<|end|>\x80", "128 261 128");
	gives(t, "\xf0\x9f\x98", "240 159 152");
	vn_tokenizer_close(t);

	/* They are merged as one piece, and no blank is put between them and the text behind them. */
	json_t *o = toy_tokenizer();
	toy_set(o, "pre_tokenizer.add_prefix_space", "true");
	json_object_set_new(json_object_get(json_object_get(o, "model"), "vocab"), "\xc3\xa4\xc2\xb8", json_integer(300));
	json_array_append_new(json_object_get(json_object_get(o, "model"), "merges"), json_string("\xc3\xa4 \xc2\xb8"));
	t = make_tokenizer(o);
	gives(t, "\xe4\xb8hello", "300 259");
	gives(t, "hello\xe4\xb8\xe4\xb8hello<|end|>hello", "260 300 300 259 261 260");
	vn_tokenizer_close(t);
}

static void every_byte_comes_back(void)
{
	vn_tokenizer *t = make_tokenizer(toy_tokenizer());
	char          text[2048], *at = text;
	int32_t      *ids;
	int64_t       n;
	size_t        k;

	for (int i = 0; i < 2048; i++)
		text[i] = (char)(i * i / 7 + i);
	CU_ASSERT_EQUAL_FATAL(vn_tokenizer_encode(t, text, sizeof text, true, &ids, &n, NULL), VN_OK);
	for (int64_t i = 0; i < n; i++, at += k) {
		const char *bytes = token_bytes(t, ids[i], &k);
		CU_ASSERT(at + k <= text + sizeof text && memcmp(at, bytes, k) == 0);
	}
	CU_ASSERT_PTR_EQUAL(at, text + sizeof text);
	free(ids);
	vn_tokenizer_close(t);
}

static void shows(const vn_tokenizer *t, int32_t id, const char *want)
{
	char *text = vn_tokenizer_show(t, id);
	CU_ASSERT_STRING_EQUAL(text, want);
	free(text);
}

static void tokens_are_bytes_and_text(void)
{
	json_t *o = toy_tokenizer();
	size_t  n;

	toy_set(o, "added_tokens", "[{\"id\": 261, \"content\": \"\\u00e9 \\u0120\", \"special\": true}]");
	json_object_set_new(json_object_get(json_object_get(o, "model"), "vocab"), "a b",
	                    json_integer(300)); /* no byte-level token */
	vn_tokenizer *t = make_tokenizer(o);
	CU_ASSERT(memcmp(token_bytes(t, TOY_BLANK_HELLO, &n), " hello", 6) == 0 && n == 6);
	shows(t, TOY_BLANK_HELLO, " hello");
	shows(t, 10, "\\n");
	shows(t, 255, "\\xff");
	shows(t, 261, "\xc3\xa9 \xc4\xa0"); /* an added token decodes to its own text */
	shows(t, 300, "a b");
	shows(t, 262, "");
	shows(t, -1, "");
	shows(t, INT32_MAX, "");
	CU_ASSERT_PTR_NULL(token_bytes(t, 262, &n));
	vn_tokenizer_close(t);
}

static void tokens_around_a_text_are_a_choice(void)
{
	json_t *o = toy_tokenizer();

	toy_set(o, "post_processor",
	        "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": \"TemplateProcessing\","
	        "\"single\": [{\"SpecialToken\": {\"id\": \"<|end|>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", "
	        "\"type_id\": 0}},{\"SpecialToken\": {\"id\": \"z\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": "
	        "{\"<|end|>\": {\"id\": \"<|end|>\", \"ids\": [261]}, \"z\": {\"id\": \"z\", \"ids\": [122, 121]}}}]}");
	vn_tokenizer *t = make_tokenizer(o);
	gives(t, "hello<|end|>", "261 259 261 122 121");
	gives(t, "", "261 122 121");
	gives_bytes(t, "hello<|end|>", 12, false, "259 261");
	gives_bytes(t, "", 0, false, "");
	vn_tokenizer_close(t);
}

/* ---- what is refused ------------------------------------------------------------ */

static const struct {
	const char *place, *text, *why;
	vn_status   st;
} broken[] = {
	{ "version", "\"2.0\"", "version: '2.0' is not supported (supported: 1.0)", VN_ERR_UNSUPPORTED },
	{ "model", NULL, "model: missing", VN_ERR_FORMAT },
	{ "model", "7", "model: missing", VN_ERR_FORMAT },
	{ "model.type", "\"WordPiece\"", "model.type: 'WordPiece' is not supported (supported: BPE)", VN_ERR_UNSUPPORTED },
	{ "model.type", "3", "model.type: '(no type)' is not supported (supported: BPE)", VN_ERR_UNSUPPORTED },
	{ "model.dropout", "0.1", "model: dropout is not supported", VN_ERR_UNSUPPORTED },
	{ "model.byte_fallback", "true", "model: byte_fallback is not supported", VN_ERR_UNSUPPORTED },
	{ "model.continuing_subword_prefix", "\"##\"", "model: continuing_subword_prefix is not supported",
	  VN_ERR_UNSUPPORTED },
	{ "model.end_of_word_suffix", "\"</w>\"", "model: end_of_word_suffix is not supported", VN_ERR_UNSUPPORTED },
	{ "model.ignore_merges", "1", "model: ignore_merges must be true or false", VN_ERR_FORMAT },
	{ "model.vocab", NULL, "model.vocab: missing", VN_ERR_FORMAT },
	{ "model.vocab", "{}", "model.vocab: not an object of tokens and their ids", VN_ERR_FORMAT },
	{ "model.vocab", "[1]", "model.vocab: not an object of tokens and their ids", VN_ERR_FORMAT },
	{ "model.vocab.a", "\"97\"", "model.vocab: the id of 'a' must be a whole number", VN_ERR_FORMAT },
	{ "model.vocab.new", "97", "model.vocab: 'a' and 'new' have the same id 97", VN_ERR_FORMAT },
	{ "model.vocab.new", "-1", "model.vocab: 'new' has the id -1, expected 0 to 4194303", VN_ERR_FORMAT },
	{ "model.vocab.new", "4194304", "model.vocab: 'new' has the id 4194304, expected 0 to 4194303", VN_ERR_FORMAT },
	{ "model.merges", NULL, "model.merges: missing", VN_ERR_FORMAT },
	{ "model.merges", "{}", "model.merges: not a list", VN_ERR_FORMAT },
	{ "model.merges", "[\"h e\", \"he\"]", "model.merges[1]: 'he': expected two tokens separated by one space",
	  VN_ERR_FORMAT },
	{ "model.merges", "[\"h e l\"]", "model.merges[0]: 'h e l': expected two tokens", VN_ERR_FORMAT },
	{ "model.merges", "[\"h q\"]", "model.merges[0]: 'hq' is not in the vocabulary", VN_ERR_FORMAT },
	{ "model.merges", "[[\"h\"]]", "model.merges[0]: expected two tokens", VN_ERR_FORMAT },
	{ "model.merges", "[[\"h\", 1]]", "model.merges[0]: expected two tokens", VN_ERR_FORMAT },
	{ "model.merges", "[7]", "model.merges[0]: expected two tokens", VN_ERR_FORMAT },
	{ "normalizer", "{\"type\": \"NFKC\"}", "normalizer: 'NFKC' is not supported (supported: NFC)",
	  VN_ERR_UNSUPPORTED },
	{ "normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Lowercase\"}]}",
	  "normalizer.normalizers[1]: 'Lowercase' is not supported", VN_ERR_UNSUPPORTED },
	{ "normalizer", "{\"type\": \"Sequence\"}", "normalizer: a Sequence without normalizers", VN_ERR_FORMAT },
	{ "normalizer", "1", "normalizer: '(no type)' is not supported", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer", NULL, "pre_tokenizer: it has no ByteLevel step: only byte-level BPE is supported",
	  VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer", "{\"type\": \"Metaspace\"}", "pre_tokenizer: 'Metaspace' is not supported", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer", "{\"type\": \"Sequence\", \"pretokenizers\": [" TOY_GPT2 ", {\"type\": \"Split\"}]}",
	  "pre_tokenizer.pretokenizers[1]: a step after ByteLevel is not supported", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer",
	  "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": \"Isolated\", \"invert\": false}",
	  "pre_tokenizer: the pattern does not compile: missing closing parenthesis, near '('", VN_ERR_FORMAT },
	{ "pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a$\"}, \"behavior\": \"Isolated\"}",
	  "pre_tokenizer: an anchor at byte 1 ('$') is not supported", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Removed\"}",
	  "pre_tokenizer: behavior 'Removed' is not supported (supported: Isolated)", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer",
	  "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Isolated\", \"invert\": true}",
	  "pre_tokenizer: invert is not supported", VN_ERR_UNSUPPORTED },
	{ "pre_tokenizer", "{\"type\": \"Split\", \"pattern\": \"a\", \"behavior\": \"Isolated\"}",
	  "pre_tokenizer: no pattern.Regex or pattern.String", VN_ERR_FORMAT },
	{ "pre_tokenizer.use_regex", "\"yes\"", "pre_tokenizer: use_regex must be true or false", VN_ERR_FORMAT },
	{ "added_tokens", "7", "added_tokens: not a list", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"content\": \"x\"}]", "added_tokens: [0] has no id", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261}]", "added_tokens[0]: content is missing", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": -1, \"content\": \"x\"}]", "added_tokens[0]: the id is -1, expected 0 to 4194303",
	  VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261, \"content\": \"\"}]", "added_tokens[0]: the token is empty", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 97, \"content\": \"<x>\"}]",
	  "added_tokens[0]: '<x>' has the id 97, which belongs to 'a' in the vocabulary", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261, \"content\": \"hello\"}]",
	  "added_tokens[0]: 'hello' has the id 261, but 259 in the vocabulary", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261, \"content\": \"<x>\"}, {\"id\": 261, \"content\": \"<y>\"}]",
	  "added_tokens[1]: '<x>' and '<y>' have the same id 261", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261, \"content\": \"<x>\"}, {\"id\": 262, \"content\": \"<x>\"}]",
	  "added_tokens[1]: '<x>' is listed twice, with the ids 261 and 262", VN_ERR_FORMAT },
	{ "added_tokens", "[{\"id\": 261, \"content\": \"x\", \"lstrip\": 1}]",
	  "added_tokens[0]: lstrip must be true or false", VN_ERR_FORMAT },
	{ "post_processor", "{\"type\": \"BertProcessing\"}", "post_processor: 'BertProcessing' is not supported",
	  VN_ERR_UNSUPPORTED },
	{ "post_processor", "{\"type\": \"TemplateProcessing\"}", "post_processor: the template 'single' is missing",
	  VN_ERR_FORMAT },
	{ "post_processor", "{\"type\": \"TemplateProcessing\", \"single\": [7]}",
	  "post_processor: single[0] is neither a Sequence", VN_ERR_FORMAT },
	{ "post_processor", "{\"type\": \"TemplateProcessing\", \"single\": []}",
	  "post_processor: a template that holds the text 0 times", VN_ERR_UNSUPPORTED },
	{ "post_processor",
	  "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}, {\"Sequence\": {}}]}",
	  "post_processor: special_tokens has no ids for 'x'", VN_ERR_FORMAT },
	{ "post_processor",
	  "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}, {\"Sequence\": {}}],"
	  "\"special_tokens\": {\"x\": {\"ids\": [9999]}}}",
	  "post_processor: special_tokens: 'x': no token has the id 9999", VN_ERR_FORMAT },
};

static void a_file_with_one_thing_wrong_is_refused_by_name(void)
{
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		json_t       *o = toy_tokenizer();
		vn_tokenizer *t;
		vn_error      e = { "" };
		char          want[512];
		toy_set(o, broken[i].place, broken[i].text);
		snprintf(want, sizeof want, "toy.json: %s", broken[i].why);
		CU_ASSERT_EQUAL(read_tokenizer(o, &t, &e), broken[i].st);
		CU_ASSERT_PTR_NULL(t);
		CU_ASSERT(strncmp(e.text, want, strlen(want)) == 0);
		if (strncmp(e.text, want, strlen(want)) != 0)
			fprintf(stderr, "wanted '%s', have '%s'\n", want, e.text);
	}
}

static void sequences_nest_only_so_deep(void)
{
	json_t       *in = toy_json(TOY_GPT2), *o = toy_tokenizer();
	vn_tokenizer *t;
	vn_error      e = { "" };

	for (int i = 0; i < 100; i++)
		in = json_pack("{s:s, s:[o]}", "type", "Sequence", "pretokenizers", in);
	json_object_set_new(o, "pre_tokenizer", in);
	CU_ASSERT_EQUAL(read_tokenizer(o, &t, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "nested too deep"));
}

static void what_is_no_json_says_where(void)
{
	static const struct {
		const char *json, *why;
	} bad[] = {
		{ "", "toy.json:1:0: not JSON: '[' or '{' expected near end of file" },
		{ "{\n\"a\": 1,\n\"a\": 2}", "toy.json:3:" },
		{ "[]", "toy.json: not a JSON object" },
		{ "{}", "toy.json: model: missing" },
		{ "{\"model\": {\"vocab\": {\"\\u0000\": 1}}}", "toy.json:1:" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		vn_tokenizer *t;
		vn_error      e = { "" };
		CU_ASSERT_EQUAL(vn_tokenizer_read_json("toy.json", bad[i].json, strlen(bad[i].json), &t, &e), VN_ERR_FORMAT);
		CU_ASSERT(strncmp(e.text, bad[i].why, strlen(bad[i].why)) == 0);
		if (strncmp(e.text, bad[i].why, strlen(bad[i].why)) != 0)
			fprintf(stderr, "wanted '%s', have '%s'\n", bad[i].why, e.text);
	}
}

static void a_text_that_cannot_be_cut_is_refused(void)
{
	json_t  *o = toy_tokenizer();
	int32_t *ids;
	int64_t  n;
	vn_error e = { "" };

	toy_set(
		o, "pre_tokenizer",
		"{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a+)+\\\\d\"},"
		" \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", \"use_regex\": false, \"add_prefix_space\": false}]}");
	vn_tokenizer *t = make_tokenizer(o);
	CU_ASSERT_EQUAL(vn_tokenizer_encode(t, "xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 47, true, &ids, &n, &e),
	                VN_ERR_UNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(e.text, "matching the pattern takes too many steps at byte 1 of the text");
	CU_ASSERT(!ids && n == 0);
	vn_tokenizer_close(t);
}

/* ---- vocab.json and merges.txt ------------------------------------------------------------ */

/* The toy as older files in directory d. */
static void older_files(const char *d, const char *settings)
{
	json_t *o = toy_tokenizer();
	char   *vocab = json_dumps(json_object_get(json_object_get(o, "model"), "vocab"), 0);

	toy_write_text(d, "vocab.json", vocab);
	toy_write_text(d, "merges.txt", "#version: 0.2\nh e\nl l\r\nhe ll\n\nhell o\n\xc4\xa0 hello");
	if (settings)
		toy_write_text(d, "tokenizer_config.json", settings);
	free(vocab);
	json_decref(o);
}

static void older_files_give_the_same_ids(void)
{
	vn_tokenizer *t;
	vn_error      e = { "" };
	char          d[256];

	toy_directory(d);
	older_files(d, NULL);
	toy_write_text(d, "config.json", "{\"model_type\": \"gpt2\"}");
	CU_ASSERT_EQUAL_FATAL(vn_tokenizer_open(d, &t, &e), VN_OK);
	gives(t, "hello hello<|endoftext|>\n\nx",
	      "259 260 261 10 10 120"); /* the token every GPT-2 has, behind the others */
	vn_tokenizer_close(t);

	older_files(d, "{\"tokenizer_class\": \"Qwen2Tokenizer\", \"added_tokens_decoder\": {\"270\": {\"content\": "
	               "\"<|endoftext|>\", \"special\": true}, \"271\": {\"content\": \"<x>\", \"special\": false, "
	               "\"rstrip\": true, \"normalized\": false}}}");
	toy_write_text(d, "added_tokens.json", "{\"<|endoftext|>\": 270, \"<y>\": 272}");
	CU_ASSERT_EQUAL_FATAL(vn_tokenizer_open(d, &t, &e), VN_OK);
	gives(t, "e\xcc\x81<x> \n<y><|endoftext|>!!\n\nx", "195 169 271 272 270 33 33 10 10 120");
	vn_tokenizer_close(t);

	older_files(
		d,
		"{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_prefix_space\": true, \"add_bos_token\": true, \"bos_token\": "
		"{\"content\": \"<y>\"}}");
	CU_ASSERT_EQUAL_FATAL(vn_tokenizer_open(d, &t, &e), VN_OK);
	gives(t, "hello", "272 260");
	vn_tokenizer_close(t);
	toy_remove(d);
}

static void cannot_open(const char *d, vn_status st, const char *why)
{
	vn_tokenizer *t;
	vn_error      e = { "" };

	CU_ASSERT_EQUAL(vn_tokenizer_open(d, &t, &e), st);
	CU_ASSERT_PTR_NULL(t);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, why));
	if (!strstr(e.text, why))
		fprintf(stderr, "wanted '%s', have '%s'\n", why, e.text);
}

static void older_files_with_one_thing_wrong_are_refused(void)
{
	char d[256];

	toy_directory(d);
	cannot_open(d, VN_ERR_NOTFOUND, ": no tokenizer found: expected tokenizer.json, or vocab.json and merges.txt");
	toy_write_text(d, "vocab.json", "{\"a\": 0}");
	cannot_open(d, VN_ERR_UNSUPPORTED, "names a supported tokenizer (GPT2Tokenizer, Qwen2Tokenizer, Qwen3_5Tokenizer)");
	toy_write_text(d, "config.json", "{\"model_type\": \"qwen3\"}");
	cannot_open(d, VN_ERR_NOTFOUND, "merges.txt: No such file");
	toy_write_text(d, "merges.txt", "#version: 0.2\na a\n");
	cannot_open(d, VN_ERR_FORMAT, "merges.txt:2: 'aa' is not in the vocabulary");
	toy_write_text(d, "merges.txt", "a\n");
	cannot_open(d, VN_ERR_FORMAT, "merges.txt:1: 'a': expected two tokens separated by one space");
	older_files(d, "{\"add_bos_token\": true}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: add_bos_token is true, but bos_token names no token");
	older_files(d, "{\"added_tokens_decoder\": {\"x\": {\"content\": \"<x>\"}}}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: added_tokens_decoder.x: the id is -1, expected 0 to");
	older_files(d, "{\"added_tokens_decoder\": {\" 270\": {\"content\": \"<x>\"}}}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: added_tokens_decoder. 270: the id is -1, expected 0 to");
	older_files(d, "{\"added_tokens_decoder\": []}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: added_tokens_decoder is not an object");
	older_files(d, "{\"add_prefix_space\": 1}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: add_prefix_space must be true or false");
	older_files(d, "{\"add_bos_token\": \"yes\"}");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json: add_bos_token must be true or false");
	older_files(d, "{\"tokenizer_class\": \"LlamaTokenizer\"}"); /* whatever config.json calls the model */
	cannot_open(d, VN_ERR_UNSUPPORTED, "tokenizer_config.json: tokenizer_class 'LlamaTokenizer' is not supported");
	older_files(d, "[");
	cannot_open(d, VN_ERR_FORMAT, "tokenizer_config.json:1:1: ");
	older_files(d, "{}");
	toy_write_text(d, "added_tokens.json", "{\"<x>\": 97}");
	cannot_open(d, VN_ERR_FORMAT, "added_tokens.json: '<x>' has the id 97, which belongs to 'a' in the vocabulary");
	const char *ids[] = { "-1", "\"x\"", "4194304", "4294967393", "97.0" };
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		char text[64];
		snprintf(text, sizeof text, "{\"<x>\": %s}", ids[i]);
		toy_write_text(d, "added_tokens.json", text);
		cannot_open(d, VN_ERR_FORMAT, "added_tokens.json: the id of '<x>' must be a whole number from 0 to 4194303");
	}
	toy_write_text(d, "vocab.json", "{\"a\": 1, \"b\": 1}");
	cannot_open(d, VN_ERR_FORMAT, "vocab.json: 'a' and 'b' have the same id 1");
	toy_remove(d);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_text_has_its_ids),
		TEST(both_spellings_of_merges_are_read),
		TEST(bytes_that_are_no_text_pass_through),
		TEST(every_byte_comes_back),
		TEST(tokens_are_bytes_and_text),
		TEST(tokens_around_a_text_are_a_choice),
		TEST(a_file_with_one_thing_wrong_is_refused_by_name),
		TEST(sequences_nest_only_so_deep),
		TEST(what_is_no_json_says_where),
		TEST(a_text_that_cannot_be_cut_is_refused),
		TEST(older_files_give_the_same_ids),
		TEST(older_files_with_one_thing_wrong_are_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("tokenizer", tests);
}

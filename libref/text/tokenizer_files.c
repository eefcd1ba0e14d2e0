/* tokenizer_files.c: finds the tokenizer of a model directory: a tokenizer.json, or the older
 * vocab.json with merges.txt. The latter state no patterns; these follow from the class that
 * transformers would use. */
#include "libref/text/tokenizer_internal.h"

#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/base/text.h"
#include "libref/model/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };
static const size_t MOST_BYTES = (size_t)256 << 20;

static vn_status path_of(const char *directory, const char *name, char path[PATH_ROOM], bool *there, vn_error *err)
{
	if (snprintf(path, PATH_ROOM, "%s/%s", directory, name) >= PATH_ROOM)
		return vn_fail(err, VN_ERR_USAGE, "%s: path too long", directory);
	return vn_file_there(path, there, err);
}

/* Reads a JSON object. *o stays NULL when an optional file is absent. */
static vn_status read_object(const char *directory, const char *name, bool needed, json_t **o, vn_error *err)
{
	char         path[PATH_ROOM], *text;
	size_t       bytes;
	json_error_t je;

	bool      there;
	vn_status st = path_of(directory, name, path, &there, err);

	*o = NULL;
	if (st || (!there && !needed))
		return st;
	if ((st = vn_read_text(path, MOST_BYTES, &text, &bytes, err)))
		return st;
	*o = vn_json_load(text, bytes, JSON_REJECT_DUPLICATES, &je);
	free(text);
	if (!*o)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not JSON: %s", path, je.line, je.column, je.text);
	if (!json_is_object(*o)) {
		json_decref(*o);
		*o = NULL;
		return vn_fail(err, VN_ERR_FORMAT, "%s: not a JSON object", path);
	}
	return VN_OK;
}

/* The older files other than the vocabulary and merges. */
typedef struct older {
	const char *directory;
	json_t     *vocab, *settings, *added, *config; /* tokenizer_config.json, added_tokens.json, config.json */
} older;

static const char *text_in(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
}

/* The pre-tokenizer for a tokenizer class; Qwen3.5 keeps the class name of its predecessor. */
static const vn_pre *pre_of(const older *f)
{
	static const struct {
		const char *word, *pre;
	} known[] = {
		{ "qwen3_5", "qwen35" },
		{ "qwen3_5_text", "qwen35" },
		{ "GPT2Tokenizer", "gpt-2" },
		{ "GPT2TokenizerFast", "gpt-2" },
		{ "Qwen2Tokenizer", "qwen2" },
		{ "Qwen2TokenizerFast", "qwen2" },
		{ "Qwen3_5Tokenizer", "qwen35" },
		{ "gpt2", "gpt-2" },
		{ "qwen2", "qwen2" },
		{ "qwen3", "qwen2" },
	};
	const char *class = text_in(f->settings, "tokenizer_class"), *model = text_in(f->config, "model_type");
	const vn_pre *pre = NULL;
	bool          class_known = !class; /* otherwise a model may use another family's tokenizer */

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const bool is_class = class && strcmp(class, known[i].word) == 0;
		if (!pre && (is_class || (model && strcmp(model, known[i].word) == 0)))
			pre = vn_pre_find(known[i].pre);
		class_known |= is_class;
	}
	return class_known ? pre : NULL;
}

static vn_status read_merges(const older *f, vn_tokenizer *t, vn_error *err)
{
	char           path[PATH_ROOM];
	VN_FREED char *text = NULL;
	size_t         bytes;
	int            number = 1;
	bool           there; /* if not, reading it says so */
	vn_status      st = path_of(f->directory, "merges.txt", path, &there, err);

	if (st || (st = vn_read_text(path, MOST_BYTES, &text, &bytes, err)))
		return st;
	for (const char *line = text, *end = text + bytes, *next; !st && line < end; line = next, number++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		next = stop ? stop + 1 : end;
		size_t n = (size_t)((stop ? stop : end) - line);
		n -= n > 0 && line[n - 1] == '\r';
		if (n == 0 || (number == 1 && n >= 8 && memcmp(line, "#version", 8) == 0))
			continue;
		if ((st = vn_tokenizer_merge_line(t, line, n, err)))
			vn_context(err, st, "%s:%d", path, number);
	}
	return st;
}

/* Reads added_tokens_decoder, added_tokens.json, and the token that every class here has. */
static vn_status read_added(const older *f, vn_tokenizer *t, vn_error *err)
{
	static const char ends[] = "<|endoftext|>";
	json_t           *list = json_object_get(f->settings, "added_tokens_decoder"), *one;
	const char       *key;
	vn_status         st;

	if (list && !json_is_object(list))
		return vn_fail(err, VN_ERR_FORMAT, "%s/tokenizer_config.json: added_tokens_decoder is not an object",
		               f->directory);
	json_object_foreach(list, key, one)
	{
		int64_t id = -1;
		vn_text_whole(key, 0, VN_MOST_TOKENS - 1, &id);
		if ((st = vn_tokenizer_read_added(t, one, id, err)))
			return vn_context(err, st, "%s/tokenizer_config.json: added_tokens_decoder.%.40s", f->directory, key);
	}
	json_object_foreach(f->added, key, one)
	{
		const int64_t        id = json_is_integer(one) ? json_integer_value(one) : -1;
		const vn_added_token token = { .id = (int32_t)id };
		if (id < 0 || id >= VN_MOST_TOKENS)
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s/added_tokens.json: the id of '%.60s' must be a whole number from 0 to %d", f->directory,
			               key, VN_MOST_TOKENS - 1);
		if (vn_bpe_find(t->added, key, strlen(key)) == token.id)
			continue;
		if ((st = vn_tokenizer_add(t, &token, false, key, strlen(key), err)))
			return vn_context(err, st, "%s/added_tokens.json", f->directory);
	}
	if (vn_bpe_find(t->added, ends, strlen(ends)) >= 0)
		return VN_OK;
	const int32_t        there = vn_bpe_find(t->bpe, ends, strlen(ends));
	const int32_t        after = vn_bpe_ids(t->bpe) > vn_bpe_ids(t->added) ? vn_bpe_ids(t->bpe) : vn_bpe_ids(t->added);
	const vn_added_token token = { .id = there >= 0 ? there : after };
	st = vn_tokenizer_add(t, &token, false, ends, strlen(ends), err);
	return st ? vn_context(err, st, "%s/vocab.json", f->directory) : VN_OK;
}

/* Reads a boolean of tokenizer_config.json; false when it is absent. */
static vn_status read_switch(const older *f, const char *key, bool *on, vn_error *err)
{
	const json_t *v = vn_json_field(f->settings, key);

	*on = json_is_true(v);
	if (v && !json_is_boolean(v))
		return vn_fail(err, VN_ERR_FORMAT, "%s/tokenizer_config.json: %s must be true or false", f->directory, key);
	return VN_OK;
}

/* Reads add_bos_token and add_eos_token. */
static vn_status read_around(const older *f, vn_tokenizer *t, const char *wish, const char *which, vn_ids *to,
                             vn_error *err)
{
	bool            wanted;
	const vn_status st = read_switch(f, wish, &wanted, err);

	if (st || !wanted)
		return st;
	const char   *text = text_in(f->settings, which);
	const int32_t id = text ? vn_bpe_find(t->added, text, strlen(text)) : -1;
	if (id < 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s/tokenizer_config.json: %s is true, but %s names no token", f->directory,
		               wish, which);
	vn_ids_add(to, id);
	return VN_OK;
}

static vn_status read_older(const older *f, vn_tokenizer *t, const vn_pre *pre, vn_error *err)
{
	bool       blank = false;
	const bool one_step = pre->pattern == vn_gpt2_pattern; /* other classes insert the blank before pieces that
	                                                        * are already split */
	vn_status  st;

	t->nfc = pre->nfc;
	if ((st = vn_tokenizer_read_vocab(t, f->vocab, err)))
		return vn_context(err, st, "%s/vocab.json", f->directory);
	if ((st = read_merges(f, t, err)) || (st = read_switch(f, "add_prefix_space", &blank, err)) ||
	    (st = vn_tokenizer_stage(t, blank && one_step, pre->pattern, strlen(pre->pattern), false, err)) ||
	    (blank && !one_step && (st = vn_tokenizer_stage(t, true, NULL, 0, false, err))) ||
	    (st = read_added(f, t, err)) || (st = read_around(f, t, "add_bos_token", "bos_token", &t->before, err)) ||
	    (st = read_around(f, t, "add_eos_token", "eos_token", &t->after, err)))
		return st;
	vn_tokenizer_settle(t);
	return VN_OK;
}

static vn_status open_gguf(const char *path, vn_tokenizer **t, vn_error *err)
{
	vn_gguf  *f;
	vn_status st = vn_gguf_open(path, &f, err);

	if (st)
		return st;
	st = vn_tokenizer_of_gguf(f, t, err);
	vn_gguf_close(f);
	return st;
}

static void end_older(older *f)
{
	json_decref(f->vocab);
	json_decref(f->settings);
	json_decref(f->added);
	json_decref(f->config);
}

static vn_status open_older(const char *directory, vn_tokenizer **t, vn_error *err)
{
	VN_ENDS(end_older) older f = { .directory = directory };
	const vn_pre            *pre;
	vn_status                st;

	if ((st = read_object(directory, "vocab.json", true, &f.vocab, err)) ||
	    (st = read_object(directory, "tokenizer_config.json", false, &f.settings, err)) ||
	    (st = read_object(directory, "added_tokens.json", false, &f.added, err)) ||
	    (st = read_object(directory, "config.json", false, &f.config, err)))
		return st;
	if (!(pre = pre_of(&f)) && text_in(f.settings, "tokenizer_class"))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s/tokenizer_config.json: tokenizer_class '%.60s' is not supported without a tokenizer.json "
		               "(supported: GPT2Tokenizer, Qwen2Tokenizer, Qwen3_5Tokenizer)",
		               directory, text_in(f.settings, "tokenizer_class"));
	if (!pre)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: vocab.json is present, but neither tokenizer_config.json nor "
		               "config.json names a supported tokenizer (GPT2Tokenizer, Qwen2Tokenizer, Qwen3_5Tokenizer)",
		               directory);
	return read_older(&f, *t = vn_tokenizer_create(pre->whole_first), pre, err);
}

vn_status vn_tokenizer_open(const char *directory, vn_tokenizer **t, vn_error *err)
{
	char        path[PATH_ROOM], *text;
	size_t      bytes;
	struct stat s;
	bool        there;
	vn_status   st;

	*t = NULL;
	if (stat(directory, &s) == 0 && !S_ISDIR(s.st_mode))
		return open_gguf(directory, t, err);
	if ((st = path_of(directory, "tokenizer.json", path, &there, err)))
		return st;
	if (there) {
		if ((st = vn_read_text(path, MOST_BYTES, &text, &bytes, err)))
			return st;
		st = vn_tokenizer_read_json(path, text, bytes, t, err);
		free(text);
		return st;
	}
	if ((st = path_of(directory, "vocab.json", path, &there, err)))
		return st;
	if (!there)
		return vn_fail(err, VN_ERR_NOTFOUND,
		               "%s: no tokenizer found: expected tokenizer.json, or vocab.json and merges.txt (in Python, "
		               "tokenizer.save_pretrained(DIR) writes them)",
		               directory);
	if ((st = open_older(directory, t, err))) {
		vn_tokenizer_close(*t);
		*t = NULL;
	}
	return st;
}

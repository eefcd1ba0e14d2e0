/* toy_tokenizer.h: a small tokenizer.json that a test can change before it is read.
 *
 * Its vocabulary: every byte under its own number (in the byte-level alphabet), and from 256 on
 * what the merges make. Its merges, in the order of their rank: "h e", "l l", "he ll", "hell o", "Ġ
 * hello". */
#pragma once

#include "libref/text/bytelevel.h"
#include "libref/text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOY_HE = 256, TOY_LL, TOY_HELL, TOY_HELLO, TOY_BLANK_HELLO, TOY_END /* "<|end|>", an added token */ };

#define TOY_GPT2 "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"

/* Parses JSON text as an object; ends the program if it is not one. */
static inline json_t *toy_json(const char *text)
{
	json_error_t e;
	json_t      *o = json_loads(text, JSON_DECODE_ANY, &e);

	if (!o) {
		fprintf(stderr, "toy_json: %s in %s\n", e.text, text);
		exit(2);
	}
	return o;
}

static inline json_t *toy_tokenizer(void)
{
	static const char *const made[] = { "he", "ll", "hell", "hello", "\xc4\xa0hello" };
	json_t                  *o = toy_json("{\"version\": \"1.0\", \"normalizer\": null, \"pre_tokenizer\": " TOY_GPT2
	                                      ", \"post_processor\": null, \"added_tokens\": [{\"id\": 261, \"content\": "
	                                                       "\"<|end|>\", \"special\": true}], \"model\": {\"type\": "
	                                                       "\"BPE\", \"vocab\": {}, \"merges\": [\"h e\", \"l l\", "
	                                                       "\"he ll\", \"hell o\", \"\\u0120 hello\"]}}");
	json_t                  *vocab = json_object_get(json_object_get(o, "model"), "vocab");

	for (int b = 0; b < 256; b++) {
		char byte = (char)b, text[3];
		text[vn_bytelevel_write(text, &byte, 1)] = '\0';
		json_object_set_new(vocab, text, json_integer(b));
	}
	for (int i = 0; i < 5; i++)
		json_object_set_new(vocab, made[i], json_integer(256 + i));
	return o;
}

/* Puts JSON text at a place like "model.vocab" ("": the whole), or removes that place (NULL). */
static inline void toy_set(json_t *o, const char *place, const char *text)
{
	const char *dot;

	while ((dot = strchr(place, '.'))) {
		char key[64];
		snprintf(key, sizeof key, "%.*s", (int)(dot - place), place);
		o = json_object_get(o, key);
		place = dot + 1;
	}
	if (text)
		json_object_set_new(o, place, toy_json(text));
	else
		json_object_del(o, place);
}

/* Writes the ids of n bytes, separated by blanks, or the error message to `have` (512 bytes). */
static inline const char *toy_ids(const vn_tokenizer *t, const char *text, size_t n, bool special, char *have)
{
	int32_t *ids;
	int64_t  count;
	vn_error e = { "" };

	if (vn_tokenizer_encode(t, text, n, special, &ids, &count, &e))
		snprintf(have, 512, "%.511s", e.text);
	else
		*have = '\0';
	for (int64_t i = 0; i < count; i++)
		snprintf(have + strlen(have), 512 - strlen(have), "%s%d", i ? " " : "", ids[i]);
	free(ids);
	return have;
}

/* token_lists.h: how the tokens of two recordings differ, in words: one more in front, the same
 * text in other tokens. Says what is known of the cause, and nothing if the lists have little in
 * common. */
#pragma once

#include "libref/text/tokenizer.h"

/* The tokens of one recording, borrowed. */
typedef struct vn_token_list {
	const int32_t *ids;  /* (n) */
	char *const   *text; /* (n), escaped as by vn_utf8_escape; NULL: not recorded */
	int64_t        n;
} vn_token_list;

enum { VN_TOKENS_WORDS = 400 };

/* Writes a clause such as "; the candidate has 1 more in front: 500 ("<s>"), which is there twice",
 * or "". who: what the other recording is called. tokenizer: knows texts that neither list has;
 * NULL: none. Returns words. */
char *vn_tokens_differ(const vn_token_list *ref, const vn_token_list *other, const char *who,
                       const vn_tokenizer *tokenizer, char words[VN_TOKENS_WORDS]);

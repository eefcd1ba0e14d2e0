/* token_bytes.h: the bytes of a token, from the form in which it is shown. */
#pragma once

#include "libref/base/utf8.h"
#include "libref/text/tokenizer.h"

#include <stdlib.h>

/* Returns the bytes, valid until the next call; NULL if the id has no token. */
static inline const char *token_bytes(const vn_tokenizer *t, int32_t id, size_t *n)
{
	static char *text;

	free(text);
	if (!(text = vn_tokenizer_show(t, id)))
		exit(2);
	*n = vn_utf8_unescape(text);
	return *n ? text : NULL;
}

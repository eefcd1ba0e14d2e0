/* prompt.c: see prompt.h. */
#include "capture/prompt.h"

#include "capture/arguments.h"
#include "libref/base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest text: more than any context has. */
static const size_t MOST_TEXT = (size_t)64 << 20;

static vn_status encode(const char *text, bool special, vn_prompt *p, vn_error *err)
{
	char       *file = NULL;
	const char *where = "--prompt";
	size_t      n = strlen(text);
	vn_status   st;

	if (text[0] == '@' && text[1] == '@') {
		text++;
		n--;
	} else if (text[0] == '@') {
		where = text + 1;
		if ((st = vn_read_text(where, MOST_TEXT, &file, &n, err)))
			return st;
		text = file;
	}
	st = vn_tokenizer_encode(p->tokenizer, text, n, special, &p->ids, &p->n, err);
	if (st)
		vn_context(err, st, "%s", where);
	else if (p->n == 0)
		st = vn_fail(err, VN_ERR_USAGE, "%s: an empty text: a run needs at least one token", where);
	free(file);
	return st;
}

vn_status vn_prompt_read(const char *model, const char *list, const char *text, bool special, vn_prompt *p, vn_error *err)
{
	vn_error  why = { "" };
	vn_status st = VN_OK;

	*p = (vn_prompt){ 0 };
	if (list && (st = vn_read_ids("--ids", list, &p->ids, &p->n, err)))
		return st;
	vn_status opened = vn_tokenizer_open(model, &p->tokenizer, &why);
	if (text && opened) {
		if (err)
			*err = why;
		st = opened;
	} else if (text) {
		st = encode(text, special, p, err);
	} else if (opened && opened != VN_ERR_NOTFOUND) {
		snprintf(p->warning, sizeof p->warning, "%s", why.text);
	}
	if (st)
		vn_prompt_finish(p);
	return st;
}

void vn_prompt_finish(vn_prompt *p)
{
	free(p->ids);
	vn_tokenizer_close(p->tokenizer);
	p->ids = NULL;
	p->tokenizer = NULL;
}

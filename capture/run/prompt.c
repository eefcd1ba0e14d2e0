/* prompt.c: see prompt.h. */
#include "capture/run/prompt.h"

#include "capture/base/warnings.h"
#include "capture/run/arguments.h"
#include "capture/run/ids_from.h"
#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static vn_status encode_text(const char *where, const char *text, size_t n, bool special, vn_prompt *p, vn_error *err)
{
	vn_status st = vn_tokenizer_encode(p->tokenizer, text, n, special, &p->ids, &p->n, err);

	if (st)
		return vn_context(err, st, "%s", where);
	return p->n ? VN_OK : vn_fail(err, VN_ERR_USAGE, "%s: an empty text: a run needs at least one token", where);
}

static vn_status encode_file(const char *path, bool special, vn_prompt *p, vn_error *err)
{
	VN_FREED char *text = NULL;
	size_t         n;
	vn_status      st = vn_arguments_read_file(path, &text, &n, err);

	return st ? st : encode_text(path, text, n, special, p, err);
}

/* For a text. Without a tokenizer, ids can be given. */
static vn_status open_tokenizer(const char *model, vn_prompt *p, vn_error *err)
{
	const vn_status st = vn_tokenizer_open(model, &p->tokenizer, err);
	const vn_error  why = *err;

	return st == VN_ERR_NOTFOUND ? vn_fail(err, st, "%s; --ids takes the ids of another tokenizer", why.text) : st;
}

vn_status vn_prompt_read_file(const char *model, const char *path, bool special, vn_prompt *p, vn_error *err)
{
	vn_status st;

	*p = (vn_prompt) { 0 };
	if (!(st = open_tokenizer(model, p, err)))
		st = encode_file(path, special, p, err);
	if (st)
		vn_prompt_finish(p);
	return st;
}

static vn_status read_text(const char *model, const char *text, bool special, vn_prompt *p, vn_error *err)
{
	struct stat s;

	p->file = text[0] != '@' && stat(text, &s) == 0 && S_ISREG(s.st_mode) ? text : NULL;
	text += text[0] == '@';
	const vn_status st = open_tokenizer(model, p, err);
	return st ? st : encode_text("--prompt", text, strlen(text), special, p, err);
}

/* A tokenizer that only shows the tokens as text may be missing. */
static void open_shower(const char *model, vn_prompt *p)
{
	vn_error        why = { "" };
	const vn_status opened = vn_tokenizer_open(model, &p->tokenizer, &why);

	if (opened && opened != VN_ERR_NOTFOUND)
		snprintf(p->warning, sizeof p->warning, "%s", why.text);
}

void vn_prompt_of(const char *model, const int32_t *ids, int64_t n, vn_prompt *p)
{
	*p = (vn_prompt) { .n = n, .ids = vn_alloc((size_t)n, sizeof *ids) };
	memcpy(p->ids, ids, (size_t)n * sizeof *ids);
	open_shower(model, p);
}

vn_status vn_prompt_read(const char *model, const vn_prompt_source *from, vn_prompt *p, vn_error *err)
{
	vn_status st;

	if (from->text && from->text[0] == '@' && from->text[1] != '@')
		return vn_prompt_read_file(model, from->text + 1, !from->no_special, p, err);
	*p = (vn_prompt) { 0 };
	if (from->text)
		st = read_text(model, from->text, !from->no_special, p, err);
	else
		st = from->list ? vn_arguments_read_ids("--ids", from->list, &p->ids, &p->n, err)
		                : vn_ids_from(&(vn_ids_source) { "--ids-from", from->recording, from->row }, VN_IDS_PROMPT,
		                              &p->ids, &p->n, err);
	if (!st && !from->text)
		open_shower(model, p);
	if (st)
		vn_prompt_finish(p);
	return st;
}

vn_status vn_prompt_check(const vn_prompt_source *from, vn_error *err)
{
	return from->list || from->recording || from->text
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "--ids LIST, --ids-from REC or --prompt TEXT is needed: the tokens to run");
}

void vn_prompt_finish(vn_prompt *p)
{
	free(p->ids);
	vn_tokenizer_close(p->tokenizer);
	p->ids = NULL;
	p->tokenizer = NULL;
}

void vn_prompt_warn(const char *command, const vn_model *m, const vn_prompt *p)
{
	const char *warning;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		vn_warn(command, "%s", warning);
	if (p && *p->warning)
		vn_warn(command, "the text of the tokens is not recorded: %s", p->warning);
	if (p && p->file)
		vn_warn(command, "--prompt: the prompt is the name of a file, not its text; write @%s to read the file",
		        p->file);
}

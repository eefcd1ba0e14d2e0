/* prompt.h: the tokens that a run begins with: token ids, or a text and the model's tokenizer. */
#pragma once

#include "libref/model/model.h"
#include "libref/text/tokenizer.h"

typedef struct vn_prompt {
	int32_t      *ids; /* (n) */
	int64_t       n;
	vn_tokenizer *tokenizer;             /* NULL: the model has no usable one */
	char          warning[VN_ERROR_MAX]; /* why it cannot be used; "": nothing to report */
	const char   *file;                  /* the text, if it is the name of a file; else NULL */
} vn_prompt;

/* Where the tokens come from; exactly one of the first three is set. */
typedef struct vn_prompt_source {
	const char *list;      /* a list as for vn_arguments_read_ids */
	const char *recording; /* a recording, whose prompt is used */
	/* a text; "@FILE": the bytes of a file or pipe; "@@...": a text that begins with "@" */
	const char *text;
	bool        no_special; /* do not add special tokens (vn_tokenizer_encode) */
	int64_t     row;        /* of the recording: the prompt, of several; -1: not given */
} vn_prompt_source;

/* Reads the tokens. With a list or a recording, a tokenizer that cannot be opened is only a
 * warning, since it only shows the tokens as text. */
vn_status vn_prompt_read(const char *model, const vn_prompt_source *from, vn_prompt *p, vn_error *err);
/* Same for ids (n) that the caller has; they are copied. */
void      vn_prompt_of(const char *model, const int32_t *ids, int64_t n, vn_prompt *p);
/* Is one given? */
vn_status vn_prompt_check(const vn_prompt_source *from, vn_error *err);
/* Tokenises all bytes of a file or pipe. */
vn_status vn_prompt_read_file(const char *model, const char *path, bool special, vn_prompt *p, vn_error *err);
void      vn_prompt_finish(vn_prompt *p);

/* Prints the warnings of a model and of a prompt (may be NULL) in the name of `command`. */
void vn_prompt_warn(const char *command, const vn_model *m, const vn_prompt *p);

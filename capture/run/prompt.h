/* prompt.h: what a run begins with: token ids, or a text and the model's tokenizer. */
#ifndef VN_CAPTURE_PROMPT_H
#define VN_CAPTURE_PROMPT_H

#include "libref/model/model.h"
#include "libref/text/tokenizer.h"

typedef struct vn_prompt {
	int32_t      *ids; /* (n) */
	int64_t       n;
	vn_tokenizer *tokenizer;              /* NULL: the model has none that can be used */
	char          warning[VN_ERROR_MAX];  /* why, when it has one; empty: nothing to say */
} vn_prompt;

/* Where the tokens come from; one is not NULL. */
typedef struct vn_prompt_source {
	const char *list;       /* as vn_read_ids takes them */
	const char *recording;  /* its prompt */
	const char *text;       /* tokenised as it is; "@FILE" stands for every byte of a file or pipe, "@@..." for a text that begins with "@" */
	bool        no_special; /* not vn_tokenizer_encode's special */
} vn_prompt_source;

/* With a list or a recording the tokenizer only tells what the tokens say, so one that does not open is no error. */
vn_status vn_prompt_read(const char *model, const vn_prompt_source *from, vn_prompt *p, vn_error *err);
/* What is wrong with the options --ids, --ids-from, --prompt and --no-special-tokens together; or_not: none is right, too. */
vn_status vn_prompt_check(const vn_prompt_source *from, bool or_not, vn_error *err);
/* Every byte of a file or pipe as text. */
vn_status vn_prompt_read_file(const char *model, const char *path, bool special, vn_prompt *p, vn_error *err);
void      vn_prompt_finish(vn_prompt *p);

/* Prints the warnings of a model, and of a prompt (NULL: none), as `command`. */
void      vn_prompt_warn(const char *command, const vn_model *m, const vn_prompt *p);

#endif

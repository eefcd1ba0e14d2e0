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

/* One of list ("1,2,3" or "@FILE") and text is not NULL. text is tokenised as it
 * is; "@FILE" stands for every byte of a file or pipe, "@@..." for a text that begins with
 * one "@". special: as in vn_tokenizer_encode. With a list the tokenizer only
 * tells what the tokens say, so one that does not open is no error. */
vn_status vn_prompt_read(const char *model, const char *list, const char *text, bool special, vn_prompt *p, vn_error *err);
/* Every byte of a file or pipe as text. */
vn_status vn_prompt_read_file(const char *model, const char *path, bool special, vn_prompt *p, vn_error *err);
void      vn_prompt_finish(vn_prompt *p);

/* Prints the warnings of a model, and of a prompt (NULL: none), as `command`. */
void      vn_prompt_warn(const char *command, const vn_model *m, const vn_prompt *p);

#endif

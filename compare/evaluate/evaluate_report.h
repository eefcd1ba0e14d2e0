/* evaluate_report.h: writes an evaluation as text or JSON. */
#ifndef VN_COMPARE_EVALUATE_REPORT_H
#define VN_COMPARE_EVALUATE_REPORT_H

#include "compare/evaluate/evaluate.h"
#include "compare/text/lines.h"
#include "libref/text/tokenizer.h"

#include <stdio.h>

/* What was evaluated. */
typedef struct vn_evaluated {
	const char *model;          /* its path */
	const char *text;           /* where the tokens came from */
	const vn_tokenizer *tokenizer; /* to show tokens as text; NULL: ids only */
	vn_facts    engine[2];      /* facts that the engines state; [0] reference, [1] candidate */
	/* options of `vernier capture` that select the tokens (shell.h); "": it cannot run all of them
	 * in one call */
	const char *source;
	const vn_evaluate_options *o;
	const vn_evaluation       *e;
} vn_evaluated;

/* Adds the warnings that the text report shows, one line each. */
void      vn_evaluate_warnings(const vn_evaluation *e, vn_lines *lines);

void      vn_evaluate_text(const vn_evaluated *x, FILE *out);
/* Schema vernier-evaluate/1; see specs/evaluate.md. */
vn_status vn_evaluate_json(const vn_evaluated *x, FILE *out, vn_error *err);

#endif

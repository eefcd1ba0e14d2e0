/* evaluate_report.h: writes an evaluation as text or JSON. */
#pragma once

#include "compare/evaluate/evaluate.h"
#include "compare/text/lines.h"
#include "libref/text/tokenizer.h"

#include <stdio.h>

/* What was evaluated. */
typedef struct vn_evaluated {
	const char         *model;       /* its path; NULL: the logits were recorded */
	const char         *recorded[2]; /* if model is NULL: the files or folders of the recordings */
	int64_t             unscored;    /* if model is NULL: tokens without recorded logits on one side or both */
	const char         *injected;    /* faults of the candidate: "R1@layer3"; NULL: none */
	const char         *weights[2];  /* of each engine: "trained", "synthetic" or "unknown" */
	const char         *format[2];   /* of the weights: "safetensors", "gguf Q8_0, F32"; "": not recorded */
	const char         *text;        /* where the tokens came from */
	const vn_tokenizer *tokenizer;   /* to show tokens as text; NULL: ids only */
	vn_facts            engine[2];   /* facts that the engines state; [0] reference, [1] candidate */
	/* options of `vernier capture` that select the tokens (shell.h); "": it cannot run all of them
	 * in one call */
	const char         *source;
	const char         *runs_on, *run_options; /* the candidate's engine and further options of its run (runs.h) */
	const vn_evaluate_options *o;
	const vn_evaluation       *e;
	const vn_lines            *notes;   /* what the user's settings gave; NULL: nothing */
	const vn_lines            *garbage; /* warnings about what the candidate chooses; NULL: not looked for */
} vn_evaluated;

/* Adds the warnings that the text report shows, one line each. */
void vn_evaluate_warnings(const vn_evaluated *x, vn_lines *lines);

/* x (n): evaluations by the same reference. */
void      vn_evaluate_text(const vn_evaluated *x, int n, FILE *out);
/* Schema vernier-evaluate/2 of one, vernier-evaluate-many/2 of several; see specs/json.md. */
vn_status vn_evaluate_json(const vn_evaluated *x, int n, FILE *out, vn_error *err);

/* weights.h: finds which weights of two sides differ, and how, before any activation is compared.
 *
 * A side is the table of weights of a recording or of a model (specs/checkpoint.md): names,
 * formats, shapes, digests and statistics and, if the files can be read, the numbers. Every weight
 * that differs is tried against the known mistakes of specs/faults.md, chapters W and N. Each
 * finding names its evidence:
 *
 *   digest      the reference's numbers with this change have the candidate's digest; or the
 *               candidate's digest is that of another weight. Certain.
 *   table       the tables alone show it: a name, a format, all zeros. Certain.
 *   numbers     measured on the numbers of both sides. Certain or likely, as stated.
 *   statistics  minimum, maximum, mean and rms agree. Likely.
 *
 * Reads    the two sides
 * Fills    a vn_weights of the caller's (result.weights: match/contract.h)
 * Owner    sides, their rows and numbers are borrowed and must outlive the result.
 * Threads  call from one thread at a time; the computation itself uses several.
 */
#pragma once

#include "compare/weights/weights_difference.h"

/* Weights that differ in the same way, shown as one line. */
typedef struct vn_weight_line {
	char *which;       /* "all 24 layers: self_attn.q_proj.weight" */
	char  side[2][48]; /* "bf16 (896, 896)", "various", "-" */
	int   first, n;    /* of the differences, sorted: [first, first + n) */
} vn_weight_line;

typedef struct vn_weights {
	int                   n[2];          /* number of weights on each side */
	int                   same, rounded; /* equal bits; equal up to rounding to another format */
	int                   alike;         /* those of them that were judged by statistics, without the numbers */
	bool                  copied;        /* a table is that of a model, not of the run: nobody measured them */
	vn_weight_difference *found;         /* grouped by line */
	int                   n_found;
	int                   extra; /* how many of them only the candidate has */
	vn_weight_line       *line;
	int                   n_lines;
} vn_weights;

/* Compares two sides with at least one weight each. threads: as in vn_model_table. The caller frees
 * the result with vn_weights_free. */
vn_weights *vn_weights_compare(const vn_weight_side *ref, const vn_weight_side *cand, int threads);
void        vn_weights_free(vn_weights *w); /* NULL is allowed */

/* Returns the numbers of a table of n rows, sorted by name, from a model: by name and digest. NULL:
 * the model has none of them. The caller frees the array. */
vn_tensor *vn_weights_numbers(const vn_weight_row *row, int n, const vn_model *m, int threads);

/* Words for one line: "transposed (W1)", "quantised as q4_k (W15), 5.1 to 6.9 % apart"; and its
 * proof: "certain, by digest" or "likely, by statistics". vn_weight_line_says returns text. */
enum { VN_WEIGHT_SAYS = VN_WEIGHT_WORDS + 96 };
char       *vn_weight_line_says(const vn_weights *w, const vn_weight_line *l, char text[VN_WEIGHT_SAYS]);
const char *vn_weight_line_proof(const vn_weights *w, const vn_weight_line *l);
/* Writes the summary of the comparison to text: "3 of 26 differ", "26, all equal". Returns text. */
char       *vn_weights_summary(const vn_weights *w, char text[VN_WEIGHT_WORDS]);

/* Do two rows have the same numbers? Decided by digest, or between formats by statistics. */
bool vn_weights_same(const vn_weight_row *x, const vn_weight_row *y);

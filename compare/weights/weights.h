/* weights.h: which weights of two sides differ, and how: before any activation.
 *
 * A side is the table of weights of a recording or of a model (specs/checkpoint.md):
 * names, formats, shapes, digests and statistics and, if the files can be read, the
 * numbers. Every weight that differs is tried against the known mistakes of
 * specs/models.md, 9.5 and 9.6. Each finding rests on one of these, and names it:
 *
 *   digest      the reference's numbers with this change have the candidate's digest; or the
 *               candidate's digest is that of another weight. Certain.
 *   table       the tables alone show it: a name, a format, all zeros. Certain.
 *   numbers     measured on the numbers of both sides. Certain or likely, as stated.
 *   statistics  minimum, maximum, mean and rms agree. Likely.
 *
 * Owner    sides, their rows and numbers are borrowed and must outlive the result.
 * Threads  one at a time; computing uses several.
 */
#ifndef VN_COMPARE_WEIGHTS_H
#define VN_COMPARE_WEIGHTS_H

#include "libref/model/model.h"

#include <stdbool.h>

typedef struct vn_weight_side {
	const vn_weight_row *row;     /* (n), sorted by name */
	int                  n;
	const vn_tensor     *numbers; /* (n), data NULL if unknown; NULL: none are known */
	const vn_plan       *plan;    /* for the sizes of heads; NULL: not known */
	bool                 gguf;    /* of a GGUF file, whose converter's changes were undone (specs/models.md, 4.7) */
} vn_weight_side;

/* The evidence of a finding. */
typedef enum vn_proof { VN_BY_STATISTICS, VN_BY_NUMBERS, VN_BY_TABLE, VN_BY_DIGEST } vn_proof;

enum { VN_WEIGHT_WORDS = 160 };

typedef struct vn_weight_difference {
	const vn_weight_row *row[2]; /* [0] the reference's, [1] the candidate's; NULL: missing */
	int         layer;           /* -1: outside layers */
	const char *part;            /* its name after the layer: "self_attn.q_proj.weight" */
	const char *kind;            /* "transposed": one word, of specs/weights.md */
	char        id[8];           /* in the catalogue, "W1"; "" if it has none */
	char        words[VN_WEIGHT_WORDS];
	const char *measured;        /* of this one weight: "apart", "correlation", "rms", "places"; NULL: nothing */
	double      measure;         /* root of the nmse; the coefficient; candidate's by reference's; how many */
	vn_proof    proof;
	bool        certain;
} vn_weight_difference;

/* The weights that differ in the same way, as one line. */
typedef struct vn_weight_line {
	char   *which;               /* "all 24 layers: self_attn.q_proj.weight" */
	char    side[2][48];         /* "bf16 (896, 896)", "various", "-" */
	int     first, n;            /* of the differences, sorted: [first, first + n) */
} vn_weight_line;

typedef struct vn_weights {
	int   n[2];                  /* number of weights on each side */
	int   same, rounded;         /* the same bits; the same numbers, rounded to another format */
	vn_weight_difference *found; /* grouped as the lines are */
	int   n_found;
	int   extra;                 /* of them only in the candidate */
	vn_weight_line *line;
	int   n_lines;
} vn_weights;

/* ref and cand with n > 0. Threads as in vn_model_table. vn_weights_free afterwards. */
vn_status vn_weights_compare(const vn_weight_side *ref, const vn_weight_side *cand, int threads, vn_weights **w, vn_error *err);
void      vn_weights_free(vn_weights *w); /* safe on NULL */

/* The table of a model, sorted by name, and its numbers (n) unless numbers is NULL. The caller
 * frees both arrays; the data of the numbers belongs to the model. */
vn_status vn_weights_of_model(const vn_model *m, int threads, vn_weight_row **rows, vn_tensor **numbers, vn_error *err);
/* The numbers of a table of n rows, as far as the model holds them: by name and digest. NULL in
 * *numbers where it holds none. */
vn_status vn_weights_numbers(const vn_weight_row *row, int n, const vn_model *m, int threads, vn_tensor **numbers, vn_error *err);

/* "transposed (W1)", "quantised as q4_k (W15), 5.1 to 6.9 % apart"; and "certain, by digest" or "likely, by statistics". */
enum { VN_WEIGHT_SAYS = VN_WEIGHT_WORDS + 96 };
char       *vn_weight_line_says(const vn_weights *w, const vn_weight_line *l, char text[VN_WEIGHT_SAYS]);
const char *vn_weight_line_proof(const vn_weights *w, const vn_weight_line *l);
/* The summary of the comparison: "3 of 26 differ", "26, all equal". */
char       *vn_weights_summary(const vn_weights *w, char text[VN_WEIGHT_WORDS]);

/* Are these the same numbers? By digest, or between formats by statistics. */
bool vn_weights_same(const vn_weight_row *x, const vn_weight_row *y);

#endif

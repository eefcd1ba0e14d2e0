/* linear_product.h: a sample of a linear product whose result is the checkpoint. Estimators read
 * numbers off the sampled rows and channels. */
#pragma once

#include "compare/trial/case.h"
#include "libref/plan/fault.h"

enum { VN_PRODUCT_MATRIX_MOST = 1 << 24 }; /* the most numbers of a matrix that is tested whole */

typedef struct vn_tested_product {
	vn_case         *t;
	const vn_node   *n;
	const vn_tensor *own, *fine, *cand, *w, *bias; /* bias NULL: none */
	int              node;
	vn_point         point;
	int64_t          T, N, M; /* rows of the checkpoint, columns of its input, channels */
	int64_t          R, C;    /* numbers of sampled rows and channels */
	double          *x, *wc;  /* (R, N)  (C, N) */
	double          *error;   /* (R, C): candidate - expected */
} vn_tested_product;

/* Is the operation a product that can be tested? Then fills *p, whose t, own, fine and cand are
 * set. */
bool vn_tested_product_open(vn_tested_product *p, int node);
/* Reads the sample: x, wc and error, which the caller frees. Returns false if it cannot be read. */
bool vn_tested_product_read(vn_tested_product *p);

/* Return the token of the i-th sampled row, and the channel of the c-th sampled channel. */
int64_t vn_tested_product_row(const vn_tested_product *p, int64_t i);
int64_t vn_tested_product_channel(const vn_tested_product *p, int64_t c);
/* Return candidate - expected at a row and channel; and the sum of its squares over the sample. */
double  vn_tested_product_error(const vn_tested_product *p, int64_t row, int64_t channel);
double  vn_tested_product_error_sum(const vn_tested_product *p);

/* Returns the trial of a catalogue row with this number; and whether that row applies to the
 * product. */
vn_trial vn_tested_product_with(const vn_tested_product *p, vn_finding finding, vn_mistake fault, double number);
bool     vn_tested_product_may_have(const vn_tested_product *p, vn_mistake fault);

/* Solves the n equations a x = b, whose x is left in b. Returns false if they do not determine
 * x. */
bool vn_estimate_solve(double *a, double *b, int n);
/* Is a coefficient so near to 0 or 1 that a rank is missing, or present? */
bool vn_estimate_is_whole(double x);

/* estimate_matrix.c: estimates how the matrix of a product, or its input, was changed
 * (apply_matrix.h): transposed, not loaded, its shards in another order than the inputs, rounded to
 * another format, or multiplied by a number. */

/* Fits the order in which the shards of several ranks met their inputs, if it was a wrong one. */
void vn_estimate_crossed_ranks(vn_tested_product *p);
/* Tries every edit of matrix or input on the tested rows and channels, and the best one in full. */
void vn_estimate_matrix_edit(vn_tested_product *p);
/* Fits a factor of the weights, in a product with a bias that has its own size. */
void vn_estimate_matrix_factor(vn_tested_product *p);
/* Fits by how many columns those of the matrix were rolled. */
void vn_estimate_matrix_rolled(vn_tested_product *p);

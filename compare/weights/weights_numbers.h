/* weights_numbers.h: the numbers of a weight: their digest in another order or format, and how
 * those of two weights are related. */
#pragma once

#include "compare/weights/weights_change.h"

/* A matrix in up to three parts, one below the other. */
typedef struct vn_weight_numbers {
	const unsigned char *data[3];
	int64_t              rows[3], all, cols; /* all: rows of all parts */
	int                  n;
	vn_dtype             dtype; /* of single numbers */
	float               *own;   /* freed by vn_weight_numbers_free: the dequantised numbers */
} vn_weight_numbers;
void vn_weight_numbers_of(const vn_tensor *const *t, int n, vn_weight_numbers *m);
void vn_weight_numbers_free(vn_weight_numbers *m);

/* The order and the change that leave the numbers as they are. */
extern const vn_weight_order  vn_weight_in_place;
extern const vn_weight_change vn_weight_unchanged;

/* Returns the digest of rows x cols numbers (rows 0: all) in order o, changed by c and stored as
 * `to`. want: the expected numbers, or NULL; at the first row that differs from them the function
 * stops and returns an empty digest. */
vn_digest vn_weight_numbers_digest(const vn_weight_numbers *m, const vn_weight_order *o, const vn_weight_change *c,
                                   vn_dtype to, int64_t rows, const vn_tensor *want);

/* How two tensors of one size are related. */
typedef struct vn_weight_fit {
	double correlation, factor; /* candidate = factor * reference, by least squares */
	/* nmse of the difference, and of what remains with the factor, relative to the reference */
	double nmse, residual;
	double differing; /* fraction of the numbers */
	/* difference of two finite numbers; INFINITY if only one is finite */
	double largest;
} vn_weight_fit;
vn_weight_fit vn_weight_fit_of(const vn_tensor *a, const vn_tensor *b);

/* Of two tensors of one size, at least one of blocks: how many blocks differ by more than
 * quantising explains. All do if the rest has a common factor. */
typedef struct vn_weight_block_fit {
	int64_t blocks, wrong;
} vn_weight_block_fit;
vn_weight_block_fit vn_weight_block_fit_of(const vn_tensor *a, const vn_tensor *b);
/* Returns the largest step that two formats take, relative to the largest magnitude of a block;
 * formats of single numbers take none. */
double              vn_weight_block_step(vn_dtype a, vn_dtype b);

/* One weight that is being examined, with its surroundings. */
typedef struct vn_weight_trial {
	const vn_weight_side *side[2];
	const vn_weight_row  *row[2];
	const vn_tensor      *numbers[2]; /* NULL: not known */
	vn_weight_name        name;
	vn_weight_heads       heads;
} vn_weight_trial;

/* Does side k of a trial hold these numbers in this order, after this change? rows 0: all. */
bool vn_weight_has_order(const vn_weight_trial *t, int k, const vn_weight_numbers *m, const vn_weight_order *o,
                         const vn_weight_change *c, int64_t rows);

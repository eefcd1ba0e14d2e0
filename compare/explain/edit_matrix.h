/* edit_matrix.h: the matrix of a product, and its input, as a mistake of loading or of the number format changes them.
 *
 * Rows of the matrix are outputs: (M,N), whichever way the file has them. A product whose weights lie in blocks (Q8_0) has no edits.
 */
#ifndef VN_COMPARE_EDIT_MATRIX_H
#define VN_COMPARE_EDIT_MATRIX_H

#include "compare/explain/hypothesis.h"

/* What a number is after it was kept in a format: of int8 the nearest whole number. */
double vn_in_format(double x, vn_weight_format format);

typedef struct vn_edited {
	const vn_tensor *w[VN_FUSED_MOST]; /* the matrices that were fused, the product's own too; of an edit that is not fused its own alone */
	int64_t  rows[VN_FUSED_MOST];      /* of each */
	int      n, own;
	bool     transposed;               /* the file has (N,M) */
	int64_t  M, N;
	double   largest;                  /* the largest |weight|; 0: not yet known */
	vn_dtype storage;                  /* what the engine keeps weights in */
} vn_edited;

/* The matrix of node `node`. False: it has no edits. fused: with those of the other products of its input in its layer; false: there
 * are none. */
bool   vn_edited_open(vn_edited *e, const vn_plan *p, const vn_tensor *weights, int node, bool fused, vn_dtype storage);
/* Row m as the edit leaves it: N numbers. */
void   vn_edited_row(vn_edited *e, const vn_matrix_edit *edit, int64_t m, double *row);
/* A row of the input, in place: N numbers. */
void   vn_edited_input(const vn_matrix_edit *edit, double *x, int64_t N);

#endif

/* apply_matrix.h: changes the matrix of a linear product, or its input, as a mistake in loading or
 * in number formats would.
 *
 * Rows of the matrix are outputs, (M,N), however the file stores it. Matrices quantised in blocks
 * (Q8_0) cannot be edited.
 */
#pragma once

#include "compare/trial/case.h"

#define VN_NUDGE 2.4e-7 /* two roundings of float32 */

typedef struct vn_matrix_made {
	/* the matrices of a fused product, w[own] being the product's own; without fusion only that
	 * one */
	const vn_tensor *w[VN_FUSED_MOST];
	int64_t          rows[VN_FUSED_MOST]; /* rows of each */
	int              n, own;
	bool             transposed; /* the file has (N,M) */
	int64_t          M, N;
	double           largest; /* the largest |weight|; 0: not yet known */
	vn_dtype         storage; /* the format in which the engine keeps weights */
	/* 0, or VN_NUDGE or -VN_NUDGE: scaled numbers are multiplied by 1 + nudge before they are
	 * rounded. A number that then rounds differently is so near a tie that the last bits of an
	 * engine's arithmetic decide. */
	double           nudge;
} vn_matrix_made;

/* Opens the matrix of a node. fused: together with the other products of the same input in its
 * layer. Returns false if it cannot be edited, or if there is nothing to fuse. */
bool    vn_matrix_made_open(vn_matrix_made *e, const vn_plan *p, const vn_tensor *weights, int node, bool fused,
                            vn_dtype storage);
/* Computes row m (N numbers) of the edited matrix. */
void    vn_matrix_made_row(vn_matrix_made *e, const vn_applied_matrix *edit, int64_t m, double *row);
/* VN_MATRIX_PAIRS: the row that becomes row i of M. */
int64_t vn_matrix_pair_row(const vn_applied_matrix *edit, int64_t i, int64_t M);
/* Fills *made with the product of the edited matrix, or the edited input; leaves it empty if the
 * trial does not apply to the checkpoint. */
void    vn_apply_matrix(const vn_case *t, const vn_trial *h, vn_made *made);
/* Edits one row of the input (N numbers) in place. nudge: as in vn_matrix_made. */
void    vn_matrix_made_input(const vn_applied_matrix *edit, double nudge, double *x, int64_t N);

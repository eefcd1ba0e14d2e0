/* least_squares.h: solves more linear equations than there are unknowns, for thousands of unknowns.
 *
 * By the normal equations, in double, with products by OpenBLAS: of N unknowns, N^2 rows +
 * N^3 / 3 multiplications, spread over threads. Memory: N^2 / 2 numbers and some rows. The result
 * does not depend on the number of threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct vn_equations {
	int64_t N, rows;
	/* writes the N coefficients of equation r and then its right side; several threads call it at a
	 * time */
	void (*read)(const void *context, int64_t r, double *row);
	const void *context;
	int         threads;
} vn_equations;

/* Fills x (N). Returns false if the equations do not determine it. Requires vn_blas_prepare. */
bool vn_least_squares(const vn_equations *e, double *x);

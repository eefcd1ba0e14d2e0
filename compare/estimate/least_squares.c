/* least_squares.c: see least_squares.h.
 *
 * A (n,n) = W^T W, of W (rows,n): the coefficients, then the right side as column N, then zeros up
 * to whole blocks. The lower triangle of A is held in blocks and turned into L, with A = L L^T, one
 * column of blocks after the other. Row N of L is then L^-1 W^T y. */
#include "compare/estimate/least_squares.h"

#include "libref/base/alloc.h"
#include "libref/ops/blas.h"

#include <math.h>

/* SIDE: of a block. PIECE: rows of W that are read at a time. */
enum { SIDE = 128, BLOCK = SIDE * SIDE, PIECE = 1024 };

typedef struct triangle {
	const vn_equations *e;
	int64_t             side; /* blocks */
	double             *a;    /* (side (side + 1) / 2, SIDE, SIDE) */
	double             *w;    /* (side SIDE, rows of the piece): W^T */
	double             *term; /* (side, SIDE, SIDE) */
} triangle;

static double *block_at(const triangle *t, int64_t i, int64_t j)
{
	return t->a + (i * (i + 1) / 2 + j) * BLOCK;
}

/* to += sign a b^T, of blocks with n columns. term: (BLOCK) */
static void add_product(double *to, double sign, const double *a, const double *b, int n, double *term)
{
	vn_gemm_f64((vn_gemm_size) { VN_BLAS_TRANSPOSED, SIDE, SIDE, n }, sign, a, b, term, SIDE);
	for (int i = 0; i < BLOCK; i++)
		to[i] += term[i];
}

static void add_piece(triangle *t, int64_t from, int64_t n)
{
	const int64_t N = t->e->N;

#pragma omp parallel num_threads(t->e->threads)
	{
		VN_FREED double *row = vn_alloc((size_t)N + 1, sizeof *row);
#pragma omp for
		for (int64_t r = 0; r < n; r++) {
			t->e->read(t->e->context, from + r, row);
			for (int64_t i = 0; i <= N; i++)
				t->w[i * n + r] = row[i];
		}
	}
	for (int64_t i = (N + 1) * n; i < t->side * SIDE * n; i++)
		t->w[i] = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(t->e->threads)
	for (int64_t i = t->side - 1; i >= 0; i--)
		for (int64_t j = 0; j <= i; j++)
			add_product(block_at(t, i, j), 1, t->w + i * SIDE * n, t->w + j * SIDE * n, (int)n, t->term + i * BLOCK);
}

/* Turns a diagonal block into L, with zeros above. known: its columns of unknowns. Of the others no
 * column is read. */
static bool factor(double *a, int64_t known)
{
	for (int c = 0; c < SIDE; c++) {
		double *own = a + c * SIDE;
		for (int k = 0; k < c; k++) {
			const double *row = a + k * SIDE;
			for (int j = 0; j < k; j++)
				own[k] -= own[j] * row[j];
			own[k] /= row[k];
			own[c] -= own[k] * own[k];
		}
		if (c < known && !(own[c] > 0))
			return false;
		own[c] = c < known ? sqrt(own[c]) : 1;
		for (int k = c + 1; k < SIDE; k++)
			own[k] = 0;
	}
	return true;
}

/* a = a L^-T. turned: L^T */
static void divide(double *a, const double *turned)
{
	for (int r = 0; r < SIDE; r++)
		for (int c = 0; c < SIDE; c++) {
			double *row = a + r * SIDE;
			row[c] /= turned[c * SIDE + c];
			for (int k = c + 1; k < SIDE; k++)
				row[k] -= row[c] * turned[c * SIDE + k];
		}
}

static bool factor_all(triangle *t)
{
	double *turned = t->w;

	for (int64_t k = 0; k < t->side; k++) {
		const double *own = block_at(t, k, k);
#pragma omp parallel for schedule(dynamic, 1) num_threads(t->e->threads)
		for (int64_t i = k; i < t->side; i++)
			for (int64_t j = 0; j < k; j++)
				add_product(block_at(t, i, k), -1, block_at(t, i, j), block_at(t, k, j), SIDE, t->term + i * BLOCK);
		if (!factor(block_at(t, k, k), t->e->N - k * SIDE))
			return false;
		for (int i = 0; i < BLOCK; i++)
			turned[i % SIDE * SIDE + i / SIDE] = own[i];
#pragma omp parallel for num_threads(t->e->threads)
		for (int64_t i = k + 1; i < t->side; i++)
			divide(block_at(t, i, k), turned);
	}
	return true;
}

static double number_at(const triangle *t, int64_t r, int64_t c)
{
	return block_at(t, r / SIDE, c / SIDE)[r % SIDE * SIDE + c % SIDE];
}

bool vn_least_squares(const vn_equations *e, double *x)
{
	const int64_t    N = e->N, side = N / SIDE + 1, piece = e->rows < PIECE ? e->rows : PIECE;
	VN_FREED double *a = vn_alloc_zero((size_t)(side * (side + 1) / 2) * BLOCK, sizeof *a);
	VN_FREED double *w = vn_alloc((size_t)(side * SIDE * (piece > SIDE ? piece : SIDE)), sizeof *w);
	VN_FREED double *term = vn_alloc((size_t)side * BLOCK, sizeof *term);
	triangle         t = { e, side, a, w, term };

	for (int64_t r = 0; r < e->rows; r += piece)
		add_piece(&t, r, e->rows - r < piece ? e->rows - r : piece);
	if (!factor_all(&t))
		return false;
	for (int64_t c = 0; c < N; c++)
		x[c] = number_at(&t, N, c);
	for (int64_t r = N - 1; r >= 0; r--) {
		x[r] /= number_at(&t, r, r);
		for (int64_t c = 0; c < r; c++)
			x[c] -= x[r] * number_at(&t, r, c);
	}
	return true;
}

/* route.c: the weights of the experts that were chosen for each token. */
#include "libref/ops/ops.h"

#include <math.h>

/* One row of logits, x (E): the softmax of x[i] is exp(x[i] - top) / sum. */
typedef struct routed_row {
	const real      *x, *bias;
	int64_t          E;
	double           top, sum;
	vn_route_form    form;
	const vn_consts *c;
} routed_row;

static routed_row read_row(const real *x, const real *bias, const vn_consts *c, vn_route_form form)
{
	const int64_t E = c->route.columns;
	routed_row    r = { x, bias, E, -(double)INFINITY, 0, form, c };

	for (int64_t e = 0; e < E; e++)
		r.top = (double)x[e] > r.top ? (double)x[e] : r.top;
	for (int64_t e = 0; e < E; e++)
		r.sum += exp((double)x[e] - r.top);
	return r;
}

/* What an expert counts for, before it is divided; 0 if there is no such expert. */
static double share_of(const routed_row *r, real id)
{
	if (!(id >= 0 && id < (real)r->E))
		return 0;
	const double u = (double)r->x[(int64_t)id], e = exp(u - r->top);
	switch (r->form) {
	case VN_ROUTE_TWICE: return exp(e / r->sum);
	case VN_ROUTE_SIGMOID: return 1 / (1 + exp(-u));
	case VN_ROUTE_BIASED: return 1 / (1 + exp(-u)) + (double)r->bias[(int64_t)id];
	case VN_ROUTE_CHOSEN: return e;
	default: return r->c->route.sigmoid ? 1 / (1 + exp(-u)) : e;
	}
}

static void route_row(real *y, const routed_row *r, const real *ids, int64_t k)
{
	double        sum = 0;
	const int64_t used = r->form == VN_ROUTE_FEWER ? k - 1 : k;
	const bool    sigmoid = r->form == VN_ROUTE_SIGMOID || (r->c->route.sigmoid && r->form != VN_ROUTE_CHOSEN),
			   normalised = r->c->route.normalised || r->form == VN_ROUTE_CHOSEN || r->form == VN_ROUTE_TWICE;
	const double scale = r->c->route.scale > 0 ? r->c->route.scale : 1;

	for (int64_t s = 0; s < used; s++)
		sum += share_of(r, ids[s]);
	const double divisor = normalised ? sum : sigmoid ? 1 : r->sum;
	for (int64_t s = 0; s < k; s++)
		y[s] = s < used ? (real)(share_of(r, ids[s]) / divisor * scale) : 0;
}

void REAL(vn_route)(real *y, const real *const in[3], int64_t T, int64_t k, const vn_consts *c, const vn_experiment *e,
                    int threads)
{
	const int64_t E = c->route.columns;

#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t t = 0; t < T; t++) {
		const routed_row r = read_row(in[VN_ROUTE_LOGITS] + t * E, in[2], c,
		                              e ? (vn_route_form)e->route.form : VN_ROUTE_USUAL);
		route_row(y + t * k, &r, in[VN_ROUTE_IDS] + t * k, k);
	}
}

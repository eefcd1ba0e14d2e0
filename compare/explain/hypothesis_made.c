/* hypothesis_made.c: see hypothesis_made.h. */
#include "compare/explain/hypothesis_made.h"

#include <stdlib.h>
#include <string.h>

vn_status vn_made_copy_table(vn_made *made, const vn_plan *p, vn_error *err)
{
	const size_t bytes = (size_t)p->n_weights * sizeof *made->table;

	if (!(made->table = malloc(bytes)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d weights", p->n_weights);
	memcpy(made->table, made->weights, bytes);
	made->weights = made->table;
	made->plan = p;
	return VN_OK;
}

vn_status vn_made_room(const vn_explain_trial *t, vn_made *made, vn_error *err)
{
	const size_t n = (size_t)vn_shape_count(&t->site->cand.shape);

	made->own = (vn_tensor) { VN_F64, t->site->cand.shape, malloc(n * sizeof(double) + 1) };
	made->fine = (vn_tensor) { VN_F64, t->site->cand.shape, malloc(n * sizeof(double) + 1) };
	return made->own.data && made->fine.data ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %zu numbers", n);
}

void vn_made_round(const vn_explain_trial *t, vn_made *made)
{
	const size_t   n = (size_t)vn_shape_count(&t->site->cand.shape);
	const vn_dtype as = t->c->opened.policy.storage;
	const double  *fine = made->fine.data;
	double        *own = (double *)made->own.data;

	for (size_t i = 0; i < n; i++) {
		float f = (float)fine[i];
		vn_round_f32(&f, as, as != VN_F64);
		own[i] = as == VN_F64 ? fine[i] : (double)f;
	}
}

void vn_made_finish(vn_made *made)
{
	if (made->fine.data != made->own.data)
		vn_tensor_free(&made->fine);
	vn_tensor_free(&made->own);
	free(made->rows);
	free(made->table);
	vn_plan_destroy(made->copy);
	vn_faulty_destroy(made->faulty);
	*made = (vn_made) { 0 };
}

/* reference_rows.c: see reference_rows.h. Values are computed backward from a checkpoint to
 * the recorded ones. */
#include "compare/replay/reference_rows.h"

#include "compare/floor/precision.h"

#include "libref/exec/eval.h"
#include "libref/ops/blas.h"

#include "libref/base/alloc.h"

#include <omp.h>
#include <stdlib.h>

/* VALUES: the most values computed for one checkpoint. A value that is not recorded is computed
 * again for each operation that reads it, which doubles with each residual sum. */
enum { SPREAD = 12, VARIANT_ROWS = SPREAD + 1, VALUES = 64 };

/* A hundredth of the error of another order of summation in float32 (floor_check.c). Correct
 * operations leave less than 1e-12. */
#define ALLOWED       1e-10
#define ALLOWED_TOKEN 1e-8

typedef struct row_check {
	const vn_floor_parts *f;
	const vn_plan        *plan;
	vn_policy             policy;
	const vn_eval        *eval;
	int                   threads;
	const int32_t        *ids;
	int64_t               tokens;
	const vn_checkpoint **point;             /* (values): a checkpoint of a root value; NULL */
	int64_t               row[VARIANT_ROWS]; /* the tokens in question */
	int                   n;
	int                   target; /* the recorded value that is computed nevertheless */
	int                  *left;   /* values that may still be computed for this checkpoint */
} row_check;

static vn_status fail_unsupported(const row_check *l, int value, vn_error *err)
{
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s cannot be checked by rows", l->plan->value[value].name);
}

/* ---- recorded numbers ----------------------------------------------------------------------- */

/* Was the value recorded for every token, and may it be read? */
static bool is_recorded(const row_check *l, int root)
{
	const vn_value *v = &l->plan->value[root];
	const vn_shape  all = vn_value_shape(v, l->tokens, l->tokens);

	return l->point[root] && v->state < 0 && v->rank > 0 && v->size[0] == VN_T &&
	       vn_shape_equal(&vn_recording_entry(l->f->o->ref, l->point[root]->ref)->shape, &all);
}

/* Reads tokens [from, from + n) of a recorded value into to (n, row). */
static vn_status read_rows(const row_check *l, int root, int64_t from, int64_t n, float *to, vn_error *err)
{
	const int64_t row = vn_value_row(&l->plan->value[root]);
	vn_tensor     t;
	vn_status     st = vn_entry_tensor(l->f->o->ref, l->point[root]->ref, &t, err);

	if (!st)
		vn_to_f32(to, (const char *)t.data + vn_dtype_bytes(t.dtype, (size_t)(from * row)), t.dtype, (size_t)(n * row));
	return st;
}

static void release_entry(const row_check *l, int root)
{
	vn_recording_release(l->f->o->ref, l->point[root]->ref);
}

/* ---- computed numbers ------------------------------------------------------------------------ */

static vn_status rows_of(const row_check *l, int value, float **rows, vn_error *err);

/* The keys and values of all tokens. */
static vn_status read_kept(const row_check *l, const vn_node *n, vn_args *a, vn_error *err)
{
	static const int from[2] = { [VN_ATTN_KEYS] = VN_ATTN_K, [VN_ATTN_VALUES] = VN_ATTN_V };
	vn_status        st = VN_OK;

	for (int i = 0; !st && i < 2; i++) {
		const int root = vn_plan_root(l->plan, n->in[from[i]]);
		if (!is_recorded(l, root))
			return fail_unsupported(l, root, err);
		a->state[i] = vn_alloc((size_t)(l->tokens * vn_value_row(&l->plan->value[root])), sizeof(float));
		st = read_rows(l, root, 0, l->tokens, a->state[i], err);
		release_entry(l, root);
	}
	return st;
}

/* One call for each token, at its position. */
static vn_status one_by_one(const row_check *l, const vn_node *n, vn_args *a, float *const in[VN_MAX_IN], float *out,
                            vn_error *err)
{
	const vn_value *v = &l->plan->value[n->out[0]];
	const int64_t   row = vn_value_row(v);
	vn_status       st = VN_OK;

	a->tokens = 1;
	for (int i = 0; !st && i < l->n; i++) {
		a->past = l->row[i];
		a->ids = l->ids + l->row[i];
		for (int k = 0; k < n->n_in; k++)
			a->in[k] = in[k] ? in[k] + i * vn_value_row(&l->plan->value[vn_plan_root(l->plan, n->in[k])]) : NULL;
		st = l->eval->node(n, a, row, v->size[v->rank - 1], out + i * row, err);
	}
	return st;
}

static vn_status compute_value(const row_check *l, int root, float *out, vn_error *err)
{
	const vn_value *v = &l->plan->value[root];
	const vn_node  *n = &l->plan->node[v->node];
	const bool      attends = n->op == VN_OP_ATTENTION && vn_node_keep_rule(l->plan, n).state < 0 && n->n_state == 2;
	float          *in[VN_MAX_IN] = { NULL };
	vn_args         a = vn_eval_args(l->plan, n, vn_model_weights(l->f->model), l->policy, l->threads);
	vn_status       st = VN_OK;

	if (--*l->left < 0 || n->out[0] != root || (n->n_state && !attends) || (vn_op_get(n->op)->mixes && !attends))
		return fail_unsupported(l, root, err);
	vn_model_need_experts(l->f->model, n);
	for (int i = 0; !st && i < (attends ? 1 : n->n_in); i++)
		st = rows_of(l, n->in[i], &in[i], err);
	if (!st && attends)
		st = read_kept(l, n, &a, err);
	if (!st && vn_op_is_by_token(n->op)) {
		a.tokens = l->n;
		a.of = l->tokens;
		for (int i = 0; i < n->n_in; i++)
			a.in[i] = in[i];
		st = l->eval->node(n, &a, vn_value_row(v), v->size[v->rank - 1], out, err);
	} else if (!st) {
		st = one_by_one(l, n, &a, in, out, err);
	}
	for (int i = 0; i < VN_MAX_IN; i++)
		free(in[i]);
	for (int i = 0; attends && i < 2; i++)
		free(a.state[i]);
	return st;
}

/* The rows of a value: recorded, or computed. The caller frees them. */
static vn_status rows_of(const row_check *l, int value, float **rows, vn_error *err)
{
	const int     root = vn_plan_root(l->plan, value);
	const int64_t row = vn_value_row(&l->plan->value[root]);
	vn_status     st = VN_OK;

	*rows = vn_alloc((size_t)(l->n * row), sizeof **rows);
	if (root == l->target || !is_recorded(l, root))
		return compute_value(l, root, *rows, err);
	for (int i = 0; !st && i < l->n; i++)
		st = read_rows(l, root, l->row[i], 1, *rows + i * row, err);
	release_entry(l, root);
	return st;
}

/* ---- a checkpoint ---------------------------------------------------------------------------- */

static void choose_rows(row_check *l, int64_t worst)
{
	bool there = worst < 0 || worst >= l->tokens;

	for (l->n = 0; l->n < SPREAD; l->n++) {
		l->row[l->n] = (l->tokens - 1) * l->n / (SPREAD - 1);
		there = there || l->row[l->n] == worst;
	}
	if (!there)
		l->row[l->n++] = worst;
}

/* Measures the rows of a checkpoint of a recorded value. */
static vn_status check_checkpoint(row_check *l, int root, double own[2], vn_error *err)
{
	const int64_t   row = vn_value_row(&l->plan->value[root]);
	const vn_entry *e = vn_recording_entry(l->f->o->ref, l->point[root]->ref);
	float          *is = NULL, *want = vn_alloc((size_t)(l->n * row), sizeof *want);
	vn_measured     m;

	int left = VALUES;
	l->left = &left;
	l->target = root;
	vn_status st = rows_of(l, root, &is, err);
	for (int i = 0; !st && i < l->n; i++)
		st = read_rows(l, root, l->row[i], 1, want + i * row, err);
	if (!st) {
		vn_tensor a = { VN_F32, e->shape, want }, b = { VN_F32, e->shape, is };
		a.shape.dim[0] = b.shape.dim[0] = l->n;
		st = vn_measure_brief(&a, &b, vn_entry_axes(e), l->threads, &m, err);
	}
	release_entry(l, root);
	VN_FREE(is, want);
	if (!st) {
		own[0] = m.finite == m.n ? m.value[VN_M_NMSE] : 1;
		own[1] = m.finite == m.n ? m.value[VN_M_WORST_TOKEN_NMSE] : 1;
	}
	return st;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int root_of(const vn_checkpoint *p, const vn_names *names)
{
	return p->m.n ? vn_names_root(names, p->name) : -1;
}

/* Two names of one value may have been recorded with different numbers: each is checked. */
static vn_status check_all(row_check *l, const vn_names *names, const int64_t *worst, double (*own)[2], bool *agrees,
                           vn_error *err)
{
	vn_status st = VN_OK;

	*agrees = true;
	for (int i = 0; !st && *agrees && i < l->f->all->n; i++) {
		const int root = root_of(&l->f->all->of[i], names);
		if (root < 0)
			continue;
		l->point[root] = &l->f->all->of[i];
		*agrees = is_recorded(l, root);
		choose_rows(l, worst[i]);
		if (*agrees && !(st = check_checkpoint(l, root, own[i], err)))
			*agrees = own[i][0] <= ALLOWED && own[i][1] <= ALLOWED_TOKEN;
		vn_recording_was_read(l->f->o->ref, l->f->all->of[i].ref);
	}
	return st;
}

vn_status vn_reference_rows(const vn_floor_parts *f, const vn_names *names, const int64_t *worst, double (*own)[2],
                            bool *agrees, vn_error *err)
{
	const vn_step *step;
	const int      asked = f->o->request.options->threads;
	vn_policy      of_ref;
	vn_policy_of_recording(f->o->ref, &of_ref);
	row_check l = { .f = f,
		            .plan = names->plan,
		            .policy = of_ref,
		            .eval = vn_eval_for(of_ref),
		            .threads = asked > 0 ? asked : omp_get_num_procs() };
	vn_error  none = { "" };
	vn_status st;

	*agrees = false;
	vn_recording_tokens(f->o->ref, &l.ids, NULL);
	if (vn_recording_steps(f->o->ref, &step) != 1 || step->tokens < VN_REFERENCE_LONG || step->position ||
	    step->rows != step->tokens || of_ref.storage != VN_F32 || of_ref.products)
		return VN_OK;
	l.tokens = step->tokens;
	l.point = vn_alloc_zero((size_t)l.plan->n_values, sizeof *l.point);
	for (int i = 0; i < f->all->n; i++) {
		const int root = root_of(&f->all->of[i], names);
		if (root >= 0)
			l.point[root] = &f->all->of[i];
	}
	if (!(st = vn_blas_prepare(l.threads, err))) {
		st = check_all(&l, names, worst, own, agrees, &none);
		*agrees = *agrees && !st;
		if (st == VN_ERR_UNSUPPORTED)
			st = VN_OK;
		else if (st)
			*err = none;
	}
	free(l.point);
	return st;
}

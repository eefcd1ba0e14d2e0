/* floor.c: how far the candidate's number format alone moves each checkpoint:
 * the reference engine in the candidate's precision, measured against the
 * reference. From a recording of such a run, or run here and now; then every
 * tensor is measured as it is made and forgotten again. */
#include "compare/floor_check.h"
#include "compare/names.h"

#include "libref/exec/ref.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- from a recording ----------------------------------------------------- */

static const char *precision_of(const vn_recording *r)
{
	const char *p = vn_facts_get(vn_recording_run(r), "precision");
	return p ? p : "unknown";
}

static const char *wanted(const vn_comparison *c)
{
	return c->options->floor_policy ? vn_policy_name(*c->options->floor_policy) : precision_of(c->cand);
}

/* Another part of the run has another floor, even where the shapes are the same. */
static bool same_rows(const vn_step *x, const vn_step *y)
{
	return !x || !y || (x->position == y->position && x->tokens == y->tokens && x->first_row == y->first_row
	                    && x->rows == y->rows);
}

static int floor_entry(vn_comparison *c, const vn_checkpoint *p)
{
	const int e = p->m.n ? vn_recording_find(c->floor, p->step, p->name) : -1;
	if (e < 0 || !same_rows(vn_recording_step(c->ref, p->step), vn_recording_step(c->floor, p->step))
	    || !vn_shape_equal(&vn_recording_entry(c->floor, e)->shape, &vn_recording_entry(c->ref, p->ref)->shape))
		return -1;
	return e;
}

static void floor_unread(vn_checkpoint *p, const char *why)
{
	(void)p; /* it has no floor then, and is judged so */
	(void)why;
}

static vn_status from_recording(vn_comparison *c, vn_error *err)
{
	vn_status st = vn_contract(c->ref, c->floor, "floor", c->options, NULL, &c->notes, &c->refusals, err);
	if (st)
		return st;
	const char *engine = vn_facts_get(vn_recording_run(c->floor), "engine"), *own = vn_facts_get(vn_recording_run(c->cand), "engine");
	if (engine && own && strcmp(engine, own) == 0 && strcmp(engine, "ref") != 0)
		vn_lines_add(&c->warnings, "the floor comes from the candidate's own engine (%.40s): it excuses that engine's faults", engine);
	if (strcmp(precision_of(c->floor), wanted(c)) != 0 && !(c->options->allow & VN_ALLOW_PRECISION)) {
		vn_lines_add(&c->refusals, "the floor was run in %s and the candidate in %s (--allow precision to use it all the same)",
		             precision_of(c->floor), wanted(c));
		return vn_fail(err, VN_ERR_MISMATCH, "%s is no floor for %s", vn_recording_path(c->floor),
		               vn_recording_path(c->cand));
	}
	if ((st = vn_floor_contract(c, err)))
		return st;
	/* The reference's rows are settled by now; where the floor has fewer, it has none of those steps. */
	if ((st = vn_align_to(c, c->floor, "floor", err)))
		return st;
	snprintf(c->floor_from, sizeof c->floor_from, "%s (%.32s)", vn_recording_path(c->floor), precision_of(c->floor));
	const vn_batch batch = { c->floor, floor_entry, vn_floor_set, floor_unread };
	st = vn_measure_points(c, &batch, err);
	return st ? st : vn_floor_check_file(c, precision_of(c->floor), err);
}

/* What a recording says, or else (false) the format that most of its tensors are in. */
static bool policy_of(const vn_recording *r, vn_policy *policy)
{
	int in[VN_N_DTYPES] = { 0 }, most = VN_F32;

	if (vn_policy_from_name(precision_of(r), policy))
		return true;
	for (int i = 0; i < vn_recording_count(r); i++)
		in[vn_recording_entry(r, i)->dtype]++;
	for (int d = 0; d < VN_N_DTYPES; d++)
		if (in[d] > in[most] && vn_policy_from_name(vn_dtype_name((vn_dtype)d), policy))
			most = d;
	vn_policy_from_name(vn_dtype_name((vn_dtype)most), policy);
	return false;
}

void vn_assume_policy(vn_comparison *c)
{
	if (c->options->floor_policy)
		c->policy = *c->options->floor_policy;
	if (c->options->floor_policy || policy_of(c->cand, &c->policy))
		return;
	vn_lines_add(&c->notes, "%s: precision '%.40s' is none of %s; it is taken for %s, the format of its tensors (--floor-precision says otherwise)",
	             vn_recording_path(c->cand), precision_of(c->cand), vn_policy_names, vn_policy_name(c->policy));
}

/* ---- by running ------------------------------------------------------------ */

typedef struct sink {
	vn_comparison *c;
	double   (*own)[2]; /* (checkpoints): nmse and worst token's nmse go there; NULL: this is the floor */
	int       *point;  /* (values): a checkpoint of a root value in this step; -1 */
	int       *next;   /* (checkpoints): another of the same value, under another name; -1 */
	int        now;    /* the first checkpoint of the value being written; -1: not wanted */
	vn_dtype   dtype;
	vn_shape   shape;
	size_t     have, room; /* bytes */
	unsigned char *data;
} sink;

static vn_status sink_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	sink *s = ctx;
	const size_t bytes = (size_t)vn_shape_count(shape) * vn_dtype_size(dtype);
	s->now = s->point[value];
	s->dtype = dtype;
	s->shape = *shape;
	s->have = 0;
	if (s->now < 0 || bytes <= s->room)
		return VN_OK;
	free(s->data);
	s->room = 0;
	if (!(s->data = malloc(bytes)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the floor of %s", s->c->point[s->now].name);
	s->room = bytes;
	return VN_OK;
}

static vn_status sink_write(void *ctx, const void *data, size_t elements, vn_error *err)
{
	sink *s = ctx;
	const size_t bytes = elements * vn_dtype_size(s->dtype);
	(void)err;
	if (s->now >= 0 && s->have + bytes <= s->room) {
		memcpy(s->data + s->have, data, bytes);
		s->have += bytes;
	}
	return VN_OK;
}

/* Of a checkpoint that is compared by its last row alone (align.c). */
static void last_row(vn_tensor *f, const vn_entry *e)
{
	const int64_t rows = f->shape.rank ? f->shape.dim[0] : 0;
	if (vn_axes_find(vn_entry_axes(e), "token") != 0 || e->shape.dim[0] != 1 || rows < 2)
		return;
	f->shape.dim[0] = 1;
	f->data = (const unsigned char *)f->data + (size_t)((rows - 1) * vn_shape_count(&f->shape)) * vn_dtype_size(f->dtype);
}

static vn_status floor_of(sink *s, vn_checkpoint *p, vn_error *err)
{
	vn_tensor f = { s->dtype, s->shape, s->data };
	const vn_entry *e = vn_recording_entry(s->c->ref, p->ref);
	vn_tensor   r;
	vn_measured m;
	last_row(&f, e);
	if (!vn_shape_equal(&f.shape, &e->shape) && s->own)
		return VN_OK; /* said of the floor */
	if (!vn_shape_equal(&f.shape, &e->shape)) {
		vn_lines_add(&s->c->notes, "floor: %s has another shape in the model's own run", p->name);
		return VN_OK;
	}
	vn_status st = vn_entry_tensor(s->c->ref, p->ref, &r, err);
	if (!st)
		st = vn_measure(&r, &f, vn_entry_axes(e), p->scores, s->c->options->threads, &m, err);
	vn_recording_release(s->c->ref, p->ref);
	if (!st && s->own)
		memcpy(s->own[p - s->c->point], (double[2]) { m.value[VN_M_NMSE], m.value[VN_M_WORST_TOKEN_NMSE] }, sizeof *s->own);
	else if (!st)
		vn_floor_set(p, &m);
	return st;
}

static vn_status sink_end(void *ctx, vn_error *err)
{
	sink *s = ctx;
	vn_status st = VN_OK;
	for (int i = s->now; !st && i >= 0; i = s->next[i])
		st = floor_of(s, &s->c->point[i], err);
	vn_recording_forget(s->c->ref);
	return st;
}

/* The model must be the one the reference was run with. */
static vn_status check_model(vn_comparison *c, const vn_model *m, vn_error *err)
{
	const vn_plan *plan = vn_model_plan(m);
	const vn_weight_row *rows;
	const int n = vn_recording_weights(c->ref, &rows), before = c->refusals.n;

	vn_contract_config(vn_recording_config(c->ref), vn_model_config(m), "model", c->options->allow, &c->notes, &c->refusals);
	if (c->refusals.n > before)
		return vn_fail(err, VN_ERR_MISMATCH, "%s is not the model that %s was run with", vn_model_path(m),
		               vn_recording_path(c->ref));
	if (n <= 0) {
		vn_lines_add(&c->notes, "floor: the reference lists no weights; %s is taken to be its model", vn_model_path(m));
		return VN_OK;
	}
	vn_weight_row *own = calloc((size_t)plan->n_weights, sizeof *own);
	vn_status st = own ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for the table of weights");
	if (!st)
		vn_model_table(m, c->options->threads, own);
	for (int i = 0; !st && i < plan->n_weights; i++)
		for (int k = 0; k < n; k++)
			if (strcmp(rows[k].name, own[i].name) == 0) {
				if (!vn_weights_same(&rows[k], &own[i]))
					st = vn_fail(err, VN_ERR_MISMATCH, "%s: %s is not the weight that %s was run with",
					             vn_model_path(m), own[i].name, vn_recording_path(c->ref));
				break;
			} else if (k == n - 1) {
				vn_lines_add(&c->notes, "floor: the reference does not list weight %s", own[i].name);
			}
	free(own);
	return st;
}

/* The checkpoints of one step as taps; 0 when the step needs none. */
static int choose(vn_comparison *c, const vn_names *names, int step, bool *want, int *point, int *next)
{
	const vn_plan *plan = names->plan;
	int n = 0;
	memset(want, 0, (size_t)plan->n_values * sizeof *want);
	for (int v = 0; v < plan->n_values; v++)
		point[v] = -1;
	for (int i = 0; i < c->n_points; i++) {
		const int root = c->point[i].step == step && c->point[i].m.n ? vn_names_root(names, c->point[i].name) : -1;
		if (root < 0)
			continue;
		want[root] = true;
		next[i] = point[root]; /* one value may have been compared under several names */
		point[root] = i;
		n++;
	}
	return n;
}

static vn_status run_steps(vn_comparison *c, const vn_names *names, vn_ref *ref, sink *s, bool *want, vn_error *err)
{
	const int32_t *ids, *positions;
	const int64_t n_ids = vn_recording_tokens(c->ref, &ids, &positions);
	const vn_step *step;
	const int n = vn_recording_steps(c->ref, &step);
	for (int i = 0; i < n; i++) {
		if (step[i].position != vn_ref_position(ref) || step[i].tokens <= 0 || step[i].tokens > n_ids - step[i].position)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: step %d does not continue the steps before it; no floor can be run",
			               vn_recording_path(c->ref), step[i].number);
		for (int64_t t = step[i].position; t < step[i].position + step[i].tokens; t++)
			if (positions[t] != t)
				return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: token %" PRId64 " stands at position %d; the floor is run with token n "
				               "at n", vn_recording_path(c->ref), t, positions[t]);
		const int taps = choose(c, names, step[i].number, want, s->point, s->next);
		const int64_t first = step[i].position + step[i].first_row;
		const vn_taps t = { .want = want, .rows = VN_ROWS_RANGE, .first = first, .last = first + step[i].rows - 1,
		                    .sink = { s, sink_begin, sink_write, sink_end } };
		const vn_status st = vn_ref_forward(ref, ids + step[i].position, step[i].tokens, taps ? &t : NULL, err);
		if (st)
			return vn_context(err, st, "floor, step %d", step[i].number);
	}
	return VN_OK;
}

static vn_status run_in(vn_comparison *c, const vn_names *names, vn_policy policy, sink *s, bool *want, vn_error *err)
{
	const vn_ref_options o = { .policy = policy, .threads = c->options->threads, .progress = true };
	vn_ref   *ref = NULL;
	vn_status st = vn_ref_create(names->plan, vn_model_weights(c->model), &o, &ref, err);
	if (!st)
		st = run_steps(c, names, ref, s, want, err);
	vn_ref_destroy(ref);
	return st;
}

/* In the candidate's precision, and where the reference's is finer in that, too: is the reference the model's? */
static vn_status run_both(vn_comparison *c, const vn_names *names, sink *s, bool *want, vn_error *err)
{
	vn_policy of_ref;
	vn_status st = run_in(c, names, c->policy, s, want, err);
	if (st)
		return st;
	policy_of(c->ref, &of_ref);
	if (!vn_policy_finer(of_ref, c->policy))
		return vn_floor_check_model(c, of_ref, NULL, err);
	if (!(s->own = calloc((size_t)c->n_points + 1, sizeof *s->own)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the floor");
	if (!(st = run_in(c, names, of_ref, s, want, err)))
		st = vn_floor_check_model(c, of_ref, s->own, err);
	free(s->own);
	return st;
}

static vn_status by_running(vn_comparison *c, vn_error *err)
{
	bool     *want = NULL;
	vn_names  names = { 0 };
	sink      s = { .c = c, .now = -1 };
	vn_status st;

	vn_assume_policy(c);
	if ((st = vn_model_open(c->options->model, &c->model, err)))
		return st;
	const vn_model *model = c->model;
	const vn_plan *plan = vn_model_plan(model);
	if ((st = check_model(c, model, err)) || (st = vn_names_init(&names, plan, err)))
		goto done;
	want = malloc((size_t)plan->n_values * sizeof *want);
	s.point = malloc((size_t)plan->n_values * sizeof *s.point);
	s.next = malloc(((size_t)c->n_points + 1) * sizeof *s.next);
	if (!want || !s.point || !s.next) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the floor");
		goto done;
	}
	snprintf(c->floor_from, sizeof c->floor_from, "the reference engine in %s on %s", vn_policy_name(c->policy),
	         vn_model_path(model));
	st = run_both(c, &names, &s, want, err);
done:
	free(s.data);
	free(s.point);
	free(s.next);
	free(want);
	vn_names_finish(&names);
	return st;
}

/* Where the floor says nothing, looser limits hold: nobody should learn that by chance. */
static void warn_of_gaps(vn_comparison *c)
{
	const char *first = NULL;
	int n = 0;
	for (int i = 0; i < c->n_points; i++)
		if (c->point[i].m.n && !c->point[i].unfounded && !(c->point[i].has_floor && isfinite(c->point[i].floor[VN_M_NMSE]))) {
			first = first ? first : c->point[i].name;
			n++;
		}
	if (n)
		vn_lines_add(&c->warnings, "the floor says nothing of %d checkpoints (%s the first): without_floor limits hold there", n,
		             first);
}

vn_status vn_floor(vn_comparison *c, vn_error *err)
{
	vn_status st = VN_OK;
	if (c->floor)
		st = from_recording(c, err);
	else if (c->options->model)
		st = by_running(c, err);
	if (!st && *c->floor_from)
		warn_of_gaps(c);
	return st;
}

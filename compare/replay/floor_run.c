/* floor_run.c: the floor by running the model: every tensor is measured when it is made, and then
 * discarded.
 *
 * If the reference has more digits than the candidate, the floor is the distance of a run in the
 * candidate's precision from the reference. If it has no more, that run may have exactly the
 * reference's bits, and two engines of one format differ by the roundings of both: a run in each
 * format is measured against a more precise one, and the two errors are joined. In either case a
 * run in the reference's own precision, or some rows of it (reference_rows.h), tells whether the
 * reference is the model's.
 */
#include "compare/floor/floor_channels.h"
#include "compare/floor/precision.h"
#include "compare/judge/judge.h"
#include "compare/match/contract.h"
#include "compare/weights/weights.h"
#include "compare/weights/weights_names.h"
#include "compare/floor/floor_check.h"
#include "compare/replay/reference_rows.h"
#include "compare/replay/replay_state.h"
#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ----------------------------------------------------------------- */

static vn_status open_model(vn_opened *o, const char *path, vn_error *err)
{
	return vn_model_open_as(path, vn_model_with(vn_recording_has_mtp(o->ref)) | VN_MODEL_MAPPED, &o->model, err);
}

static const vn_weight_row *row_of(const vn_weight_row *rows, int n, const char *name)
{
	for (int k = 0; k < n; k++)
		if (strcmp(rows[k].name, name) == 0)
			return &rows[k];
	return NULL;
}

/* The model must be the one that the reference ran. */
static vn_status check_model(const vn_opened *o, vn_remarks *remarks, const vn_model *m, vn_error *err)
{
	const vn_plan       *plan = vn_model_plan(m);
	const vn_weight_row *rows;
	const int            n = vn_recording_weights(o->ref, &rows), before = remarks->refusals.n;

	vn_contract_model(o, remarks, m);
	if (remarks->refusals.n > before)
		return vn_fail(err, VN_ERR_MISMATCH,
		               "%s is not the model that %s was recorded with (see above): give that model with --model",
		               vn_model_path(m), vn_recording_path(o->ref));
	if (n <= 0) {
		vn_lines_add(&remarks->notes,
		             "floor: the reference has no table of weights, so vernier cannot check that %s is its model",
		             vn_model_path(m));
		return VN_OK;
	}
	VN_FREED vn_weight_row *own = vn_alloc_zero((size_t)plan->n_weights, sizeof *own);
	vn_status               st = VN_OK;
	bool                    stats = false; /* digests do not decide alone */
	for (int i = 0; i < plan->n_weights; i++) {
		const vn_weight_row *r = row_of(rows, n, vn_model_weight_name(m, i));
		stats = stats || (r && (r->dtype != vn_model_weights(m)[i].dtype || !*r->digest.hex));
	}
	(stats ? vn_model_table : vn_model_digests)(m, o->request.options->threads, own);
	for (int i = 0; !st && i < plan->n_weights; i++) {
		const vn_weight_row *r = row_of(rows, n, own[i].name);
		if (!r)
			vn_lines_add(&remarks->notes,
			             "floor: the reference's table of weights does not list %s, so this weight was not checked",
			             own[i].name);
		else if (!vn_weights_same(r, &own[i]))
			st = vn_fail(err, VN_ERR_MISMATCH,
			             "%s: weight %s differs from the one that %s was recorded with: give that model with --model",
			             vn_model_path(m), own[i].name, vn_recording_path(o->ref));
	}
	return st;
}

/* Has the candidate weight i in a narrower format of single numbers? Returns its row, or NULL. */
static const vn_weight_row *narrower_row(const vn_model *m, int i, const vn_weight_row *rows, int n)
{
	const vn_dtype       is = vn_model_weights(m)[i].dtype;
	const vn_weight_row *r = vn_weight_twin(rows, n, vn_model_weight_name(m, i));

	return r && vn_dtype_block(r->dtype) == 1 && vn_dtype_block(is) == 1 &&
	               vn_dtype_digits(r->dtype) < vn_dtype_digits(is)
	           ? r
	           : NULL;
}

/* Rounds the weights that the candidate has in a narrower format, if the model will not be run in
 * that format anyway. The unrounded model becomes *whole. */
static vn_status round_weights(vn_opened *o, vn_lines *notes, vn_model **whole, vn_error *err)
{
	vn_model               *m = o->model;
	const int               all = vn_model_plan(m)->n_weights;
	const vn_weight_row    *rows;
	const int               n = vn_recording_weights(o->cand, &rows);
	VN_FREED vn_weight_row *own = NULL;
	vn_status               st = VN_OK;

	if (n <= 0 || vn_dtype_digits(o->policy.storage) < vn_dtype_digits(VN_F32))
		return VN_OK;
	for (int i = 0; !st && i < all; i++) {
		const vn_weight_row *r = narrower_row(m, i, rows, n);
		if (!r)
			continue;
		if (!own) { /* it reads the whole model */
			own = vn_alloc_zero((size_t)all, sizeof *own);
			vn_model_table(m, o->request.options->threads, own);
		}
		if (!vn_weights_same(r, &own[i]))
			continue;
		if (!*whole) {
			*whole = m;
			vn_lines_add(notes,
			             "the candidate's weights are those of %s rounded to %s (first: %s): it is judged with them",
			             vn_model_path(m), vn_dtype_name(r->dtype), own[i].name);
			st = open_model(o, vn_model_path(m), err);
		}
		st = st ? st : vn_model_round(o->model, i, r->dtype, err);
	}
	return st;
}

/* ---- a run, and beside it perhaps one more precise ------------------------------- */

typedef struct floor_pass {
	vn_floor_parts   f;
	const vn_names  *names;
	vn_replay_engine e[2]; /* the run, and the finer one */
	int              n;    /* of them */
	vn_floor_run     run;
	int64_t         *worst; /* (checkpoints): the token in which the run is farthest from the reference; -1 */
	double (*own)[2];       /* (checkpoints): nmse and worst token's nmse of the run; NULL: not wanted */
	bool           *want;   /* (values) */
	vn_checkpoint **point;  /* (values): a checkpoint of a root value in this step; NULL */
	vn_checkpoint **next;   /* (checkpoints): another checkpoint of the same value, under another name; NULL */
} floor_pass;

/* For a checkpoint of which only the last row is compared (align.c). */
static void last_row(vn_tensor *f, const vn_entry *e)
{
	const int64_t rows = f->shape.rank ? f->shape.dim[0] : 0;
	if (vn_axes_find(vn_entry_axes(e), "token") != 0 || e->shape.dim[0] != 1 || rows < 2)
		return;
	f->shape.dim[0] = 1;
	f->data = (const unsigned char *)f->data +
	          (size_t)((rows - 1) * vn_shape_count(&f->shape)) * vn_dtype_size(f->dtype);
}

/* run: its cand and mapped are set: is it, and is x, in a scratch file? x: what to measure it
 * against; NULL: the reference. */
static vn_status measure_against(const floor_pass *s, const vn_checkpoint *p, const vn_tensor *x, vn_job *run,
                                 vn_error *err)
{
	vn_recording *ref = s->f.o->ref;
	vn_status     st = VN_OK;
	run->axes = vn_entry_axes(vn_recording_entry(ref, p->ref));
	run->scores = p->scores;
	if (x) {
		run->ref = *x;
	} else {
		st = vn_entry_tensor(ref, p->ref, &run->ref, err);
		run->mapped = run->mapped && vn_recording_mapped(ref, p->ref);
	}
	st = st ? st : vn_measure_many(run, 1, s->f.o->request.options->threads, err);
	if (!x)
		vn_recording_release(ref, p->ref);
	return st;
}

static vn_tensor rows_of(const vn_node_output *m, const vn_entry *e)
{
	vn_tensor t = m->t;
	last_row(&t, e);
	return t;
}

static vn_status measure_point(floor_pass *s, vn_checkpoint *p, const vn_node_output *run, const vn_node_output *fine,
                               vn_error *err)
{
	const vn_entry *e = vn_recording_entry(s->f.o->ref, p->ref);
	const vn_tensor f = rows_of(run, e);
	vn_job          job = { .cand = f, .mapped = vn_node_output_in_file(run) };
	vn_status       st;

	if (!vn_shape_equal(&f.shape, &e->shape)) {
		char here[VN_SHAPE_TEXT], there[VN_SHAPE_TEXT];
		if (!s->run.joins && (fine || !s->own)) /* once */
			vn_lines_add(&s->f.remarks->notes,
			             "floor: %s: shape %s in the reference, %s in a run of the model: no floor", p->name,
			             vn_shape_text(&e->shape, there), vn_shape_text(&f.shape, here));
		return VN_OK;
	}
	if (s->own || !fine) {
		if ((st = measure_against(s, p, NULL, &job, err)))
			return st;
		if (s->own)
			memcpy(s->own[p - s->f.all->of], (double[2]) { job.m.value[VN_M_NMSE], job.m.value[VN_M_WORST_TOKEN_NMSE] },
			       sizeof *s->own);
		else {
			vn_judge_floor_set(p, &job.m);
			s->worst[p - s->f.all->of] = job.m.worst_nmse_token;
			vn_floor_channels_keep(s->f.all, s->f.pools, p, 0, &f);
			return VN_OK;
		}
	}
	if (!fine)
		return VN_OK;
	const vn_tensor x = rows_of(fine, e);
	job = (vn_job) { .cand = f, .mapped = vn_node_output_in_file(run) && vn_node_output_in_file(fine) };
	if ((st = measure_against(s, p, &x, &job, err)))
		return st;
	if (s->run.joins)
		vn_judge_floor_join(p, &job.m);
	else
		vn_judge_floor_set(p, &job.m);
	if (s->run.twice)
		vn_judge_floor_join(p, &job.m);
	vn_floor_channels_keep(s->f.all, s->f.pools, p, 0, &f);
	vn_floor_channels_keep(s->f.all, s->f.pools, p, 1, &x);
	return VN_OK;
}

/* Measures the node's outputs. All engines make the same ones in the same order. */
static vn_status measure_made(floor_pass *s, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < s->e[0].n_out; i++)
		for (vn_checkpoint *p = s->point[s->e[0].out[i].value]; !st && p; p = s->next[p - s->f.all->of]) {
			st = measure_point(s, p, &s->e[0].out[i], s->n > 1 ? &s->e[1].out[i] : NULL, err);
			vn_recording_was_read(s->f.o->ref, p->ref);
		}
	return st;
}

/* Chooses the checkpoints of one step as taps. Returns 0 if the step needs none. */
static int choose_taps(floor_pass *s, int step)
{
	int n = 0;
	for (int v = 0; v < s->names->plan->n_values; v++) {
		s->point[v] = NULL;
		s->want[v] = false;
	}
	for (int i = 0; i < s->f.all->n; i++) {
		vn_checkpoint *p = &s->f.all->of[i];
		const int      root = p->step == step && p->m.n ? vn_names_root(s->names, p->name) : -1;
		if (root < 0)
			continue;
		s->want[root] = true;
		s->next[i] = s->point[root]; /* one value may be compared under several names */
		s->point[root] = p;
		n++;
	}
	return n;
}

static vn_status one_step(floor_pass *s, const vn_step *step, const int32_t *ids, vn_error *err)
{
	const bool *want = choose_taps(s, step->number) ? s->want : NULL;
	vn_status   st = VN_OK;

	for (int i = 0; !st && i < s->n; i++)
		st = vn_replay_engine_begin(&s->e[i], step, ids, want, err);
	for (int k = 0; !st && k < s->names->plan->n_nodes; k++) {
		for (int i = 0; !st && i < s->n; i++) {
			s->e[i].n_out = 0;
			st = vn_ref_ops.run(s->e[i].ref, k, k + 1, err);
		}
		st = st ? st : measure_made(s, err);
	}
	for (int i = 0; i < s->n; i++)
		vn_ref_ops.end(s->e[i].ref, !st, NULL);
	return st;
}

static vn_status run_steps(floor_pass *s, vn_error *err)
{
	const vn_opened *o = s->f.o;
	const int32_t   *ids, *positions;
	const int64_t    n_ids = vn_recording_tokens(o->ref, &ids, &positions);
	const vn_step   *step;
	const int        n = vn_recording_steps(o->ref, &step);
	for (int i = 0; i < n; i++) {
		if (step[i].position != vn_ref_ops.position(s->e[0].ref) || step[i].tokens <= 0 ||
		    step[i].tokens > n_ids - step[i].position)
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "%s: step %d does not start where the step before it ended: no floor can be measured",
			               vn_recording_path(o->ref), step[i].number);
		for (int64_t t = step[i].position; t < step[i].position + step[i].tokens; t++)
			if (positions[t] != t)
				return vn_fail(err, VN_ERR_UNSUPPORTED,
				               "%s: token %" PRId64 " is at position %d, expected %" PRId64
				               ": a floor can be measured only if positions count from 0",
				               vn_recording_path(o->ref), t, positions[t], t);
		const vn_status st = one_step(s, &step[i], ids, err);
		if (st)
			return vn_context(err, st, "floor, step %d", step[i].number);
	}
	return VN_OK;
}

/* With the weights of a model. fine: an additional run in this precision, with the reference's;
 * NULL: none. */
static vn_status run_in(floor_pass *s, vn_policy policy, const vn_model *model, const vn_policy *fine, vn_error *err)
{
	vn_status st = VN_OK;

	s->n = fine ? 2 : 1;
	s->run.finer = fine != NULL;
	s->e[0].policy = policy;
	if (fine)
		s->e[1].policy = *fine;
	for (int i = 0; !st && i < s->n; i++) {
		const vn_model      *with = i ? s->f.model : model;
		const vn_ref_options o = { .policy = s->e[i].policy,
			                       .threads = s->f.o->request.options->threads,
			                       .progress = i == 0,
			                       .need = vn_model_need,
			                       .need_ctx = with };
		st = vn_ref_create(s->names->plan, vn_model_weights(with), &o, &s->e[i].ref, err);
	}
	st = st ? st : run_steps(s, err);
	for (int i = 0; i < s->n; i++)
		vn_replay_engine_close(&s->e[i]);
	if (!st && (fine || !s->own))
		st = vn_floor_channels_take(s->f.o, s->f.all, s->f.pools, &s->run, err);
	vn_floor_channels_drop(s->f.pools);
	return st;
}

/* ---- which runs -------------------------------------------------------------------- */

static vn_status finer_reference(floor_pass *s, vn_policy of_ref, double (*own)[2], vn_error *err)
{
	bool      agrees = false;
	vn_status st = run_in(s, s->f.o->policy, s->f.o->model, NULL, err);
	s->own = own;
	st = st ? st : vn_reference_rows(&s->f, s->names, s->worst, own, &agrees, err);
	if (!st && !agrees)
		st = run_in(s, of_ref, s->f.model, NULL, err);
	return st ? st : vn_floor_check_model(&s->f, own, false, err);
}

/* The roundings of the candidate and of the reference. One run serves both if they have the same
 * precision. */
static vn_status two_runs(floor_pass *s, vn_policy of_ref, vn_policy fine, double (*own)[2], vn_error *err)
{
	const vn_policy mine = s->f.o->policy;
	vn_status       st;

	s->run.twice = vn_policy_same(of_ref, mine);
	s->own = s->run.twice ? own : NULL;
	st = run_in(s, mine, s->f.model, &fine, err);
	if (!st && !s->run.twice) {
		s->run.joins = true;
		s->own = own;
		st = run_in(s, of_ref, s->f.model, &fine, err);
	}
	return st ? st : vn_floor_check_model(&s->f, own, true, err);
}

/* A candidate in f32 gets a floor only if the user's limits use one. It costs a run in f64. */
static bool can_be_finer(const vn_opened *o, vn_policy *fine)
{
	const vn_dtype is = o->policy.storage;
	vn_policy_from_name(is == VN_F32 ? "f64" : "f32", fine);
	return is != VN_F64 && (is != VN_F32 || vn_limits_ask_floor(o->request.limits));
}

static vn_status run_all(floor_pass *s, vn_error *err)
{
	vn_policy of_ref, fine;
	double(*own)[2] = vn_alloc_zero((size_t)s->f.all->n, sizeof *own);
	vn_status st;

	vn_policy_of_recording(s->f.o->ref, &of_ref);
	if (vn_policy_finer(of_ref, s->f.o->policy) || s->f.o->model != s->f.model)
		st = finer_reference(s, of_ref, own, err);
	else if (can_be_finer(s->f.o, &fine)) {
		snprintf(s->f.found->from, sizeof s->f.found->from,
		         "the difference between two runs of the reference engine, one in %s and one in %s, on %s",
		         vn_policy_name(of_ref), vn_policy_name(s->f.o->policy), vn_model_path(s->f.o->model));
		st = two_runs(s, of_ref, fine, own, err);
	} else if (!(st = run_in(s, s->f.o->policy, s->f.o->model, NULL, err)))
		st = vn_floor_check_model(&s->f, NULL, false, err);
	free(own);
	return st;
}

/* The ranks that a run was divided between; 1 if it does not say. */
static int count_ranks(const vn_recording *r)
{
	const char *text = vn_facts_get(vn_recording_run(r), "world_size");
	int64_t     n;

	if (vn_recording_ranks(r))
		return vn_recording_ranks(r);
	return text && vn_text_whole(text, 1, INT32_MAX, &n) ? (int)n : 1;
}

vn_status vn_replay_floor_run(vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_floor_result *found,
                              vn_remarks *remarks, vn_error *err)
{
	vn_names   names = { 0 };
	floor_pass s = { .f = { o, all, pools, found, remarks, NULL }, .names = &names };
	vn_model  *whole = NULL;
	vn_status  st;

	vn_assume_policy(o, &remarks->notes);
	if ((st = open_model(o, o->request.options->model, err)))
		return st;
	if (!(st = check_model(o, remarks, o->model, err)) && !(st = round_weights(o, &remarks->notes, &whole, err)))
		vn_model_divide(o->model, count_ranks(o->cand));
	if (!st && o->request.sampled) {
		vn_model_vocab_part(o->model);
		if (whole)
			vn_model_vocab_part(whole);
	}
	if (st || o->request.only_local)
		goto done;
	const vn_model *model = o->model;
	const vn_plan  *plan = vn_model_plan(model);
	s.f.model = whole ? whole : model;
	vn_names_init(&names, plan);
	s.want = vn_alloc((size_t)plan->n_values, sizeof *s.want);
	s.point = vn_alloc((size_t)plan->n_values, sizeof *s.point);
	s.next = vn_alloc((size_t)all->n, sizeof *s.next);
	s.worst = vn_alloc((size_t)all->n, sizeof *s.worst);
	for (int i = 0; i < all->n; i++)
		s.worst[i] = -1;
	snprintf(found->from, sizeof found->from, "the reference engine in %s on %s", vn_policy_name(o->policy),
	         vn_model_path(model));
	st = run_all(&s, err);
done:
	VN_FREE(s.want, s.point, s.next, s.worst);
	vn_names_finish(&names);
	vn_model_close(whole);
	return st;
}

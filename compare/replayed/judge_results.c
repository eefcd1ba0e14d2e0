/* judge_results.c: measures the results of a replay file; see judge_results.h. */
#include "compare/replayed/judge_results.h"

#include "compare/comparison/checkpoint.h"
#include "compare/metrics/team.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Numbers of the candidate: with the others some 60 MB. */
enum { MOST_READ = 4 << 20 };

/* What the threads share. */
typedef struct result_measuring {
	const vn_opened      *o;
	vn_checkpoints       *all;
	vn_replayed_findings *j;
	int                  *beside; /* (results): of weights, the choice that they stand beside; -1 */
	_Atomic bool          failed;
	_Atomic int64_t       read; /* numbers since the pages of the files were given back */
	pthread_mutex_t       lock;
	vn_status             st; /* of the first failure */
	vn_error              why;
} result_measuring;

/* The numbers of one result that are read. of[i].data NULL: it has none. */
enum { CAND, EXPECTED, FLOOR, REF, AGAIN, AGAIN_FLOOR, N_NUMBERS };
typedef struct result_numbers {
	vn_recording *from[N_NUMBERS];
	int           entry[N_NUMBERS];
	vn_tensor     of[N_NUMBERS];
	bool          has[N_NUMBERS];
} result_numbers;

static vn_status read_numbers(const vn_opened *o, const vn_judged_result *r, result_numbers *x, vn_error *err)
{
	vn_recording *file = o->replayed->recording;
	vn_status     st = VN_OK;

	*x = (result_numbers) { .from = { o->cand, file, file, o->ref, file, file },
		                    .entry = { r->cand, r->expected, r->floor, r->ref, r->again, r->again_floor } };
	for (int i = 0; i < N_NUMBERS && !st; i++)
		if (x->entry[i] >= 0 && !(st = vn_entry_tensor(x->from[i], x->entry[i], &x->of[i], err)))
			x->has[i] = true;
	return st;
}

static void release_numbers(const result_numbers *x)
{
	for (int i = 0; i < N_NUMBERS; i++)
		if (x->has[i])
			vn_recording_release(x->from[i], x->entry[i]);
}

static const vn_tensor *tensor_of(const result_numbers *x, int which)
{
	return x->has[which] ? &x->of[which] : NULL;
}

/* The format in which the floor was computed; VN_N_DTYPES: there is none. */
static vn_dtype floor_format(const vn_judged_result *r, const vn_tensor *floor)
{
	return !floor || r->floor_format < VN_N_DTYPES ? r->floor_format : floor->dtype;
}

/* The format that a result is judged in: the coarser of the candidate's and the floor's. The
 * tensors of a foreign dump may not show it. */
static vn_dtype format_of(const vn_opened *o, vn_dtype cand, vn_dtype floor)
{
	const vn_dtype d = floor < VN_N_DTYPES ? vn_dtype_coarser(floor, cand) : cand;
	return vn_recording_run_plan(o->cand) ? d : vn_dtype_coarser(d, o->replayed->format);
}

vn_dtype vn_replayed_format(const vn_opened *o, const vn_judged_result *r)
{
	const vn_entry *floor = r->floor >= 0 ? vn_recording_entry(o->replayed->recording, r->floor) : NULL;
	const vn_dtype  wide = floor ? floor->dtype : VN_N_DTYPES;

	return format_of(o, vn_recording_entry(o->cand, r->cand)->dtype,
	                 r->floor_format < VN_N_DTYPES ? r->floor_format : wide);
}

/* ---- weights beside ids ---------------------------------------------------------------------- */

static void find_beside(const vn_replayed_file *f, int *beside)
{
	for (int i = 0; i < f->n; i++)
		beside[i] = *f->result[i].ids ? vn_replayed_find(f, f->result[i].step, f->result[i].ids) : -1;
	for (int i = 0; i < f->n; i++) {
		const vn_judged_result *r = &f->result[i];
		const int               k = r->kind == VN_JUDGED_CHOICE ? vn_replayed_find(f, r->step, r->scores) : -1;
		if (k >= 0 && vn_shape_equal(&vn_recording_entry(f->recording, r->expected)->shape,
		                             &vn_recording_entry(f->recording, f->result[k].expected)->shape))
			beside[k] = i;
	}
}

/* Puts the candidate's numbers, and the floor's, in the order of the expected ids. own: room for
 * both, which the caller frees. */
static vn_status pair_numbers(const vn_opened *o, const vn_judged_result *ids, result_numbers *x, double **own,
                              vn_error *err)
{
	const size_t   n = (size_t)vn_shape_count(&x->of[CAND].shape);
	result_numbers of;
	vn_status      st = read_numbers(o, ids, &of, err);

	*own = NULL;
	if (!st && vn_shape_equal(&of.of[EXPECTED].shape, &x->of[EXPECTED].shape)) {
		*own = vn_alloc(2 * n, sizeof **own);
		for (int k = CAND; k <= FLOOR; k += FLOOR - CAND) {
			double *to = *own + (k == FLOOR ? n : 0);
			if (!x->has[k] || !of.has[k])
				continue;
			vn_choices_pair(&x->of[k], &of.of[k], &x->of[EXPECTED], &of.of[EXPECTED], to);
			x->of[k] = (vn_tensor) { VN_F64, x->of[k].shape, to };
		}
	}
	release_numbers(&of);
	return st;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_wrong(const vn_replayed *l, int64_t n)
{
	return !(vn_local_limit_fraction(l, n) <= 1);
}

/* What was computed through a wrong result clears it if it errs by no more floors. Measured: right
 * engines in another order at most 1.45; a factor of 1.02 before a span of 12 operations 3.7. */
#define AGAIN_LIMIT 2.0

static void measure_again(vn_replayed_finding *to, const result_numbers *x, const vn_floor_tensors *how)
{
	const vn_tensor *own_floor = tensor_of(x, AGAIN_FLOOR);
	vn_floor_tensors t = *how;
	vn_floor_slope   slope;
	vn_replayed      l;

	if (!x->has[AGAIN])
		return;
	t.expected = &x->of[AGAIN];
	t.floor = own_floor ? own_floor : how->floor;
	t.ref = NULL;
	vn_floors_measure(&t, &l, &slope);
	to->again = true;
	to->wrong_again = !(vn_local_limit_fraction(&l, l.independent_numbers) <= AGAIN_LIMIT / VN_LOCAL_LIMIT);
}

static vn_status measure_numbers(result_measuring *m, int i, result_numbers *x, vn_error *err)
{
	const vn_opened        *o = m->o;
	const vn_judged_result *r = &o->replayed->result[i];
	vn_replayed_finding    *to = &m->j->of[i];
	vn_checkpoint          *p = &m->all->of[to->checkpoint];
	const vn_tensor        *floor = tensor_of(x, FLOOR), *ref = tensor_of(x, REF);
	const vn_dtype          of_floor = floor_format(r, floor), own_format = x->of[CAND].dtype;
	const vn_dtype          format = format_of(o, own_format, of_floor);
	double                 *own = NULL;
	vn_floor_tensors        t = { .format = format, .allow = vn_floors_allowed(r->op, format) };

	to->exchanged = r->exchanged;
	to->narrow = of_floor < VN_N_DTYPES && vn_dtype_digits(own_format) < vn_dtype_digits(of_floor);
	if (m->beside[i] >= 0) {
		const vn_status st = pair_numbers(o, &o->replayed->result[m->beside[i]], x, &own, err);
		if (st)
			return st;
	}
	t.cand = &x->of[CAND];
	t.expected = &x->of[EXPECTED];
	t.floor = floor;
	t.ref = ref && vn_shape_equal(&ref->shape, &t.cand->shape) ? ref : NULL;
	vn_floors_measure(&t, &p->replay, &to->slope);
	p->replayed = true;
	to->wrong = is_wrong(&p->replay, p->replay.independent_numbers);
	to->sloped = floor && !to->wrong && p->replay.independent_numbers >= VN_SMALL_SAMPLE;
	measure_again(to, x, &t);
	free(own);
	return VN_OK;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

/* A result of whole numbers: right, or so many are wrong. */
static void set_ids(vn_checkpoint *p, vn_replayed_finding *to, vn_ids_found found)
{
	to->ids = found;
	to->wrong = found.other > 0;
	p->replayed = true;
	p->replay = (vn_replayed) { .local = found.n ? (double)found.other / (double)found.n : 0,
		                        .floor = 1,
		                        .floor_token = 1,
		                        .floor_max = 1,
		                        .inherited = (double)NAN,
		                        .gain = (double)NAN,
		                        .other_ids = found.other,
		                        .independent_numbers = found.n,
		                        .span = 1,
		                        .charged_to = -1 };
}

/* The difference of two scores that rounding explains: that of one number, for each of the two. */
static double margin_of(const result_measuring *m, int scores)
{
	const int            at = scores >= 0 ? m->j->of[scores].checkpoint : -1;
	const vn_checkpoint *p = at >= 0 ? &m->all->of[at] : NULL;

	if (!p || !p->replayed)
		return 0;
	return 2 * sqrt(VN_PEAK_LIMIT * vn_local_slack(p->replay.independent_numbers)) * p->replay.floor_max;
}

static vn_status measure_choice(result_measuring *m, int i, const result_numbers *x, vn_ids_found *found, vn_error *err)
{
	const vn_opened        *o = m->o;
	const vn_judged_result *r = &o->replayed->result[i];
	const int               scores = vn_replayed_find(o->replayed, r->step, r->scores);
	result_numbers          s;
	const vn_status         st = read_numbers(o, &o->replayed->result[scores], &s, err);

	if (!st) {
		const vn_choice choice = { .ids = { &x->of[CAND], &x->of[EXPECTED] },
			                       .scores = { &s.of[CAND], &s.of[EXPECTED] },
			                       .margin = margin_of(m, scores) };
		*found = vn_choices_sets(&choice);
	}
	release_numbers(&s);
	return st;
}

static vn_status measure_ids(result_measuring *m, int i, const result_numbers *x, vn_error *err)
{
	const vn_judged_result *r = &m->o->replayed->result[i];
	vn_replayed_finding    *to = &m->j->of[i];
	vn_ids_found            found = { 0 };
	vn_status               st = VN_OK;

	if (r->kind == VN_JUDGED_CHOICE)
		st = measure_choice(m, i, x, &found, err);
	if (!st && found.n == 0)
		found = vn_choices_ids(&x->of[CAND], &x->of[EXPECTED], tensor_of(x, FLOOR));
	set_ids(&m->all->of[to->checkpoint], to, found);
	if (!st && x->has[AGAIN]) {
		to->again = true;
		to->wrong_again = r->kind == VN_JUDGED_IDS &&
		                  vn_choices_ids(&x->of[CAND], &x->of[AGAIN], tensor_of(x, AGAIN_FLOOR)).other > 0;
	}
	return st;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool has_ids(const vn_replayed_file *f, int i)
{
	return f->result[i].kind != VN_JUDGED_NUMBERS ||
	       vn_recording_entry(f->recording, f->result[i].expected)->dtype == VN_I32;
}

static void note_failure(result_measuring *m, vn_status st, const vn_error *why)
{
	pthread_mutex_lock(&m->lock);
	if (!m->st) {
		m->st = st;
		m->why = *why;
	}
	pthread_mutex_unlock(&m->lock);
	m->failed = true;
}

static void measure_one(result_measuring *m, int i, bool ids)
{
	const vn_opened *o = m->o;
	result_numbers   x;
	vn_error         why = { "" };
	vn_status        st;

	if (m->failed || m->j->of[i].checkpoint < 0 || has_ids(o->replayed, i) != ids)
		return;
	if (!(st = read_numbers(o, &o->replayed->result[i], &x, &why)))
		st = ids ? measure_ids(m, i, &x, &why) : measure_numbers(m, i, &x, &why);
	const int64_t numbers = st ? 0 : vn_shape_count(&x.of[CAND].shape);
	release_numbers(&x);
	if (st)
		note_failure(m, st, &why);
	if (atomic_fetch_add(&m->read, numbers) + numbers < MOST_READ) /* mapped pages count as memory */
		return;
	m->read = 0;
	vn_recording_forget(o->cand);
	vn_recording_forget(o->ref);
	vn_recording_forget(o->replayed->recording);
}

static void measure_one_of_numbers(void *ctx, int i)
{
	measure_one(ctx, i, false);
}

/* May several threads read the files? */
static bool is_shared(const vn_opened *o)
{
	const bool cand = vn_recording_share(o->cand), ref = vn_recording_share(o->ref);
	return vn_recording_share(o->replayed->recording) && cand && ref;
}

vn_status vn_replayed_measure(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j, vn_error *err)
{
	result_measuring m = { .o = o, .all = all, .j = j, .lock = PTHREAD_MUTEX_INITIALIZER };

	m.beside = vn_alloc((size_t)j->n, sizeof *m.beside);
	find_beside(o->replayed, m.beside);
	vn_team_each(is_shared(o) ? o->request.options->threads : 1, j->n, measure_one_of_numbers, &m);
	for (int i = 0; i < j->n; i++)
		measure_one(&m, i, true); /* they need the floors of their scores */
	vn_opened_forget(o);
	free(m.beside);
	if (m.st && err)
		*err = m.why;
	return m.st;
}

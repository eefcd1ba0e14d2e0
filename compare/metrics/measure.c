/* measure.c: the pass over a pair of tensors; see metrics.h.
 *
 * Tokens are distributed to threads in units of about 64 Ki elements. A unit's sums depend only on
 * the shape and are joined in order, so the number of threads changes nothing. Tensors that are
 * read in parts (window.h) are read some units at a time.
 *
 * Neighbouring jobs with the same reference (several candidates) are measured unit by unit: the
 * thread that has measured a unit of one job measures that of the next, while the reference's
 * numbers are in its cache.
 */
#include "compare/metrics/channels.h"
#include "compare/metrics/pages.h"
#include "compare/metrics/running_digest.h"
#include "compare/metrics/slice.h"
#include "compare/metrics/team.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A job cut into units. */
typedef struct job_units {
	vn_pair           pair;
	int64_t           rows;          /* of a unit */
	int64_t           units, each;   /* number of units; units taken by a thread at a time */
	int64_t           shares, first; /* number of shares; number of the first share, counted over all jobs */
	int               with;          /* following jobs with the same reference; they have the same shares */
	bool              follows;       /* it is one of those */
	_Atomic int64_t   left;          /* shares not yet measured */
	bool              parts;         /* it is read in parts */
	_Atomic bool      failed;
	vn_stretches      stretches;
	vn_running_digest digest;
	vn_sums          *unit;                  /* (units) */
	vn_squares       *row;                   /* (tokens); NULL without rows */
	vn_size          *size;                  /* (tokens) scratch */
	vn_scores         scores;                /* for rows measured while they are in the cache; kl NULL: none */
	uint64_t          count[VN_ULP_BUCKETS]; /* integers, so the order of addition does not matter */
} job_units;

/* Formats whose numbers float32 cannot hold exactly. */
static bool is_wide(vn_dtype d)
{
	return d == VN_F64 || d == VN_I32;
}

/* What each thread has for itself. */
typedef struct measurer {
	vn_slicing   slicing;
	vn_channels *channels;
	vn_window   *window; /* NULL: nothing is read in parts */
} measurer;

static void measure_run(const vn_pair *p, int64_t at, int64_t n, vn_sums *u, vn_squares *row, vn_slicing *with)
{
	for (int64_t i = 0; i < n; i += VN_SLICE) {
		const size_t m = (size_t)(n - i < VN_SLICE ? n - i : VN_SLICE);
		vn_sums      s;
		if (is_wide(p->dtype[0]) || is_wide(p->dtype[1]))
			vn_slice_wide(p, at + i, m, &s, with);
		else
			vn_slice_narrow(p, at + i, m, &s, with);
		if (p->bits)
			vn_slice_differing(p, at + i, m, &s);
		if (row)
			vn_squares_add(row, &s.sq);
		vn_sums_join(u, &s);
	}
}

static void empty_spread(vn_spread *s, uint64_t *count)
{
	/* A single table may be negative, because positions are subtracted again; the sum of all tables
	 * is not. */
	uint32_t sum[VN_ULP_BUCKETS];
	memcpy(sum, s->count[0], sizeof sum);
	for (int t = 1; t < VN_ULP_TABLES; t++)
		for (int i = 0; i < VN_ULP_BUCKETS; i++)
			sum[i] += s->count[t][i];
	for (int i = 0; i < VN_ULP_BUCKETS; i++)
		if (sum[i])
			__atomic_fetch_add(&count[i], sum[i], __ATOMIC_RELAXED);
	memset(s->count, 0, sizeof s->count);
}

/* Measures the rows of unit `which` in outer indices [from, to); of a job read in parts, the window
 * holds them. */
static void measure_rows(job_units *w, int64_t which, int64_t from, int64_t to, measurer *by)
{
	const vn_pair *p = &w->pair;
	const int64_t  first = which * w->rows, rows = p->rows - first < w->rows ? p->rows - first : w->rows;
	int64_t        since = 0;
	vn_pair        moved;
	for (int64_t o = from; o < to; o++)
		for (int64_t t = first; t < first + rows; t++) {
			const int64_t at = (o * p->rows + t) * p->inner;
			const int64_t n = p->n - at < p->inner ? p->n - at : p->inner;
			if (w->parts)
				moved = vn_window_of_row(by->window, p, o, t);
			const bool      one = w->scores.kl && n == w->scores.width; /* row of scores */
			vn_scores_sweep scores;
			if (one)
				scores = vn_scores_sweep_begin(p, at, n);
			by->slicing.scores = one ? &scores : NULL;
			measure_run(w->parts ? &moved : p, at, n, &w->unit[which], w->row ? &w->row[t] : NULL, &by->slicing);
			for (int64_t i = at; w->scores.kl && i < at + n; i += w->scores.width) {
				const vn_scores_row x = one ? vn_scores_sweep_end(&scores) : vn_scores_sweep_row(p, i, w->scores.width);
				vn_scores_add(&w->scores, i / w->scores.width, &x);
			}
			if ((since += n) > INT32_MAX / 2) { /* the tables have 32-bit counters */
				empty_spread(&by->slicing.spread, w->count);
				since = 0;
			}
		}
	by->slicing.scores = NULL;
	empty_spread(&by->slicing.spread, w->count);
}

/* Measures a unit of one row larger than a window. */
static vn_status measure_wide_row(job_units *w, const vn_job *job, int64_t row, measurer *by, vn_error *err)
{
	const vn_pair *p = &w->pair;
	vn_window     *in = by->window;
	const int64_t  most = in->most / p->inner; /* outer indices */
	vn_status      st = VN_OK;
	for (int64_t o = 0, n; o < p->outer && !st && most > 0; o += n) {
		n = p->outer - o < most ? p->outer - o : most;
		if (!(st = vn_window_rows(in, job, p, (vn_row_range) { o, n, row, 1 }, err)))
			measure_rows(w, row, o, o + n, by);
	}
	for (int64_t o = 0; o < p->outer && !st && most == 0; o++)
		for (int64_t i = 0, n; i < p->inner && !st; i += n) {
			const int64_t at = (o * p->rows + row) * p->inner + i;
			n = p->inner - i < in->most ? p->inner - i : in->most; /* whole slices except at the end */
			if ((st = vn_window_run(in, job, at, n, err)))
				continue;
			const vn_pair here = vn_window_of_run(in, p, at);
			measure_run(&here, at, n, &w->unit[row], w->row ? &w->row[row] : NULL, &by->slicing);
			empty_spread(&by->slicing.spread, w->count);
		}
	return st;
}

/* Measures units [unit, end) of a job. */
static vn_status measure_units(job_units *w, const vn_job *job, int64_t unit, int64_t end, measurer *by, vn_error *err)
{
	const vn_pair *p = &w->pair;
	const int64_t  row = unit * w->rows, rows = (p->rows < end * w->rows ? p->rows : end * w->rows) - row;
	vn_status      st = VN_OK;
	for (int64_t i = unit; i < end; i++)
		w->unit[i] = (vn_sums) { .max_block = -1, .bad_at = -1, .differs_at = -1 };
	if (w->row)
		memset(&w->row[row], 0, (size_t)rows * sizeof *w->row);
	if (w->parts && rows * p->outer * p->inner > by->window->most)
		return measure_wide_row(w, job, row, by, err);
	if (w->parts)
		st = vn_window_rows(by->window, job, p, (vn_row_range) { 0, p->outer, row, rows }, err);
	for (int64_t i = unit; !st && i < end; i++)
		measure_rows(w, i, 0, p->outer, by);
	return st;
}

/* The token axis splits the shape; without one, slices serve as rows. */
static vn_pair make_pair(const vn_job *job)
{
	const vn_shape *s = &job->ref.shape;
	const int       axis = vn_token_axis(job->axes, s->rank);
	const vn_dtype  ref = job->ref.dtype, cand = job->cand.dtype;
	vn_pair         p = {
				.kernel = vn_metric_kernel_best(),
				.data = { job->ref.data, job->cand.data },
				.dtype = { ref, cand },
				.grid = vn_dtype_digits(ref) < vn_dtype_digits(cand) ? ref : cand,
				.n = vn_shape_count(s),
				.outer = 1,
				.rows = 1,
				.inner = 1,
				.tokens = axis >= 0,
				.bits = job->bits,
				.brief = job->brief,
				.mapped = job->mapped,
				.masks = job->masks,
	};
	if (axis < 0) {
		p.inner = VN_SLICE;
		p.rows = (p.n + VN_SLICE - 1) / VN_SLICE;
		return p;
	}
	for (int i = 0; i < axis; i++)
		p.outer *= s->dim[i];
	p.rows = s->dim[axis];
	for (int i = axis + 1; i < s->rank; i++)
		p.inner *= s->dim[i];
	return p;
}

void vn_job_give_back(const vn_job *job)
{
	const vn_pair p = make_pair(job);
	vn_pair_give_back(&p, 0, p.n);
}

static vn_status join_units(const job_units *w, const measurer *by, vn_job *job, vn_error *err)
{
	vn_window   *in = by->window;
	vn_measured *m = &job->m;
	vn_status    st = VN_OK;
	vn_sums      sums = w->unit[0];
	for (int64_t i = 1; i < w->units; i++)
		vn_sums_join(&sums, &w->unit[i]);
	vn_sums_finish(&sums, &w->pair, w->count, m);
	if (sums.max_block >= 0) {
		const int64_t at = sums.max_block, n = w->pair.n - at < VN_BLOCK ? w->pair.n - at : VN_BLOCK;
		if (w->parts && (st = vn_window_run(in, job, at, n, err)))
			return st;
		const vn_pair here = w->parts ? vn_window_of_run(in, &w->pair, at) : w->pair;
		vn_metric_find_max(&here, at, m);
	}
	if (w->row)
		vn_measure_tokens(w->row, w->pair.rows, w->size, m);
	return job->brief ? VN_OK : vn_measure_channels(&w->pair, by->channels, w->parts ? in : NULL, job, err);
}

/* Gives back the pages of a stretch when this unit was its last. */
static void give_back(job_units *w, int64_t unit)
{
	const vn_pair *p = &w->pair;
	int64_t        first, last;
	if (!vn_stretch_ends(&w->stretches, unit, &first, &last))
		return;
	const int64_t row = first * w->rows, end = last * w->rows < p->rows ? last * w->rows : p->rows;
	/* When heads come before tokens, a row has one place for each head. */
	for (int64_t i = 0; i < p->outer; i++) {
		const int64_t to = (i * p->rows + end) * p->inner;
		vn_pair_give_back(p, (i * p->rows + row) * p->inner, to < p->n ? to : p->n);
	}
}

/* The job that share u belongs to. */
static job_units *work_of(job_units *w, int n, int64_t u)
{
	int lo = 0, hi = n - 1;
	while (lo < hi) {
		const int mid = lo + (hi - lo + 1) / 2;
		if (w[mid].first <= u)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &w[lo];
}

/* Where the files store the numbers contiguously, units measured a few at a time stay in the cache.
 * Gathered numbers are read faster in larger groups. */
enum { FEW_UNITS = 4 };

static bool in_files(const vn_job *job)
{
	return vn_recording_mapped(job->from[0].recording, job->from[0].entry) &&
	       vn_recording_mapped(job->from[1].recording, job->from[1].entry);
}

/* most: elements in a window. */
static void cut_job(job_units *w, const vn_job *job, int64_t most, int threads)
{
	w->pair = make_pair(job);
	const int64_t token = w->pair.outer * w->pair.inner;
	w->rows = token >= VN_SLICE ? 1 : VN_SLICE / token;
	w->units = (w->pair.rows + w->rows - 1) / w->rows;
	w->rows = w->rows < w->pair.rows ? w->rows : w->pair.rows;
	w->parts = job->from[0].recording != NULL;
	const int64_t unit = w->rows * token;
	w->each = w->parts && unit > 0 && most > unit ? most / unit : 1;
	w->each = w->each > FEW_UNITS && in_files(job) ? FEW_UNITS : w->each;
	w->shares = (w->units + w->each - 1) / w->each;
	w->left = w->shares;
	if (!w->parts)
		w->stretches = vn_stretches_of(&w->pair, w->units, unit, threads);
}

/* Prepares the metrics of scores, one row for each token. */
static vn_status begin_scores(job_units *w, const vn_job *job, vn_error *err)
{
	const vn_shape *s = &job->ref.shape;
	const int64_t   width = s->rank > 0 ? s->dim[s->rank - 1] : 0;
	if (!job->scores || w->parts || !w->pair.tokens || width == 0 || w->pair.inner % width != 0 || w->pair.n == 0)
		return VN_OK;
	return vn_scores_begin(&w->scores, &w->pair, width) ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for scores");
}

static vn_status end_scores(job_units *w, int threads, vn_window *windows, vn_job *job, vn_error *err)
{
	if (!job->scores || job->st || job->ref.shape.rank == 0)
		return VN_OK;
	if (!w->scores.kl)
		return vn_measure_scores(&w->pair, threads, windows, job, err);
	vn_scores_end(&w->scores, &job->m);
	return VN_OK;
}

/* Do both read the same reference, in the same units? */
static bool same_reference(const job_units *a, const job_units *b)
{
	return !a->parts && !b->parts && a->pair.data[0] && a->pair.data[0] == b->pair.data[0] &&
	       a->pair.dtype[0] == b->pair.dtype[0] && a->pair.outer == b->pair.outer && a->pair.rows == b->pair.rows &&
	       a->pair.inner == b->pair.inner;
}

/* What the threads share. */
typedef struct measure_pass {
	vn_job          *job; /* (n) */
	job_units       *w;   /* (n) */
	int              n;
	int64_t          shares;
	_Atomic int64_t  next;
	measurer        *own;    /* (threads) */
	vn_window       *window; /* (threads); NULL: nothing is read in parts */
	_Atomic int64_t *ended;  /* for all jobs, like the members below */
	_Atomic bool    *measured;
	vn_sums         *unit;
	vn_squares      *row;
	vn_size         *size;
} measure_pass;

/* Records the first failure of a job. */
static void note_failure(measure_pass *p, int i, vn_status st, const vn_error *why)
{
	if (st && !atomic_exchange(&p->w[i].failed, true)) {
		p->job[i].st = st;
		p->job[i].why = *why;
	}
}

/* The thread that ends the last share of a job combines its results. */
static void end_job(measure_pass *p, int i, int thread)
{
	job_units *w = &p->w[i];
	vn_error   why = { "" };
	vn_running_digest_end(&w->digest, &w->pair, &p->job[i]);
	if (!w->failed)
		note_failure(p, i, join_units(w, &p->own[thread], &p->job[i], &why), &why);
	if (!w->parts && vn_pair_gives_back(&w->pair))
		vn_pair_give_back(&w->pair, 0, w->pair.n);
}

/* The bytes that a share of a job reads of one side, if they are contiguous. A job that shares the
 * reference finds its bytes in the cache. */
static vn_ahead_run run_of(const measure_pass *p, int64_t job, int64_t share, int side)
{
	if (job < 0)
		return (vn_ahead_run) { NULL, NULL };
	const job_units *w = &p->w[job];
	const int64_t    unit = w->rows * w->pair.inner;
	return vn_ahead_of(&w->pair, side, share * unit, (share + 1) * unit,
	                   w->parts || w->pair.outer > 1 || (side == 0 && w->follows));
}

/* Measures a share of a job. then: the bytes that this thread measures next, to be fetched
 * meanwhile. */
static void measure_share(measure_pass *p, int job, int64_t share, int64_t then, int64_t then_share, int thread)
{
	job_units    *w = &p->w[job];
	const int64_t unit = share * w->each, end = unit + w->each < w->units ? unit + w->each : w->units;
	vn_ahead     *ahead = &p->own[thread].slicing.ahead;
	vn_error      why = { "" };
	for (int side = 0; side < 2; side++) {
		const size_t size = vn_dtype_size(w->pair.dtype[side]);
		const size_t row = w->pair.inner < VN_SLICE ? (size_t)w->pair.inner : VN_SLICE;
		vn_ahead_begin(ahead, side, run_of(p, job, share, side), VN_SLICE * size, row * size,
		               run_of(p, then, then_share, side));
	}
	if (!w->failed)
		note_failure(p, job, measure_units(w, &p->job[job], unit, end, &p->own[thread], &why), &why);
	vn_running_digest_unit(&w->digest, &w->pair, unit);
}

/* A thread takes its next share before it measures one, so that it can fetch that share's numbers
 * meanwhile. */
static void measure_some(void *ctx, int thread)
{
	measure_pass *p = ctx;
	for (int64_t i = p->next++, next; i < p->shares; i = next) {
		const job_units *first = work_of(p->w, p->n, i), *then = NULL;
		const int        job = (int)(first - p->w), end = job + first->with + 1;
		const int64_t    share = i - first->first;
		if ((next = p->next++) < p->shares)
			then = work_of(p->w, p->n, next);
		for (int k = job; k < end; k++)
			measure_share(p, k, share,
			              k + 1 < end ? k + 1
			              : then      ? then - p->w
			                          : -1,
			              k + 1 < end ? share
			              : then      ? next - then->first
			                          : 0,
			              thread);
		for (int k = job; k < end; k++)
			give_back(&p->w[k], share * p->w[k].each);
		const bool last = --p->w[job].left == 0;
		for (int k = job; k < end && last; k++) /* results about the reference serve the next candidate */
			end_job(p, k, thread);
	}
}

/* Checks the digests of jobs read in parts beforehand, one tensor in each thread: otherwise all
 * threads would wait for the thread with the first part. */
static void verify_some(void *ctx, int thread)
{
	measure_pass *p = ctx;
	(void)thread;
	for (int64_t i; (i = p->next++) < 2 * p->n;) {
		const vn_job *job = &p->job[i / 2];
		vn_error      why = { "" };
		if (p->w[i / 2].parts)
			note_failure(p, (int)(i / 2),
			             vn_recording_verify_entry(job->from[i % 2].recording, job->from[i % 2].entry, &why), &why);
	}
}

/* Allocates the sums of all jobs. */
static bool make_room(job_units *w, int n, measure_pass *p, int threads)
{
	int64_t units = 0, rows = 0, ended = 0;
	for (int i = 0; i < n; i++) {
		units += w[i].units;
		ended += w[i].stretches.count;
		rows += w[i].pair.tokens ? w[i].pair.rows : 0;
	}
	p->ended = calloc((size_t)ended + 1, sizeof *p->ended);
	p->measured = calloc((size_t)units + 1, sizeof *p->measured);
	p->unit = calloc((size_t)units + 1, sizeof *p->unit);
	/* Not calloc, which would map zero pages: reading then writing one costs two faults and a TLB
	 * shootdown. */
	p->row = malloc(((size_t)rows + 1) * sizeof *p->row);
	p->size = malloc(((size_t)rows + 1) * sizeof *p->size);
	p->own = calloc((size_t)threads, sizeof *p->own);
	if (!p->ended || !p->measured || !p->unit || !p->row || !p->size || !p->own)
		return false;
	for (int i = 0; i < threads; i++) {
		p->own[i].window = p->window ? &p->window[i] : NULL;
		if (!(p->own[i].channels = vn_channels_new()))
			return false;
	}
	units = rows = ended = 0;
	for (int i = 0; i < n; i++) {
		w[i].stretches.ended = p->ended + ended;
		ended += w[i].stretches.count;
		w[i].unit = p->unit + units;
		w[i].digest.stretches = &w[i].stretches;
		w[i].digest.units = w[i].units;
		w[i].digest.unit = w[i].rows * w[i].pair.inner;
		w[i].digest.measured = !w[i].parts && w[i].pair.outer == 1 && vn_running_digest_wanted(&w[i].digest)
		                           ? p->measured + units
		                           : NULL;
		units += w[i].units;
		if (!w[i].pair.tokens)
			continue;
		w[i].row = p->row + rows;
		w[i].size = p->size + rows;
		rows += w[i].pair.rows;
	}
	return true;
}

/* failed: jobs may have begun digests that no result holds. */
static void free_pass(measure_pass *p, int n, int threads, int all, bool failed)
{
	for (int i = 0; failed && p->w && i < n; i++)
		vn_running_digest_drop(&p->w[i].digest);
	for (int i = 0; p->w && i < n; i++)
		vn_scores_free(&p->w[i].scores);
	vn_windows_close(p->window, all);
	VN_FREE(p->size, p->row);
	for (int i = 0; p->own && i < threads; i++)
		vn_channels_free(p->own[i].channels);
	VN_FREE(p->own, p->unit, p->measured, p->ended, p->w);
}

/* Returns how many of `all` threads measure the pass: one a share, and none that has less to do
 * than it takes to start it. Numbers in files also wait for the disk, so a share of them is
 * enough. */
static int useful_threads(const measure_pass *p, int n, int all, bool parts)
{
	enum { ENOUGH = 1 << 16 }; /* numbers: about 50 us; a thread costs 30 us */
	int64_t most = p->shares, numbers = 0;

	for (int i = 0; i < n; i++)
		numbers += p->w[i].pair.n;
	if (!parts && numbers / ENOUGH + 1 < most)
		most = numbers / ENOUGH + 1;
	return most < 1 ? 1 : most < all ? (int)most : all;
}

vn_status vn_measure_many(vn_job *job, int n, int threads, vn_error *err)
{
	const int    all = threads > 0 ? threads : vn_team_size();
	measure_pass p = { .job = job, .w = calloc((size_t)n + 1, sizeof *p.w), .n = n };
	bool         parts = false;
	int          leader = 0;
	vn_status    st = VN_OK;

	for (int i = 0; i < n; i++)
		parts = parts || job[i].from[0].recording;
	if (parts)
		p.window = vn_windows_open(all);
	for (int i = 0; p.w && i < n && (p.window || !parts) && !st; i++) {
		cut_job(&p.w[i], &job[i], parts ? p.window->most : 0, all);
		p.w[i].first = p.shares;
		if ((p.w[i].follows = i > 0 && same_reference(&p.w[leader], &p.w[i]))) {
			p.w[leader].with++;
		} else {
			p.shares += p.w[i].shares;
			leader = i;
		}
		job[i].st = VN_OK;
		if (!p.w[i].parts)
			vn_running_digest_begin(&p.w[i].digest, &job[i]);
		st = begin_scores(&p.w[i], &job[i], err);
	}
	if (st)
		goto done;
	if (p.w)
		threads = useful_threads(&p, n, all, parts);
	if (!p.w || (parts && !p.window) || !make_room(p.w, n, &p, threads)) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory to measure %d tensors", n);
		goto done;
	}
	if (parts) {
		vn_team_run(2 * n < all ? 2 * n : all, verify_some, &p);
		p.next = 0;
	}
	vn_team_run(threads, measure_some, &p);
	for (int i = 0; i < n; i++)
		if (p.w[i].shares == 0)
			end_job(&p, i, 0);
	for (int i = 0; !st && i < n; i++)
		st = end_scores(&p.w[i], threads, p.window, &job[i], err);
done:
	free_pass(&p, n, threads, all, st != VN_OK);
	return st;
}

vn_status vn_measure(const vn_tensor *ref, const vn_tensor *cand, const char *axes, int threads, vn_measured *m,
                     vn_error *err)
{
	vn_job          job = { .ref = *ref, .cand = *cand, .axes = axes };
	const vn_status st = vn_measure_many(&job, 1, threads, err);
	*m = job.m;
	return st;
}

vn_status vn_measure_brief(const vn_tensor *ref, const vn_tensor *cand, const char *axes, int threads, vn_measured *m,
                           vn_error *err)
{
	vn_job          job = { .ref = *ref, .cand = *cand, .axes = axes, .brief = true };
	const vn_status st = vn_measure_many(&job, 1, threads, err);
	*m = job.m;
	return st;
}

/* batch.c: measures many checkpoints at a time.
 *
 * Threads that wait for each other after every tensor lose more than they gain, especially on a
 * busy machine. So pairs are gathered up to BATCH_BYTES or BATCH_JOBS. Not all at once: mapped data
 * counts as memory while it is used, and is released after every batch. Data that is released while
 * it is measured (pages.h) counts an eighth, so that progress is shown. Tensors larger than
 * WHOLE_BYTES that are not stored as they are measured are read in parts (window.h).
 */
#include "compare/match/batch.h"

#include "compare/metrics/pages.h"

#include "libref/base/progress.h"

#include <stdlib.h>

enum { BATCH_BYTES = 64 << 20, BATCH_JOBS = 1024, WHOLE_BYTES = 16 << 20 };
/* Memory that the pass keeps for each token. */
enum { TOKEN_BYTES = 112 };

typedef struct pending {
	vn_checkpoint *point;
	int            entry;
} pending;

static void release(vn_comparison *c, const vn_batch *b, const pending *p)
{
	vn_recording_release(c->opened.ref, p->point->ref);
	vn_recording_release(b->other, p->entry);
}

static void vouch(vn_recording *r, int entry, const vn_digest *found)
{
	if (*found->hex)
		vn_recording_vouch(r, entry, found);
}

/* The first failure. Numbers that cannot be read are a finding about their tensor; other failures end the
 * comparison. */
static vn_status first_trouble(const vn_job *job, int n, vn_error *err)
{
	for (int i = 0; i < n; i++)
		if (vn_status_ends_job(job[i].st))
			return vn_fail(err, job[i].st, "%s", job[i].why.text);
	return VN_OK;
}

static vn_status flush(vn_comparison *c, const vn_batch *b, vn_job *job, const pending *p, int n, vn_error *err)
{
	vn_status st = n > 0 ? vn_measure_many(job, n, c->request.options->threads, err) : VN_OK;
	if (!st)
		st = first_trouble(job, n, err);
	for (int i = 0; i < n; i++) {
		if (!st && job[i].st)
			b->unread(p[i].point, job[i].why.text);
		else if (!st)
			b->done(p[i].point, &job[i].m);
		vouch(c->opened.ref, p[i].point->ref, &job[i].found[0]);
		vouch(b->other, p[i].entry, &job[i].found[1]);
		release(c, b, &p[i]);
	}
	vn_recording_forget(c->opened.ref);
	vn_recording_forget(b->other);
	return st;
}

static int64_t bytes_in(vn_recording *r, int entry)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	return vn_shape_count(&e->shape) * (int64_t)vn_dtype_size(e->dtype);
}

static vn_tensor of_entry(const vn_recording *r, int entry)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	return (vn_tensor) { .dtype = e->dtype, .shape = e->shape };
}

/* Whether the job must be read in parts because a file does not store the numbers in the order of measurement:
 * token by token, each with all its numbers. */
static bool in_parts(vn_comparison *c, const vn_batch *b, const pending *p)
{
	const vn_entry *e = vn_recording_entry(c->opened.ref, p->point->ref);
	if (bytes_in(c->opened.ref, p->point->ref) <= WHOLE_BYTES && bytes_in(b->other, p->entry) <= WHOLE_BYTES)
		return false;
	return vn_token_axis(vn_entry_axes(e), e->shape.rank) > 0 || !vn_recording_mapped(c->opened.ref, p->point->ref) ||
	       !vn_recording_mapped(b->other, p->entry);
}

static vn_status load(vn_comparison *c, const vn_batch *b, const pending *p, vn_job *job, vn_error *why)
{
	vn_status st = VN_OK;
	*job = (vn_job) { .ref = of_entry(c->opened.ref, p->point->ref), .cand = of_entry(b->other, p->entry) };
	if (in_parts(c, b, p)) {
		job->from[0].recording = c->opened.ref;
		job->from[0].entry = p->point->ref;
		job->from[1].recording = b->other;
		job->from[1].entry = p->entry;
	} else if (!(st = vn_recording_lend(c->opened.ref, p->point->ref, &job->ref.data, &job->digest[0], why))) {
		st = vn_recording_lend(b->other, p->entry, &job->cand.data, &job->digest[1], why);
	}
	job->axes = vn_entry_axes(vn_recording_entry(c->opened.ref, p->point->ref));
	job->scores = p->point->scores;
	const vn_point_info *point = vn_entry_point(vn_recording_entry(c->opened.ref, p->point->ref));
	job->masks = point && point == vn_point_get(VN_POINT_ATTN_SCORES);
	job->bits = c->result.bits;
	job->mapped = true;
	return st;
}

static int64_t bytes_of(const vn_tensor *t)
{
	return vn_shape_count(&t->shape) * (int64_t)vn_dtype_size(t->dtype);
}

/* Bytes of a job that count as memory, now or when it is read. */
static int64_t weight(const vn_comparison *c, const vn_batch *b, const pending *p, const vn_job *job)
{
	const int64_t bytes = bytes_of(&job->ref) + bytes_of(&job->cand);
	const int     axis = vn_token_axis(job->axes, job->ref.shape.rank);
	const bool in_files = vn_recording_mapped(c->opened.ref, p->point->ref) && vn_recording_mapped(b->other, p->entry);
	return (in_files && bytes >= VN_GIVES_BACK ? bytes / 8 : bytes) +
	       (axis >= 0 ? TOKEN_BYTES * job->ref.shape.dim[axis] : 0);
}

/* Total for the progress line, in bytes, because checkpoint sizes differ by factors of thousands. */
static int64_t all_bytes(vn_comparison *c, const vn_batch *b)
{
	int64_t sum = 0;
	for (int i = 0; i < c->result.n_points; i++) {
		const int entry = b->entry(c, &c->result.point[i]);
		if (entry >= 0)
			sum += bytes_in(c->opened.ref, c->result.point[i].ref) + bytes_in(b->other, entry);
	}
	return sum;
}

vn_status vn_measure_points(vn_comparison *c, const vn_batch *b, vn_error *err)
{
	vn_job     *job = malloc(BATCH_JOBS * sizeof *job);
	pending    *p = malloc(BATCH_JOBS * sizeof *p);
	int64_t     bytes = 0, heavy = 0, past = 0;
	int         n = 0;
	vn_progress bar = { 0 };
	vn_status   st = job && p ? VN_OK
	                          : vn_fail(err, VN_ERR_NOMEM, "no memory to measure %d checkpoints", c->result.n_points);

	if (!st)
		vn_progress_start(&bar, "megabyte", all_bytes(c, b) / 1000000);
	for (int i = 0; !st && i < c->result.n_points; i++) {
		vn_error why = { "" };
		p[n] = (pending) { &c->result.point[i], b->entry(c, &c->result.point[i]) };
		if (p[n].entry < 0)
			continue;
		const vn_status read = load(c, b, &p[n], &job[n], &why);
		if (read) {
			const pending bad = p[n];
			/* Measure the pending jobs first: a tensor may have two names, and they may need what is released below. */
			st = flush(c, b, job, p, n, err);
			n = 0;
			bytes = heavy = 0;
			release(c, b, &bad);
			if (st)
				break;
			if (vn_status_ends_job(read))
				st = vn_fail(err, read, "%s", why.text);
			else
				b->unread(&c->result.point[i], why.text);
			continue;
		}
		bytes += bytes_of(&job[n].ref) + bytes_of(&job[n].cand);
		heavy += weight(c, b, &p[n], &job[n]);
		if (++n == BATCH_JOBS || heavy >= BATCH_BYTES) {
			st = flush(c, b, job, p, n, err);
			vn_progress_at(&bar, (past += bytes) / 1000000);
			n = 0;
			bytes = heavy = 0;
		}
	}
	if (!st)
		st = flush(c, b, job, p, n, err);
	else
		for (int i = 0; i < n; i++)
			release(c, b, &p[i]);
	vn_progress_stop(&bar);
	free(job);
	free(p);
	return st;
}

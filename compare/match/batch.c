/* batch.c: measures many checkpoints at a time.
 *
 * Threads that wait for each other after every tensor lose more than they gain, especially on a
 * busy machine. So pairs are gathered up to BATCH_JOBS of them, or up to BATCH_BYTES (EACH_BYTES
 * for each thread, if that is more). Not all at once: mapped data counts as memory while it is
 * used, and is released after every batch. Data that is released while it is measured (pages.h)
 * counts an eighth, so that progress is shown. Tensors larger than WHOLE_BYTES that are not stored
 * as they are measured are read in parts (window.h); of those made of pieces (ranks), larger than
 * PIECES_BYTES.
 */
#include "compare/match/batch.h"

#include "compare/metrics/pages.h"
#include "compare/metrics/team.h"

#include "capture/recording/derive.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"

#include <stdlib.h>

enum {
	BATCH_BYTES = 64 << 20,
	EACH_BYTES = 32 << 20,
	BATCH_JOBS = 1024,
	WHOLE_BYTES = 16 << 20,
	PIECES_BYTES = 1 << 20
};
/* Memory that the pass keeps for each token. */
enum { TOKEN_BYTES = 112 };

typedef struct pending_job {
	vn_measuring  *of;
	vn_checkpoint *point;
	vn_recording  *from[2]; /* the reference, and the other */
	int            entry[2];
	int            like; /* index of the job whose reference's bytes and digest it shares; -1: none */
} pending_job;

/* The jobs of a batch, at most BATCH_JOBS and those that share the last reference. */
typedef struct job_batch {
	vn_measuring *of; /* (n_of): all comparisons */
	int           n_of;
	vn_job       *job;
	pending_job  *p;
	int           n, threads;
	int64_t       bytes, heavy, past;
	int64_t       most; /* of heavy */
	vn_progress   bar;
} job_batch;

static void release_pair(const pending_job *p)
{
	for (int side = 0; side < 2; side++)
		vn_recording_release(p->from[side], p->entry[side]);
}

static void note_failure(vn_measuring *m, vn_status st, const vn_error *why)
{
	if (m->st || !st)
		return;
	m->st = st;
	m->why = *why;
}

static void note_unread(const vn_measuring *m, vn_checkpoint *p, const vn_error *why)
{
	if (!m->st && m->batch.unread)
		m->batch.unread(p, why->text);
}

/* Unmapping is most of what a thread does alone between two batches: 33 ms for 2.9 GB; shared,
 * 10 ms. Two threads that measure gain nothing, because each interrupts the other. */
enum { FEW_THREADS = 2 };

static void give_back_job(void *ctx, int i)
{
	const vn_job *job = &((const job_batch *)ctx)->job[i];
	if (!job->from[0].recording)
		vn_job_give_back(job);
}

static void flush_batch(job_batch *b)
{
	vn_measuring   *m = b->of;
	const int       n = b->n_of;
	vn_error        why = { "" };
	const vn_status st = b->n > 0 ? vn_measure_many(b->job, b->n, b->threads, &why) : VN_OK;
	for (int i = 0; i < n; i++)
		note_failure(&m[i], st, &why);
	/* Numbers that cannot be read are a finding about their tensor;
	 * other failures end the comparison. */
	for (int i = 0; i < b->n; i++)
		if (vn_status_ends_job(b->job[i].st))
			note_failure(b->p[i].of, b->job[i].st, &b->job[i].why);
	for (int i = 0; i < b->n; i++) {
		const pending_job *p = &b->p[i];
		const vn_job      *job = &b->job[i];
		if (job->st)
			note_unread(p->of, p->point, &job->why);
		else if (!p->of->st)
			p->of->batch.done(p->point, &job->m);
		for (int side = 0; side < 2; side++) {
			const vn_digest *found = &b->job[side == 0 && p->like >= 0 ? p->like : i].found[side];
			if (*found->hex)
				vn_recording_vouch(p->from[side], p->entry[side], found);
		}
	}
	if (b->threads > FEW_THREADS)
		vn_team_each(b->threads, b->n, give_back_job, b);
	for (int i = 0; i < b->n; i++)
		release_pair(&b->p[i]);
	for (int i = 0; i < n; i++) {
		vn_recording_forget(m[i].o->ref);
		vn_recording_forget(m[i].batch.other);
	}
	vn_progress_at(&b->bar, (b->past += b->bytes) / 1000000);
	b->n = 0;
	b->bytes = b->heavy = 0;
}

static int64_t bytes_in(const vn_recording *r, int entry)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	return vn_shape_count(&e->shape) * (int64_t)vn_dtype_size(e->dtype);
}

static int64_t bytes_of(const pending_job *p)
{
	return bytes_in(p->from[0], p->entry[0]) + bytes_in(p->from[1], p->entry[1]);
}

static bool are_mapped(const pending_job *p)
{
	return vn_recording_mapped(p->from[0], p->entry[0]) && vn_recording_mapped(p->from[1], p->entry[1]);
}

/* Whether the job must be read in parts because a file does not store the numbers in the order of
 * measurement: token by token, each with all its numbers. */
static bool in_parts(const pending_job *p)
{
	const vn_entry *e = vn_recording_entry(p->from[0], p->entry[0]);
	const bool    pieces = vn_derive_in_pieces(p->from[0], p->entry[0]) || vn_derive_in_pieces(p->from[1], p->entry[1]);
	/* One thread would gather such a tensor whole. Scores in parts are read twice. */
	const int64_t most = pieces && !p->point->scores ? PIECES_BYTES : WHOLE_BYTES;
	if (bytes_in(p->from[0], p->entry[0]) <= most && bytes_in(p->from[1], p->entry[1]) <= most)
		return false;
	return vn_token_axis(vn_entry_axes(e), e->shape.rank) > 0 || !are_mapped(p);
}

static vn_status load_pair(const pending_job *p, vn_job *job, vn_error *why)
{
	const vn_entry *e[2] = { vn_recording_entry(p->from[0], p->entry[0]), vn_recording_entry(p->from[1], p->entry[1]) };
	const vn_point_info *point = vn_entry_point(e[0]);
	const bool           parts = in_parts(p);
	vn_status            st = VN_OK;
	*job = (vn_job) { .ref = { .dtype = e[0]->dtype, .shape = e[0]->shape },
		              .cand = { .dtype = e[1]->dtype, .shape = e[1]->shape },
		              .axes = vn_entry_axes(e[0]),
		              .scores = p->point->scores,
		              .masks = point && point == vn_point_get(VN_POINT_ATTN_SCORES),
		              .bits = p->of->bits,
		              .mapped = true };
	for (int side = 0; side < 2 && !st; side++) {
		vn_tensor *t = side ? &job->cand : &job->ref;
		if (parts) {
			job->from[side].recording = p->from[side];
			job->from[side].entry = p->entry[side];
			st = vn_recording_fetch(p->from[side], p->entry[side], why);
		} else
			st = vn_recording_lend(p->from[side], p->entry[side], &t->data, &job->digest[side], why);
	}
	return st;
}

/* Bytes of a job that count as memory, now or when it is read. */
static int64_t job_bytes(const pending_job *p, const vn_job *job)
{
	const int64_t bytes = bytes_of(p);
	const int     axis = vn_token_axis(job->axes, job->ref.shape.rank);
	return (are_mapped(p) && bytes >= VN_GIVES_BACK ? bytes / 8 : bytes) +
	       (axis >= 0 ? TOKEN_BYTES * job->ref.shape.dim[axis] : 0);
}

/* Total for the progress line, in bytes, because checkpoint sizes differ by
 * factors of thousands. */
static int64_t all_bytes(const vn_measuring *m, int n)
{
	int64_t sum = 0;
	for (int k = 0; k < n; k++)
		for (int i = 0; i < m[k].all->n; i++) {
			const int entry = m[k].batch.entry(m[k].o, &m[k].all->of[i]);
			if (entry >= 0)
				sum += bytes_in(m[k].o->ref, m[k].all->of[i].ref) + bytes_in(m[k].batch.other, entry);
		}
	return sum;
}

/* Adds a job. like: a job with the same reference bytes to share, unless either is read in parts;
 * -1: none. */
static void add_pair(job_batch *b, vn_measuring *of, vn_checkpoint *point, int entry, int like)
{
	vn_error        why = { "" };
	vn_job         *job = &b->job[b->n];
	pending_job     p = { of, point, { of->o->ref, of->batch.other }, { point->ref, entry }, -1 };
	const vn_status read = load_pair(&p, job, &why);
	if (read) {
		/* Measure the pending jobs first: a tensor may have two names, and they may need what
		 * is released below. */
		flush_batch(b);
		release_pair(&p);
		if (vn_status_ends_job(read))
			note_failure(of, read, &why);
		else
			note_unread(of, point, &why);
		return;
	}
	if (like >= 0 && job->ref.data && b->job[like].ref.data) {
		job->ref.data = b->job[like].ref.data;
		job->digest[0] = false;
		p.like = like;
	}
	b->p[b->n] = p;
	b->bytes += bytes_of(&p);
	b->heavy += job_bytes(&p, job);
	b->n++;
}

/* Moves to the next checkpoint, from *at on, that has an entry to measure; returns that,
 * or -1 at the end. */
static int next_entry(const vn_measuring *m, int *at)
{
	for (; !m->st && *at < m->all->n; ++*at) {
		const int entry = m->batch.entry(m->o, &m->all->of[*at]);
		if (entry >= 0)
			return entry;
	}
	return -1;
}

/* Is a comparison's next checkpoint before the other's? Both are in execution order. */
static bool sorts_before(const vn_checkpoint *p, const vn_checkpoint *q)
{
	return p->step != q->step ? p->step < q->step : p->order < q->order;
}

/* The job whose reference the next one may share: `like`, unless it is read in parts or
 * measured; else the last. */
static int find_sharer(const job_batch *b, int like)
{
	return b->n > 0 && like >= 0 && b->job[like].ref.data ? like : b->n - 1;
}

/* Adds the next checkpoint, and that of each other comparison with the same reference.
 * Returns false at the end. */
static bool add_next(job_batch *b, int *at)
{
	vn_measuring *m = b->of;
	const int     n = b->n_of;
	int           first = -1, like = -1, entry = -1;
	for (int k = 0; k < n; k++) {
		const int e = next_entry(&m[k], &at[k]);
		if (e >= 0 && (first < 0 || sorts_before(&m[k].all->of[at[k]], &m[first].all->of[at[first]]))) {
			first = k;
			entry = e;
		}
	}
	if (first < 0)
		return false;
	vn_checkpoint *p = &m[first].all->of[at[first]++];
	add_pair(b, &m[first], p, entry, like);
	like = find_sharer(b, like);
	for (int k = first + 1; k < n; k++) {
		if ((entry = next_entry(&m[k], &at[k])) < 0)
			continue;
		vn_checkpoint *q = &m[k].all->of[at[k]];
		if (!vn_recording_same_bytes(m[first].o->ref, p->ref, m[k].o->ref, q->ref))
			continue;
		at[k]++;
		add_pair(b, &m[k], q, entry, like);
		like = find_sharer(b, like);
	}
	return true;
}

/* The bytes of a batch. */
static int64_t most_of(int threads)
{
	const int64_t most = (int64_t)EACH_BYTES * vn_team_now(threads);
	return most > BATCH_BYTES ? most : BATCH_BYTES;
}

void vn_measure_together(vn_measuring *m, int n)
{
	job_batch b = { .of = m,
		            .n_of = n,
		            .job = vn_alloc((size_t)(BATCH_JOBS + n), sizeof *b.job),
		            .p = vn_alloc((size_t)(BATCH_JOBS + n), sizeof *b.p),
		            .threads = n > 0 && m->o->request.options->threads ? m->o->request.options->threads
		                                                               : vn_team_size() };
	int      *at = vn_alloc_zero((size_t)n, sizeof *at);

	for (int i = 0; i < n; i++)
		m[i].bits = m[i].o->request.limits && vn_limits_mention(m[i].o->request.limits, VN_M_DIFFERING);
	b.most = most_of(b.threads);
	vn_progress_start(&b.bar, "megabyte", all_bytes(m, n) / 1000000);
	while (add_next(&b, at))
		if (b.n >= BATCH_JOBS || b.heavy >= b.most) {
			flush_batch(&b);
			b.most = most_of(b.threads);
		}
	flush_batch(&b);
	vn_progress_stop(&b.bar);
	VN_FREE(at, b.job, b.p);
}

vn_status vn_batch_measure(const vn_opened *o, vn_checkpoints *all, const vn_batch *b, vn_error *err)
{
	vn_measuring m = { .o = o, .all = all, .batch = *b };
	vn_measure_together(&m, 1);
	if (m.st && err)
		*err = m.why;
	return m.st;
}

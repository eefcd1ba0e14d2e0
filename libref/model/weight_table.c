/* weight_table.c: see weight_table.h.
 *
 * A thread takes a whole weight, so that it computes the digest and the sums of numbers that are in
 * its cache. A digest is computed from the first byte to the last. So of a weight that is much of
 * the model, such as an embedding, one thread computes the digest and others the sums, part by
 * part; the sums of blocks are added in their order. */
#include "libref/model/weight_table.h"

#include "libref/base/signals.h"
#include "libref/base/trouble.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = VN_STATS_BLOCK, PART = 4 * PIECE, STACK = 256 * 1024 };

size_t vn_weight_table_least = 4 << 20;

/* A unit of work: a whole weight, the digest of one, or the sums of a part of one. */
typedef enum weight_task { WHOLE, DIGEST, SUMS } weight_task;

typedef struct unit {
	weight_task task;
	int         weight;
	size_t      all, from, count; /* elements: of the weight, and of this unit */
} unit;

struct vn_weight_table {
	const vn_model *m;
	vn_weight_row  *rows;
	unit           *unit;
	int             n, n_threads;
	bool            stats; /* wanted */
	vn_stats_sum  **block; /* (n_weights): the sums of each block of a divided weight; NULL: not divided */
	atomic_int      taken;
	atomic_bool     over;
	pthread_t      *thread;
};

static size_t count_of(const vn_tensor *w)
{
	return (size_t)vn_shape_count(&w->shape);
}

static const unsigned char *number_at(const vn_tensor *w, size_t i)
{
	return (const unsigned char *)w->data + vn_dtype_bytes(w->dtype, i);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Fills the row of weight k, piece by piece, so that memory is read once. over: NULL, or set once
 * the result is not wanted any more. */
static void read_weight(vn_weight_row *row, const vn_model *m, int k, bool sums, const atomic_bool *over)
{
	void           *room;
	const vn_tensor own = vn_model_read(m, k, &room), *w = &own;
	const size_t    count = count_of(w);
	vn_digester    *d = vn_digester_create();
	vn_stats_sum    s = { 0 };

	for (size_t i = 0; i < count && !(over && *over); i += PIECE) {
		const size_t n = smaller(count - i, PIECE);
		if (d)
			vn_digester_add(d, number_at(w, i), vn_dtype_bytes(w->dtype, n));
		if (sums)
			vn_stats_add(&s, number_at(w, i), w->dtype, n);
	}
	row->digest = d ? vn_digester_finish(d) : vn_digest_of(w->data, vn_dtype_bytes(w->dtype, count));
	if (sums)
		row->stats = vn_stats_finish(&s);
	vn_model_release(m, k);
	free(room);
}

static void sum_part(vn_weight_table *t, const unit *u)
{
	const vn_tensor *w = &vn_model_weights(t->m)[u->weight];

	for (size_t i = u->from; i < u->from + u->count && !t->over; i += PIECE)
		vn_stats_add(&t->block[u->weight][i / PIECE], number_at(w, i), w->dtype,
		             smaller(u->from + u->count - i, PIECE));
}

static void *run_worker(void *table)
{
	vn_weight_table *t = table;

	for (int i; !t->over && (i = atomic_fetch_add(&t->taken, 1)) < t->n;) {
		const unit *u = &t->unit[i];
		if (u->task == SUMS)
			sum_part(t, u);
		else
			read_weight(&t->rows[u->weight], t->m, u->weight, t->stats && u->task == WHOLE, &t->over);
	}
	return NULL;
}

static void fill_names(const vn_model *m, vn_weight_row *rows)
{
	for (int i = 0; i < vn_model_plan(m)->n_weights; i++) {
		const vn_tensor *w = &vn_model_weights(m)[i];
		rows[i] = (vn_weight_row) { .name = vn_model_weight_name(m, i), .dtype = w->dtype, .shape = w->shape };
	}
}

static size_t parts_of(size_t count)
{
	return (count + PART - 1) / PART;
}

static bool is_divided(const vn_weight_table *t, const vn_tensor *w, size_t most)
{
	return t->stats && w->data && count_of(w) > most;
}

/* By weight: the largest take longest, and begun last, one would be alone at the end. A digest and
 * the sums of the same weight follow each other, while it is in memory. */
static int larger_first(const void *a, const void *b)
{
	const unit *x = a, *y = b;

	return x->all != y->all         ? (x->all < y->all) - (x->all > y->all)
	       : x->weight != y->weight ? x->weight - y->weight
	       : x->task != y->task     ? (x->task > y->task) - (x->task < y->task)
	                                : (x->from > y->from) - (x->from < y->from);
}

/* Divides a weight of more than half of a thread's share, if its numbers are summed. */
static bool divide_work(vn_weight_table *t, int threads)
{
	const vn_tensor *w = vn_model_weights(t->m);
	const int        n = vn_model_plan(t->m)->n_weights;
	size_t           all = 0, units = 0;

	for (int i = 0; i < n; i++)
		all += count_of(&w[i]);
	const size_t share = threads > 1 ? all / ((size_t)threads * 2) : all,
				 most = share > vn_weight_table_least ? share : vn_weight_table_least;
	for (int i = 0; i < n; i++)
		units += is_divided(t, &w[i], most) ? 1 + parts_of(count_of(&w[i])) : 1;
	t->unit = malloc((units + 1) * sizeof *t->unit);
	t->block = calloc((size_t)n + 1, sizeof *t->block);
	if (!t->unit || !t->block)
		return false;
	for (int i = 0; i < n; i++) {
		const size_t count = count_of(&w[i]);
		const bool   divided = is_divided(t, &w[i], most);
		t->unit[t->n++] = (unit) { divided ? DIGEST : WHOLE, i, count, 0, count };
		if (!divided)
			continue;
		if (!(t->block[i] = calloc((count + PIECE - 1) / PIECE, sizeof **t->block)))
			return false;
		for (size_t from = 0; from < count; from += PART)
			t->unit[t->n++] = (unit) { SUMS, i, count, from, smaller(count - from, PART) };
	}
	qsort(t->unit, (size_t)t->n, sizeof *t->unit, larger_first);
	return true;
}

static void free_table(vn_weight_table *t)
{
	for (int i = 0; t->block && i < vn_model_plan(t->m)->n_weights; i++)
		free(t->block[i]);
	VN_FREE(t->block, t->unit, t->thread, t);
}

/* NULL: no memory. */
static vn_weight_table *create_table(const vn_model *m, int threads, bool stats, vn_weight_row *rows)
{
	vn_trouble_spare(true); /* without it, or with fewer threads, the rows take longer */
	vn_weight_table *t = calloc(1, sizeof *t);
	if (t) {
		t->m = m;
		t->rows = rows;
		t->stats = stats;
	}
	if (t && (!(t->thread = calloc((size_t)threads, sizeof *t->thread)) || !divide_work(t, threads))) {
		free_table(t);
		t = NULL;
	}
	vn_trouble_spare(false);
	if (t)
		fill_names(m, rows);
	return t;
}

static int threads_of(int threads)
{
	return threads > 0 ? threads : omp_get_num_procs();
}

vn_weight_table *vn_weight_table_start(const vn_model *m, int threads, vn_weight_row *rows)
{
	const int        most = threads_of(threads);
	vn_weight_table *t = create_table(m, most, true, rows);
	pthread_attr_t   small;
	sigset_t         all, before;

	if (!t)
		return NULL;
	/* The new threads block all signals, so that older threads handle them. */
	vn_signals_of_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	while (t->n_threads < most && t->n_threads < t->n &&
	       pthread_create(&t->thread[t->n_threads], &small, run_worker, t) == 0)
		t->n_threads++;
	pthread_attr_destroy(&small);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return t;
}

void vn_weight_table_finish(vn_weight_table *t, bool drop)
{
	t->over = drop;
	if (t->n_threads == 0)
		run_worker(t); /* unless all is done */
	for (int i = 0; i < t->n_threads; i++)
		pthread_join(t->thread[i], NULL);
	for (int i = 0; !drop && i < vn_model_plan(t->m)->n_weights; i++)
		if (t->block[i]) {
			const size_t count = count_of(&vn_model_weights(t->m)[i]);
			vn_stats_sum s = { 0 };
			for (size_t k = 0; k < (count + PIECE - 1) / PIECE; k++)
				vn_stats_join(&s, &t->block[i][k]);
			t->rows[i].stats = vn_stats_finish(&s);
		}
	free_table(t);
}

/* Uses OpenMP's threads, which the CPU engine that runs next needs anyway. */
static void make_table(const vn_model *m, int threads, bool stats, vn_weight_row *rows)
{
	const int        most = threads_of(threads);
	vn_weight_table *t = create_table(m, most, stats, rows);

	if (t) {
#pragma omp parallel num_threads(most)
		run_worker(t);
		vn_weight_table_finish(t, false);
		return;
	}
	fill_names(m, rows);
	for (int i = 0; i < vn_model_plan(m)->n_weights; i++)
		read_weight(&rows[i], m, i, stats, NULL);
}

void vn_model_table(const vn_model *m, int threads, vn_weight_row *rows)
{
	make_table(m, threads, true, rows);
}

void vn_model_digests(const vn_model *m, int threads, vn_weight_row *rows)
{
	make_table(m, threads, false, rows);
}

/* compare_each.c: several comparisons, some at a time.
 *
 * They are opened and measured together in this process, which reads a shared reference once. The
 * chapters after measuring use one processor for much of their time, so they run in workers, one
 * for each comparison. A worker that ends without a result costs time only: its comparison is ended
 * here.
 */
#include "compare/compare_line.h"

#include "compare/many/many.h"
#include "compare/metrics/team.h"

#include "libref/base/alloc.h"
#include "libref/base/crew.h"
#include "libref/base/progress.h"
#include "libref/base/trouble.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = VN_COMPARE_TOGETHER }; /* bounds memory: each holds the data of one comparison */

/* One comparison that is being made. */
typedef struct running {
	const vn_compare_line *line;
	vn_comparison          c;
	char                   chosen[128], again[VN_SHELL_LINE];
	vn_status              st; /* so far */
	vn_error               why;
	FILE                  *file; /* for what its worker finds */
} running;

/* Those that are made at the same time. */
typedef struct pair_group {
	running   r[AT_ONCE];
	vn_many  *m;
	int       threads; /* of a worker */
	vn_status st;      /* of adding a result, in this process */
} pair_group;

/* ---- together ------------------------------------------------------------------------ */

/* Opens the files of all comparisons at once, if each has one candidate file. If that fails,
 * nothing is opened: each comparison then opens its own files and reports what is wrong with
 * them. */
static void open_files(const vn_compare_line *k, int n, vn_recording *opened[AT_ONCE][2])
{
	const char *path[2 * AT_ONCE];
	vn_error    why;

	for (int i = 0; i < n; i++) {
		if (k[i].absent || k[i].n_ranks > 1)
			return;
		path[2 * i] = k[i].ref;
		path[2 * i + 1] = k[i].cand;
	}
	vn_trouble_spare(true);
	if (vn_recording_open_all(path, 2 * n, *opened, &why))
		memset(opened, 0, AT_ONCE * sizeof *opened);
	vn_trouble_spare(false);
}

/* Opens and matches one comparison. */
static void begin_pair(running *r, const vn_compare_line *k, vn_recording *opened[2])
{
	*r = (running) { .line = k };
	r->c.opened.request.options = &r->line->how.o;
	vn_compare_again(k, r->again);
	/* no option can bring back an absent file */
	r->c.opened.request.again = *r->again && !k->absent ? r->again : NULL;
	r->c.opened.request.unexplained = true; /* until formats are known: judge_pair */
	r->st = vn_compare_check_itself(k, &r->c.result, &r->why);
	if (r->st) {
		vn_recording_close(opened[0]);
		vn_recording_close(opened[1]);
	} else if (!k->absent && !(r->st = vn_compare_open(k, &r->c, opened, r->chosen, sizeof r->chosen, &r->why))) {
		r->st = vn_compare_begin(&r->c, &r->why);
	}
}

/* Measures all that have not failed. */
static void measure_pairs(running *r, int n)
{
	vn_comparison *c[AT_ONCE] = { NULL };
	running       *of[AT_ONCE];
	vn_status      st[AT_ONCE];
	vn_error       why[AT_ONCE];
	int            some = 0;

	for (int i = 0; i < n; i++)
		if (!r[i].st && !r[i].line->absent) {
			of[some] = &r[i];
			c[some++] = &r[i].c;
		}
	vn_compare_measure(c, some, st, why);
	for (int i = 0; i < some; i++) {
		of[i]->st = st[i];
		of[i]->why = why[i];
	}
}

/* ---- each by itself ------------------------------------------------------------------- */

/* A comparison that has ended, with this status, and why. */
typedef struct ended_pair {
	vn_comparison  *c;
	const char     *chosen;
	vn_status       st;
	const vn_error *why;
} ended_pair;

/* As vn_many_reduce. */
static vn_status reduce_pair(const ended_pair *x, unsigned keep, FILE *file, json_t **head, vn_error *err)
{
	vn_document doc = { .n = 0 };

	if (x->st)
		return vn_many_trouble(x->st, x->why, &x->c->result.remarks.refusals, head, err);
	vn_status st = vn_document_of(&x->c->opened, &x->c->result, keep ? vn_report_by_name("json")->tells : 0, x->chosen,
	                              &doc, err);
	st = st ? st : vn_many_reduce(&doc, keep, file, head, err);
	vn_document_finish(&doc);
	return st;
}

vn_status vn_compare_add(vn_many *m, const char *path, vn_comparison *c, const char *chosen, vn_status ended,
                         const vn_error *why, vn_error *err)
{
	const ended_pair x = { c, chosen, ended, why };
	FILE            *file = vn_many_open(err);
	json_t          *head;

	if (!file)
		return VN_ERR_IO;
	const vn_status st = reduce_pair(&x, m->keep, file, &head, err);
	if (!st)
		return vn_many_add(m, path, head, file, err);
	fclose(file);
	return st;
}

static void judge_pair(running *r)
{
	if (!r->st && r->line->absent)
		r->st = vn_compare_judge(r->line, &r->c, r->chosen, sizeof r->chosen, &r->why);
	else if (!r->st && !(r->st = vn_compare_end(&r->c, &r->why)))
		r->st = vn_compare_infer(r->line, &r->c, r->chosen, sizeof r->chosen, &r->why);
}

/* In a worker. The words of the answer are the head; none: it must be done again. */
static void judge_there(void *context, int i, vn_cluster_answer *a)
{
	pair_group     *b = context;
	running        *r = &b->r[i];
	vn_compare_line mine = *r->line;
	const unsigned  mark = vn_trouble_mark();
	json_t         *head = NULL;
	vn_error        err;

	mine.how.o.threads = b->threads;
	r->line = &mine;
	r->c.opened.request.options = &mine.how.o;
	judge_pair(r);
	const ended_pair x = { &r->c, r->chosen, r->st, &r->why };
	if (!reduce_pair(&x, b->m->keep, r->file, &head, &err))
		a->text[VN_CLUSTER_WORDS] = vn_json_dump(head, JSON_COMPACT);
	a->status = !head || vn_trouble_since(mark, mine.cand, &err);
	json_decref(head);
	vn_comparison_close(&r->c);
}

static vn_status take_head(void *context, int i, vn_cluster_answer *a, vn_error *err)
{
	pair_group *b = context;
	running    *r = &b->r[i];
	json_t     *head = a->status ? NULL : vn_json_parse(a->text[VN_CLUSTER_WORDS], 0);

	if (!head)
		return vn_fail(err, VN_ERR_NOMEM, "a worker has no result");
	vn_trouble_spare(false);
	b->st = vn_many_add(b->m, r->line->cand, head, r->file, err);
	vn_trouble_spare(true);
	r->file = NULL;
	return b->st;
}

static const char *name_pair(void *context, int i)
{
	return ((const pair_group *)context)->r[i].line->cand;
}

static void unmap_weights(const vn_opened *o)
{
	vn_recording *const all[] = { o->ref, o->cand, o->floor };
	for (int i = 0; i < 3; i++)
		if (all[i])
			vn_recording_unmap(all[i]);
}

/* Ends the comparisons in workers. Those that are not added afterwards are to be ended here. */
static void share_pairs(pair_group *b, int n, int workers, vn_error *err)
{
	const vn_cluster_job job = { .n = n, .piece = judge_there, .done = take_head, .name = name_pair, .context = b };
	bool                 good = true;

	for (int i = 0; i < n; i++) {
		unmap_weights(&b->r[i].c.opened);
		good = good && (b->r[i].file = vn_many_open(err));
	}
	vn_trouble_spare(true);
	if (good)
		vn_crew_share(&job, workers, err);
	vn_trouble_spare(false);
}

/* Makes at most AT_ONCE comparisons. */
static vn_status compare_some(const vn_compare_line *k, int n, int threads, vn_many *m, vn_progress *bar, vn_error *err)
{
	/* fork does not copy the threads started here: from now on, this process does all */
	static bool   busy;
	vn_recording *opened[AT_ONCE][2] = { { NULL } };
	pair_group   *b = vn_alloc_zero(1, sizeof *b);
	const int     workers = n < threads ? n : threads, before = m->n;

	b->m = m;
	b->threads = threads / workers;
	if (n > 1)
		open_files(k, n, opened);
	for (int i = 0; i < n; i++)
		begin_pair(&b->r[i], &k[i], opened[i]);
	measure_pairs(b->r, n);
	if (!busy && workers > 1)
		share_pairs(b, n, workers, err);
	for (int i = m->n - before; i < n && !b->st; i++) {
		running *r = &b->r[i];
		busy = true;
		judge_pair(r);
		b->st = vn_compare_add(m, r->line->cand, &r->c, r->chosen, r->st, &r->why, err);
		vn_progress_at(bar, m->n);
	}
	for (int i = 0; i < n; i++) {
		if (b->r[i].file)
			fclose(b->r[i].file);
		vn_comparison_close(&b->r[i].c);
	}
	const vn_status st = b->st;
	free(b);
	return st;
}

vn_status vn_compare_each(const vn_compare_line *line, int n, vn_many *m, vn_error *err)
{
	const int   all = line->how.o.threads ? line->how.o.threads : vn_team_size();
	vn_status   st = VN_OK;
	vn_progress bar = { 0 };

	vn_progress_start(&bar, "comparison", n);
	for (int i = 0; i < n && !st; i += AT_ONCE)
		st = compare_some(&line[i], n - i < AT_ONCE ? n - i : AT_ONCE, all, m, &bar, err);
	vn_progress_stop(&bar);
	return st;
}

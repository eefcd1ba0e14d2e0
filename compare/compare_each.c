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
	running     *r; /* (AT_ONCE) */
	vn_many     *m;
	vn_progress *bar;
	int          threads; /* of a worker */
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
	VN_ENDS(vn_document_finish) vn_document doc = { .n = 0 };

	if (x->st)
		return vn_many_trouble(x->st, x->why, &x->c->result.remarks.refusals, head, err);
	vn_status st = vn_document_of(&x->c->opened, &x->c->result, keep ? vn_report_by_name("json")->tells : 0, x->chosen,
	                              &doc, err);
	return st ? st : vn_many_reduce(&doc, keep, file, head, err);
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

static bool busy; /* this process has threads, which fork does not copy: it does all that is left */

/* Judges one, in a worker or here. The words of the answer are the head, or why there is none. */
static void judge_piece(void *context, int i, vn_cluster_answer *a)
{
	const pair_group *b = context;
	running          *r = &b->r[i];
	vn_compare_line   mine = *r->line;
	json_t           *head = NULL;
	vn_error          err;

	busy = true;
	rewind(r->file); /* a worker that left it to this process may have written */
	mine.how.o.threads = b->threads;
	r->c.opened.request.options = &mine.how.o;
	if (!r->st && mine.absent)
		r->st = vn_compare_judge(&mine, &r->c, r->chosen, sizeof r->chosen, &r->why);
	else if (!r->st && !(r->st = vn_compare_end(&r->c, &r->why)))
		r->st = vn_compare_infer(&mine, &r->c, r->chosen, sizeof r->chosen, &r->why);
	const ended_pair x = { &r->c, r->chosen, r->st, &r->why };
	a->status = (int)reduce_pair(&x, b->m->keep, r->file, &head, &err);
	a->text[VN_CLUSTER_WORDS] = a->status ? strdup(err.text) : vn_json_dump(head, JSON_COMPACT);
	json_decref(head);
	vn_comparison_close(&r->c);
	r->c = (vn_comparison) { 0 };
}

static vn_status add_answer(void *context, int i, vn_cluster_answer *a, vn_error *err)
{
	pair_group *b = context;
	running    *r = &b->r[i];

	if (a->status)
		return vn_fail(err, (vn_status)a->status, "%s", a->text[VN_CLUSTER_WORDS]);
	const vn_status st = vn_many_add(b->m, r->line->cand, vn_json_parse(a->text[VN_CLUSTER_WORDS], 0), r->file, err);
	r->file = NULL;
	vn_progress_at(b->bar, b->m->n);
	return st;
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

/* Makes at most AT_ONCE comparisons. */
static vn_status compare_some(const vn_compare_line *k, int n, int threads, vn_many *m, vn_progress *bar, vn_error *err)
{
	vn_recording        *opened[AT_ONCE][2] = { { NULL } };
	pair_group           group = { .r = vn_alloc_zero(AT_ONCE, sizeof *group.r), .m = m, .bar = bar }, *b = &group;
	const int            workers = busy ? 1 : n < threads ? n : threads;
	const vn_cluster_job job = {
		.n = n, .piece = judge_piece, .done = add_answer, .name = name_pair, .context = b, .again = true
	};
	vn_status st = VN_OK;

	b->threads = threads / workers;
	if (n > 1)
		open_files(k, n, opened);
	for (int i = 0; i < n; i++)
		begin_pair(&b->r[i], &k[i], opened[i]);
	measure_pairs(b->r, n);
	for (int i = 0; i < n && !st; i++) {
		if (workers > 1)
			unmap_weights(&b->r[i].c.opened);
		st = (b->r[i].file = vn_many_open(err)) ? VN_OK : VN_ERR_IO;
	}
	st = st ? st : vn_crew_share(&job, workers, err);
	for (int i = 0; i < n; i++) {
		if (b->r[i].file)
			fclose(b->r[i].file);
		vn_comparison_close(&b->r[i].c);
	}
	free(b->r);
	return st;
}

vn_status vn_compare_each(const vn_compare_line *line, int n, vn_many *m, vn_error *err)
{
	const int                             all = line->how.o.threads ? line->how.o.threads : vn_team_size();
	vn_status                             st = VN_OK;
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };

	vn_progress_start(&bar, "comparison", n);
	for (int i = 0; i < n && !st; i += AT_ONCE)
		st = compare_some(&line[i], n - i < AT_ONCE ? n - i : AT_ONCE, all, m, &bar, err);
	return st;
}

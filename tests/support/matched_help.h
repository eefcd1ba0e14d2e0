/* matched_help.h: matches two recordings of the folder of folder.h and, if asked, measures what was
 * matched. Shared by suites of compare/match. */
#pragma once

#include "compare/match/batch.h"
#include "compare/match/match.h"
#include "tests/support/match_help.h"

typedef struct matched {
	vn_comparison      c;
	vn_compare_options o;
	vn_status          st;
	vn_error           err;
} matched;

/* Matches the two recordings; finish with end_matched. */
static inline void match_files(matched *m, const char *ref, const char *cand)
{
	m->c = (vn_comparison) { .opened.request.options = &m->o };
	m->err.text[0] = 0;
	CU_ASSERT_EQUAL_FATAL(vn_limits_parse("t.yaml", "version: 1\n", 11, &m->c.opened.request.limits, &m->err), VN_OK);
	m->c.opened.ref = opened(ref);
	m->c.opened.cand = opened(cand);
	m->c.opened.plan = vn_recording_plan(m->c.opened.ref);
	m->st = vn_match(&m->c.opened, &m->c.result.checkpoints, &m->c.result.remarks.notes, &m->err);
}

static inline int matched_entry(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
	return p->ref < 0 ? -1 : p->cand;
}

static inline void keep_measured(vn_checkpoint *p, const vn_measured *m)
{
	p->m = *m;
}

static inline void refuse_unread(vn_checkpoint *p, const char *why)
{
	fprintf(stderr, "%s: %s\n", p->name, why);
	CU_FAIL("a tensor cannot be read");
}

/* Measures every pair. Call after match_files. */
static inline void measure_matched(matched *m)
{
	const vn_batch b = { m->c.opened.cand, matched_entry, keep_measured, refuse_unread };
	m->st = vn_batch_measure(&m->c.opened, &m->c.result.checkpoints, &b, &m->err);
}

static inline void end_matched(matched *m)
{
	close_sides(&m->c);
}

static inline const vn_checkpoint *matched_as(const matched *m, const char *name)
{
	for (int i = 0; i < m->c.result.checkpoints.n; i++)
		if (strcmp(m->c.result.checkpoints.of[i].name, name) == 0)
			return &m->c.result.checkpoints.of[i];
	CU_FAIL_FATAL("no such checkpoint");
	return NULL;
}

/* case.h: the comparison of two recordings of the folder of folder.h. */
#pragma once

#include "compare/chapters/compare.h"
#include "tests/support/folder.h"

#include <CUnit/Basic.h>
#include <string.h>

typedef struct trial {
	vn_comparison      c;
	vn_compare_options o;
	vn_status          st;
	vn_error           err;
} trial;

/* Files of the folder, floor or NULL; limits: the text of a limits file. Then finish(t). */
static inline void judge(trial *t, const char *ref, const char *cand, const char *floor_file, const char *limits)
{
	t->c = (vn_comparison) { .opened.request.options = &t->o };
	t->err.text[0] = 0;
	t->st = vn_limits_parse("t.yaml", limits, strlen(limits), &t->c.opened.request.limits, &t->err);
	if (!t->st)
		t->st = vn_recording_open(at(ref), &t->c.opened.ref, &t->err);
	if (!t->st)
		t->st = vn_recording_open(at(cand), &t->c.opened.cand, &t->err);
	if (!t->st && floor_file)
		t->st = vn_recording_open(at(floor_file), &t->c.opened.floor, &t->err);
	if (!t->st)
		t->st = vn_compare(&t->c, &t->err);
}

static inline void finish(trial *t)
{
	vn_comparison_close(&t->c);
}

static inline int failing(const trial *t)
{
	int n = 0;
	for (int i = 0; i < t->c.result.checkpoints.n; i++)
		n += t->c.result.checkpoints.of[i].fails;
	return n;
}

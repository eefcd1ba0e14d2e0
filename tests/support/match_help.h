/* match_help.h: writes small recordings, tensor by tensor, and opens them for a comparison. Shared
 * by the suites of compare/match. */
#pragma once

#include "capture/store/store.h"
#include "compare/comparison/comparison.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

/* The token with a different id in recordings begun from now on; -1: none. */
static int64_t other_id = -1;

/* A recording under way, of n tokens (ids from 5 on) at positions from `from` on. */
static inline vn_store *begin_recording(const char *name, int64_t n, int32_t from, const vn_facts *more)
{
	int32_t   ids[64], positions[64];
	vn_store *s = NULL;
	vn_facts  f = more ? *more : (vn_facts) { 0 };
	vn_error  err = { "" };

	for (int32_t i = 0; i < n; i++) {
		ids[i] = i == other_id ? 50 : 5 + i;
		positions[i] = from + i;
	}
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f32");
	if (vn_store_create(at(name), true, NULL, &s, &err) || vn_store_run(s, &f, ids, positions, n, &err))
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return s;
}

static inline void begin_step(vn_store *s, int number, int64_t position, int64_t tokens, int64_t first_row,
                              int64_t rows)
{
	CU_ASSERT_EQUAL_FATAL(vn_store_step(s, &(vn_step) { number, position, tokens, first_row, rows }, NULL), VN_OK);
}

/* rows x columns numbers; axes "": those of its point. */
static inline void put_tensor(vn_store *s, const char *name, const char *axes, int64_t rows, int64_t columns,
                              const float *x)
{
	const vn_shape  shape = { 2, { rows, columns } };
	vn_tensor_label l = vn_label_of_name(name);
	vn_error        err = { "" };

	if (*axes)
		snprintf(l.axes, sizeof l.axes, "%s", axes);
	if (vn_store_begin(s, &l, VN_F32, &shape, &err) || vn_store_write(s, x, (size_t)(rows * columns), &err) ||
	    vn_store_end(s, &err))
		fprintf(stderr, "%s: %s\n", name, err.text);
}

static inline void commit(vn_store *s)
{
	vn_error err = { "" };
	CU_ASSERT_EQUAL_FATAL(vn_store_commit(&s, &err), VN_OK);
}

static inline vn_recording *opened(const char *name)
{
	vn_recording *r = NULL;
	vn_error      err = { "" };
	if (vn_recording_open(at(name), &r, &err))
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r;
}

/* The only line of a list; if there are several, all of them. */
static inline void one_line(const vn_lines *l, const char *want)
{
	CU_ASSERT_EQUAL(l->n, 1);
	CU_ASSERT_STRING_EQUAL(l->n ? l->line[0] : "", want);
}

/* Closes what a suite of compare/match opened, and frees what it matched. vn_comparison_close does
 * the same, but links every chapter. */
static inline void close_sides(vn_comparison *c)
{
	for (int i = 0; i < c->result.checkpoints.n; i++)
		free(c->result.checkpoints.of[i].detail);
	free(c->result.checkpoints.of);
	vn_limits_destroy(c->opened.request.limits);
	vn_lines_free(&c->result.remarks.notes);
	vn_lines_free(&c->result.remarks.warnings);
	vn_lines_free(&c->result.remarks.refusals);
	vn_recording_close(c->opened.floor);
	vn_recording_close(c->opened.cand);
	vn_recording_close(c->opened.ref);
}

/* store_help.h: a folder with one checkpoint file in it, of a small plan. */
#pragma once

#include "capture/recording/recording.h"
#include "capture/store/store.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-store-XXXXXX";
static char path[64], partial[80];

/* ---- a small plan: embed, two layers of norm and projection, a head ----------- */

enum { D = 8, H = 2, V = 11, L = 2, T = 5 };

static inline vn_plan *make_plan(void)
{
	vn_builder *b = vn_plan_begin(L, V, 64);
	vn_plan    *p = NULL;
	vn_rope     rope = { .theta = 10000, .rotary_dim = D / H };
	int         table = vn_plan_weight(b, "embed", 2, (int64_t[]) { V, D });
	int         x = vn_plan_embed(b, table, VN_POINT_EMBED);

	for (int l = 0; l < L; l++) {
		char name[32];
		vn_plan_layer(b, l);
		vn_plan_name(b, x, VN_POINT_INPUT);
		snprintf(name, sizeof name, "norm%d", l);
		int h = vn_plan_rms_norm(b, x, vn_plan_weight(b, name, 1, (int64_t[]) { D }), 1e-6, VN_POINT_ATTN_NORM);
		snprintf(name, sizeof name, "square%d", l);
		int w = vn_plan_weight(b, name, 2, (int64_t[]) { D, D });
		int q = vn_plan_rope(b, vn_plan_linear(b, h, w, -1, H, VN_POINT_Q_PROJ), &rope, VN_POINT_Q_ROPE);
		int k = vn_plan_linear(b, h, w, -1, H, VN_POINT_K_PROJ), v = vn_plan_linear(b, h, w, -1, H, VN_POINT_V_PROJ);
		int c = vn_plan_attention(b, q, k, v, 0.5, 0);
		int o = vn_plan_linear(b, c, w, -1, 0, VN_POINT_ATTN_OUT);
		vn_plan_act(b, VN_SILU, o, VN_POINT_GATE_ACT, true);
		x = vn_plan_add(b, x, o, VN_POINT_OUTPUT);
	}
	vn_plan_layer(b, -1);
	vn_plan_linear(b, x, table, -1, 0, VN_POINT_LOGITS);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	return p;
}

/* ---- helpers ---------------------------------------------------------------------- */

static const int32_t ids[] = { 1, 2, 3, 4, 5 }, positions[] = { 0, 1, 2, 3, 4 };

static inline vn_store *begin_store(const vn_plan *p, bool force)
{
	vn_store *s = NULL;
	vn_facts  f = { 0 };
	vn_error  err = { 0 };

	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f32");
	if (vn_store_create(path, force, p, &s, &err) || vn_store_run(s, &f, ids, positions, T, &err) ||
	    vn_store_step(s, &(vn_step) { 0, 0, T, 0, T }, &err))
		fprintf(stderr, "%s\n", err.text);
	return s;
}

/* T ids that are known and `more` that are not; no step yet. */
static inline vn_store *begin_decoding(const vn_plan *p, int64_t more)
{
	const size_t n = (size_t)(T + more);
	vn_store    *s = NULL;
	int32_t     *id = malloc(n * sizeof *id), *at = malloc(n * sizeof *at);
	vn_facts     f = { 0 };
	vn_error     err = { 0 };

	for (size_t i = 0; i < n; i++) {
		id[i] = i < T ? ids[i] : -1;
		at[i] = (int32_t)i;
	}
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f32");
	if (vn_store_create(path, true, p, &s, &err) || vn_store_run(s, &f, id, at, (int64_t)n, &err))
		fprintf(stderr, "%s\n", err.text);
	free(id);
	free(at);
	return s;
}

static inline vn_status put_tensor(vn_store *s, int value, vn_dtype dtype, int64_t rows, int64_t columns,
                                   const void *data, vn_error *err)
{
	vn_sink   k = vn_store_sink(s);
	vn_shape  shape = { .rank = 2, .dim = { rows, columns } };
	vn_status st;

	(void)((st = k.begin(k.ctx, value, dtype, &shape, err)) ||
	       (st = k.write(k.ctx, data, (size_t)(rows * columns), err)) || (st = k.end(k.ctx, err)));
	return st;
}

static inline vn_recording *open_file(const char *name)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };
	if (vn_recording_open(name, &r, &err))
		fprintf(stderr, "%s\n", err.text);
	return r;
}

static inline bool exists(const char *name)
{
	struct stat st;
	return stat(name, &st) == 0;
}

static inline void remove_files(void)
{
	unlink(path);
	unlink(partial);
}

/* Runs these tests. Returns the exit status of the program. */
static inline int run_store_suite(const char *name, CU_TestInfo *tests)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/run.h5", dir);
	snprintf(partial, sizeof partial, "%s.partial", path);
	const int failed = run_suite(name, tests);
	return rmdir(dir) != 0 || failed;
}

/* test_gpu_help.h: helpers of libgpu's tests: plans with random weights, a sink that keeps
 * everything, the devices to run on. */
#pragma once

#include "libgpu/device.h"
#include "libgpu/gpu.h"
#include "tests/support/kept_devices.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const vn_policy F32 = { VN_F32, VN_F32, 0, { 0 } }, F16 = { VN_F16, VN_F32, 0, { 0 } },
					   ACC16 = { VN_F16, VN_F16, 0, { 0 } };

/* Suppressions for the leak checker. Drivers and the validation layer keep memory and are unloaded
 * before the end, so a leak has no library's name. The layer is C++; our C code never calls
 * operator new. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:operator new\nleak:libstdc++\nleak:libvulkan\n";
}

/* ---- numbers ---------------------------------------------------------------- */

static uint64_t seed_ = 1;

static inline double uniform(void) /* [-1, 1) */
{
	seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
	return (double)(int64_t)(seed_ >> 11) / 4503599627370496.0 - 1.0;
}

/* The plan of a config.json. */
static inline vn_plan *plan_of(const char *text)
{
	json_t          *config = json_loads(text, 0, NULL);
	const vn_family *family;
	vn_plan         *p = NULL;
	vn_error         e;

	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	CU_ASSERT_EQUAL_FATAL(vn_family_find("c", config, &family, &e), VN_OK);
	CU_ASSERT_EQUAL_FATAL(family->plan("c", config, &p, &e), VN_OK);
	json_decref(config);
	return p;
}

/* ---- a sink that keeps what it gets -------------------------------------------- */

typedef struct kept {
	float   *x; /* as float; float16 fits exactly */
	size_t   n, room;
	int      begun, ended;
	vn_shape shape; /* of the last call */
} kept;

typedef struct keep {
	kept    *v; /* (n_values) */
	int      n, open, n_order, order[4096];
	vn_dtype dtype;
	int64_t  fail_after; /* writes until an error; -1: never */
} keep;

static inline vn_status keep_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	keep *k = ctx;
	(void)err;
	k->open = value;
	k->dtype = dtype;
	k->v[value].begun++;
	k->v[value].shape = *shape;
	if (k->n_order < (int)COUNT(k->order))
		k->order[k->n_order++] = value;
	return VN_OK;
}

static inline vn_status keep_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	keep *k = ctx;
	kept *v = &k->v[k->open];
	if (k->fail_after >= 0 && k->fail_after-- == 0)
		return vn_fail(err, VN_ERR_IO, "disk full");
	if (v->n + n > v->room) {
		v->room = 2 * (v->n + n);
		v->x = realloc(v->x, v->room * sizeof(float));
	}
	vn_to_f32(v->x + v->n, data, k->dtype, n);
	v->n += n;
	return VN_OK;
}

static inline vn_status keep_end(void *ctx, vn_error *err)
{
	keep *k = ctx;
	(void)err;
	k->v[k->open].ended++;
	return VN_OK;
}

static inline void keep_start(keep *k, const vn_plan *p)
{
	*k = (keep) { .n = p->n_values, .fail_after = -1 };
	k->v = calloc((size_t)p->n_values, sizeof *k->v);
}

/* Called between calls: tensors over keys and states start anew, tensors over tokens are appended
 * to. */
static inline void keep_next(keep *k, const vn_plan *p)
{
	for (int i = 0; i < k->n; i++)
		if (p->value[i].size[p->value[i].rank - 1] == VN_S || p->value[i].state >= 0)
			k->v[i].n = 0;
}

static inline void keep_stop(keep *k)
{
	for (int i = 0; i < k->n; i++)
		free(k->v[i].x);
	free(k->v);
	*k = (keep) { 0 };
}

static inline vn_sink keep_sink(keep *k)
{
	return (vn_sink) { .ctx = k, .begin = keep_begin, .write = keep_write, .end = keep_end };
}

/* ---- a plan with weights -------------------------------------------------------- */

typedef struct shape_of {
	int layers, D, H, G, K, F, V, window, context, rotary;
	int q_norm; /* norms of each head before rope */
} shape_of;

typedef struct model {
	vn_plan   *plan;
	vn_tensor *weight; /* (n_weights) float32, rounded to the storage format */
} model;

static inline int weight2(vn_builder *b, const char *name, int layer, int m, int n)
{
	char full[VN_NAME_MAX];
	snprintf(full, sizeof full, "%d.%s", layer, name);
	return vn_plan_weight(b, full, n ? 2 : 1, (int64_t[]) { m, n });
}

static inline vn_plan *block_plan(shape_of s)
{
	const vn_rope rope = { .type = VN_ROPE_DEFAULT, .theta = 1e4, .rotary_dim = s.rotary };
	vn_builder   *b = vn_plan_begin(s.layers, s.V, s.context);
	vn_plan      *p = NULL;
	vn_error      err = { "" };
	int           x = vn_plan_embed(b, weight2(b, "embed", 0, s.V, s.D), VN_POINT_EMBED);

	for (int l = 0; l < s.layers; l++) {
		vn_plan_layer(b, l);
		vn_plan_name(b, x, VN_POINT_INPUT);
		int h = vn_plan_rms_norm(b, x, weight2(b, "norm1", l, s.D, 0), 1e-6, VN_POINT_ATTN_NORM);
		int q = vn_plan_linear(b, h, weight2(b, "q", l, s.H * s.K, s.D), weight2(b, "qb", l, s.H * s.K, 0), s.H,
		                       VN_POINT_Q_PROJ);
		int k = vn_plan_linear(b, h, weight2(b, "k", l, s.G * s.K, s.D), weight2(b, "kb", l, s.G * s.K, 0), s.G,
		                       VN_POINT_K_PROJ);
		int v = vn_plan_linear(b, h, weight2(b, "v", l, s.G * s.K, s.D), -1, s.G, VN_POINT_V_PROJ);
		if (s.q_norm) {
			q = vn_plan_rms_norm(b, q, weight2(b, "qn", l, s.K, 0), 1e-6, VN_POINT_Q_NORM);
			k = vn_plan_rms_norm(b, k, weight2(b, "kn", l, s.K, 0), 1e-6, VN_POINT_K_NORM);
		}
		if (s.rotary) {
			q = vn_plan_rope(b, q, &rope, VN_POINT_Q_ROPE);
			k = vn_plan_rope(b, k, &rope, VN_POINT_K_ROPE);
		}
		int c = vn_plan_attention(b, q, k, v, 1.0 / sqrt(s.K), s.window);
		int o = vn_plan_linear(b, c, weight2(b, "o", l, s.D, s.H * s.K), -1, 0, VN_POINT_ATTN_OUT);
		x = vn_plan_add(b, x, o, VN_POINT_ATTN_RESIDUAL);
		h = vn_plan_rms_norm(b, x, weight2(b, "norm2", l, s.D, 0), 1e-6, VN_POINT_MLP_NORM);
		int g = vn_plan_linear(b, h, weight2(b, "g", l, s.F, s.D), -1, 0, VN_POINT_GATE_PROJ);
		int u = vn_plan_linear(b, h, weight2(b, "u", l, s.F, s.D), -1, 0, VN_POINT_UP_PROJ);
		vn_plan_act(b, VN_SILU, g, VN_POINT_GATE_ACT, true);
		int a = vn_plan_gated(b, VN_SILU, g, u, VN_POINT_MLP_ACT);
		int d = vn_plan_linear(b, a, weight2(b, "d", l, s.D, s.F), -1, 0, VN_POINT_DOWN_PROJ);
		x = vn_plan_add(b, x, d, VN_POINT_OUTPUT);
	}
	vn_plan_layer(b, -1);
	x = vn_plan_rms_norm(b, x, weight2(b, "norm", 99, s.D, 0), 1e-6, VN_POINT_FINAL_NORM);
	vn_plan_linear(b, x, weight2(b, "head", 99, s.V, s.D), -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &p, &err))
		printf("\n  plan: %s\n", err.text);
	return p;
}

static inline void model_start(model *m, vn_plan *p, vn_dtype storage)
{
	seed_ = 7;
	m->plan = p;
	m->weight = calloc((size_t)p->n_weights, sizeof *m->weight);
	for (int i = 0; i < p->n_weights; i++) {
		const vn_shape *s = &p->weight[i].shape;
		const int64_t   n = vn_shape_count(s);
		float          *x = malloc((size_t)n * sizeof *x);
		/* Products keep about the size of their input; norms are near 1. */
		const double    size = s->rank == 2 && i > 0 ? 1.7 / sqrt((double)s->dim[1]) : 1.0;
		for (int64_t k = 0; k < n; k++)
			x[k] = (float)(s->rank == 1 ? 1.0 + 0.3 * uniform() : size * uniform());
		vn_round_f32(x, storage, (size_t)n);
		m->weight[i] = (vn_tensor) { .dtype = VN_F32, .shape = *s, .data = x };
	}
}

static inline void model_stop(model *m)
{
	for (int i = 0; i < m->plan->n_weights; i++)
		vn_tensor_free(&m->weight[i]);
	free(m->weight);
	vn_plan_destroy(m->plan);
}

/* ---- devices ------------------------------------------------------------------------ */

static vn_gpu_device *devices_;
static int            n_devices_;

/* Lists suitable devices. Returns their number; prints a line if there is none. */
static inline int find_devices(void)
{
	vn_error err = { "" };
	int      n = 0, kept_ = 0;

	if (vn_gpu_devices(&devices_, &n, &err))
		printf("skipped: %s\n", err.text);
	for (int i = 0; i < n; i++) {
		if (devices_[i].missing[0])
			printf("device %d (%s) is left out, it has no %s\n", i, devices_[i].name, devices_[i].missing);
		else
			devices_[kept_++] = devices_[i];
	}
	if (kept_ == 0)
		printf("skipped: no suitable Vulkan device\n");
	for (int i = 0; i < kept_; i++)
		printf("device %d: %s\n", devices_[i].index, devices_[i].name);
	return n_devices_ = kept_;
}

/* Does a processor execute the shaders? That is slow, so such a device leaves something out, unless
 * the environment has VERNIER_TEST_ALL. */
static inline bool is_slow(int d)
{
	return strcmp(devices_[d].type, "cpu") == 0 && !getenv("VERNIER_TEST_ALL");
}

/* Asked for each of many combinations: is this one tried? Slow devices try the first of every line
 * of source that asks, half of its first four (the sequence of Thue and Morse: of two nested loops
 * over two values, both values of each), and a fourth of the others (every fourth sum of digits to
 * base 4). A line that asks for few combinations may miss values. */
#define is_tried(d) is_tried_at(d, __LINE__)
static inline bool is_tried_at(int d, int line)
{
	static unsigned asked[1024];
	const unsigned  n = asked[line % 1024]++;
	unsigned        digits = 0;

	for (unsigned rest = n; rest; rest /= 4)
		digits += rest % 4;
	return (n < 4 ? !__builtin_parity(n) : digits % 4 == 0) || !is_slow(d);
}

/* Does a device sum in half precision? Prints a line if not. */
static inline bool sums_in_half(int d)
{
	vn_device dev;
	vn_error  err = { "" };
	if (vn_device_open(&dev, devices_[d].index, true, false, &err)) {
		printf("skipped: %s ", err.text);
		return false;
	}
	vn_device_close(&dev);
	return true;
}

/* Runs one call; an error fails the test. */
static inline vn_status forward(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps)
{
	vn_error  err = { "" };
	vn_status st = vn_gpu_ops.forward(g, ids, tokens, taps, &err);
	CU_ASSERT_EQUAL(st, VN_OK);
	if (st)
		printf("\n  forward: %s\n", err.text);
	return st;
}

static inline vn_gpu *engine(const model *m, vn_gpu_options o)
{
	vn_gpu  *g = NULL;
	vn_error err = { "" };
	CU_ASSERT_EQUAL(vn_gpu_create(m->plan, m->weight, &o, &g, &err), VN_OK);
	if (!g)
		printf("\n  create: %s\n", err.text);
	return g;
}

static inline bool *want_all(const vn_plan *p, bool on_demand)
{
	bool *want = calloc((size_t)p->n_values, sizeof *want);
	for (int i = 0; i < p->n_values; i++)
		want[i] = on_demand || !p->value[i].on_demand;
	return want;
}

static inline int32_t *some_ids(int64_t n, int vocab)
{
	int32_t *ids = malloc((size_t)n * sizeof *ids);
	for (int64_t i = 0; i < n; i++)
		ids[i] = (int32_t)((i * 7 + i * i % 5 + 3) % vocab);
	return ids;
}

/* ---- whole runs -------------------------------------------------------------------- */

static const shape_of small = {
	.layers = 3, .D = 44, .H = 6, .G = 2, .K = 10, .F = 175, .V = 211, .context = 700, .rotary = 10
};

/* Runs one engine in one call (split 0) or two; taps what `want` selects. */
static inline void gpu_run(const model *m, vn_gpu_options o, const bool *want, vn_tap_rows rows, int64_t tokens,
                           int64_t split, keep *k)
{
	int32_t *ids = some_ids(tokens, m->plan->vocab);
	vn_gpu  *g = engine(m, o);
	keep_start(k, m->plan);
	vn_taps taps = { .want = want, .rows = rows, .first = 3, .last = 8, .sink = keep_sink(k) };
	if (g && (split == 0 || forward(g, ids, split, &taps) == VN_OK)) {
		if (split)
			keep_next(k, m->plan);
		forward(g, ids + split, tokens - split, &taps);
	}
	vn_gpu_ops.destroy(g);
	free(ids);
}

/* Counts the values in both that differ in a bit or in length. */
static inline int different(const keep *a, const keep *b, const bool *want)
{
	int n = 0;
	for (int v = 0; v < a->n; v++)
		if (want[v])
			n += a->v[v].n != b->v[v].n || (a->v[v].n && memcmp(a->v[v].x, b->v[v].x, a->v[v].n * sizeof(float)) != 0);
	return n;
}

static inline vn_gpu_options on(int d, vn_policy p)
{
	return (vn_gpu_options) { .policy = p, .device = devices_[d].index, .validate = true };
}

/* 77, skipped, without a device. */
static inline int run_gpu_suite(const char *name, CU_TestInfo *tests)
{
	if (find_devices() == 0)
		return 77;
	use_kept_devices();
	const int bad = run_suite(name, tests);
	close_kept_devices();
	free(devices_);
	return bad;
}

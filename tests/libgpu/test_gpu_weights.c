/* test_gpu_weights.c: weights on their way to the device. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/engine.h"
#include "libgpu/load.h"

#include <stdlib.h>

static const int64_t T = 37;

/* ---- bfloat16 ------------------------------------------------------------------------------ */

enum { WIDE = 13, ROWS = 5042, M = 37, OUT = 30 }; /* ROWS WIDE is 2^16 + 10: eights, and a rest */

/* An embedding table, a matrix that is transposed, and one that is not. */
static vn_plan *mixed_plan(void)
{
	vn_builder *b = vn_plan_begin(1, ROWS, 700);
	vn_plan    *p = NULL;
	vn_error    err = { "" };

	int x = vn_plan_embed(b, weight2(b, "table", 0, ROWS, WIDE), VN_POINT_EMBED);
	vn_plan_layer(b, 0);
	x = vn_plan_conv1d(b, x, weight2(b, "transposed", 0, WIDE, M), -1, 0, VN_POINT_UP_PROJ);
	vn_plan_linear(b, x, weight2(b, "plain", 0, OUT, M), -1, 0, VN_POINT_DOWN_PROJ);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &err), VN_OK);
	return p;
}

/* Makes it a weight of bfloat16: all numbers there are, in turn. */
static void be_bf16(vn_tensor *t)
{
	const int64_t n = vn_shape_count(&t->shape);
	uint16_t     *x = malloc((size_t)n * sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = (uint16_t)(n < 65536 ? i * 1021 : i);
	vn_tensor_free(t);
	*t = (vn_tensor) { .dtype = VN_BF16, .shape = t->shape, .data = x };
}

/* Reads weight i back from the device. */
static uint16_t *halves_there(vn_gpu *g, int i)
{
	const vn_gpu_weight_place *at = &g->weights.at[i];
	vn_encoder                *e = &g->encoder;
	const int                  cur = e->cur;
	uint16_t                  *h = malloc(at->bytes);
	vn_buffer                  back;
	vn_error                   err = { "" };

	CU_ASSERT_EQUAL_FATAL(
		vn_buffer_create(&g->device, &back, &(vn_buffer_need) { VN_FOR_READBACK, at->bytes, false, "back" }, &err),
		VN_OK);
	vn_encode_begin(e);
	vn_encode_copy_out(e, &g->weights.block[at->block], at->offset, &back, 0, at->bytes);
	CU_ASSERT_EQUAL(vn_encode_submit(e, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_encode_wait(e, cur, &err), VN_OK);
	memcpy(h, back.map, at->bytes);
	vn_buffer_destroy(&g->device, &back);
	return h;
}

/* Counts numbers of weight i that differ from the host's conversion; adds those that overflowed.
 * over: transposed. */
static int64_t wrong_halves(vn_gpu *g, const model *m, int i, bool over, int64_t *overflowed)
{
	const vn_tensor *t = &m->weight[i];
	const int64_t    n = vn_shape_count(&t->shape), rows = t->shape.dim[0], columns = t->shape.dim[1];
	uint16_t        *there = halves_there(g, i), *here = malloc((size_t)n * sizeof *here);
	float           *x = malloc((size_t)n * sizeof *x);
	int64_t          wrong = 0;

	vn_to_f32(x, t->data, t->dtype, (size_t)n);
	vn_from_f32(here, VN_F16, x, (size_t)n);
	for (int64_t k = 0; k < n; k++) {
		wrong += there[over ? k % columns * rows + k / columns : k] != here[k];
		*overflowed += isfinite(x[k]) && (here[k] & 0x7FFF) == 0x7C00;
	}
	free(x);
	free(here);
	free(there);
	return wrong;
}

/* bf16 (3): the weights that are bfloat16. */
static void check_bf16(vn_gpu_options o, const bool *bf16, const char *first)
{
	model    m;
	vn_facts facts = { 0 };
	int64_t  overflowed = 0;
	char     count[32];

	model_start(&m, mixed_plan(), VN_F32);
	((float *)(uintptr_t)m.weight[2].data)[5] = 1e6f;
	for (int i = 0; i < 3; i++)
		if (bf16[i])
			be_bf16(&m.weight[i]);
	vn_gpu *g = engine(&m, o);
	if (g) {
		for (int i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(wrong_halves(g, &m, i, i == 1, &overflowed), 0);
		vn_gpu_ops.facts(g, &facts);
		snprintf(count, sizeof count, "%lld", (long long)overflowed);
		CU_ASSERT_TRUE(overflowed > 1);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), count);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed_in"), first);
	}
	vn_gpu_ops.destroy(g);
	model_stop(&m);
}

/* Straight into device memory, and through an upload buffer that takes a few pieces. */
static void every_bfloat16_becomes_the_half_that_the_host_makes_of_it(void)
{
	const VkDeviceSize upload = vn_gpu_weights_upload;
	const int64_t      panel = vn_gpu_weights_panel;
	for (int d = 0; d < n_devices_; d++)
		for (int guard = 0; guard < 2; guard++)
			for (int hide = 0; hide < 2; hide++) {
				vn_gpu_options o = on(d, F16);
				o.guard = guard;
				vn_device_hide_memory = hide;
				vn_gpu_weights_halves_there = true;
				vn_gpu_weights_panel = hide ? 256 : panel;
				vn_gpu_weights_upload = hide ? 8192 : upload;
				check_bf16(o, (bool[]) { true, true, false }, "0.table");
				check_bf16(o, (bool[]) { false, true, false }, "0.transposed"); /* counted after the last */
				vn_gpu_weights_halves_there = false;                            /* as the device does it */
				check_bf16(o, (bool[]) { true, true, false }, "0.table");
				vn_device_hide_memory = false;
				vn_gpu_weights_panel = panel;
				vn_gpu_weights_upload = upload;
			}
}

/* ---- other formats ------------------------------------------------------------------------- */

static void weights_too_large_for_half_are_counted(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_facts facts = { 0 };
		model_start(&m, block_plan(small), VN_F16);
		float *w = (void *)(uintptr_t)m.weight[2].data;
		w[3] = 65519.9f; /* rounds down to 65504 */
		w[5] = 65520.0f;
		w[9] = -1e30f;
		w[11] = INFINITY; /* was no number before */
		vn_gpu *g = engine(&m, on(d, F16));
		vn_gpu_ops.facts(g, &facts);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), "2");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed_in"), m.plan->weight[2].name);
		vn_gpu_ops.destroy(g);
		model_stop(&m);
	}
}

/* 1 + 2^-11 + 2^-40 is above the middle of two halves; as a float it is that
 * middle, and goes to the even one below. */
static void weights_in_double_are_rounded_once_and_counted(void)
{
	static const double x[] = { 1.0 + 0x1p-11 + 0x1p-40,
		                        -1.0 - 0x1p-11 - 0x1p-40,
		                        1.0 + 0x3p-11 - 0x1p-40,
		                        65519.9999999,
		                        65520.0,
		                        1e300,
		                        -1e39,
		                        INFINITY,
		                        NAN,
		                        0x1p-25 + 0x1p-60,
		                        -0.0 };
	enum { D = COUNT(x) };
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++) {
			vn_builder     *b = vn_plan_begin(0, 1, 1);
			vn_plan        *p = NULL;
			keep            k;
			vn_gpu         *g = NULL;
			vn_error        err = { "" };
			vn_facts        facts = { 0 };
			vn_gpu_options  o = on(d, half ? F16 : F32);
			const vn_tensor w = { .dtype = VN_F64,
				                  .shape = { .rank = 2, .dim = { 1, D } },
				                  .data = (void *)(uintptr_t)x };
			uint16_t        h[D];
			float           expect[D];
			vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 1, D }), VN_POINT_EMBED);
			CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &err), VN_OK);
			vn_from_f64(h, VN_F16, x, D);
			for (int i = 0; i < D; i++)
				expect[i] = half ? vn_f16_to_f32(h[i]) : (float)x[i];
			bool want[] = { true };
			keep_start(&k, p);
			vn_taps taps = { .want = want, .sink = keep_sink(&k) };
			CU_ASSERT_EQUAL(vn_gpu_create(p, &w, &o, &g, &err), VN_OK);
			if (g && forward(g, (int32_t[]) { 0 }, 1, &taps) == VN_OK) {
				for (int i = 0; i < D; i++)
					CU_ASSERT_TRUE(isnan(x[i]) ? isnan(k.v[0].x[i]) : memcmp(&k.v[0].x[i], &expect[i], 4) == 0);
				CU_ASSERT_TRUE(!half || k.v[0].x[0] == 1.0f + 0x1p-10f);
				vn_gpu_ops.facts(g, &facts);
				CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), half ? "3" : "2");
			}
			vn_gpu_ops.destroy(g);
			keep_stop(&k);
			vn_plan_destroy(p);
		}
}

/* ---- ways ---------------------------------------------------------------------------------- */

/* 38 MB of embeddings pass through an upload buffer of 32; 75000 workgroups of
 * outputs are more than a device need start at once. */
static void weights_arrive_the_same_through_an_upload_buffer(void)
{
	const shape_of s = {
		.layers = 1, .D = 32, .H = 2, .G = 1, .K = 8, .F = 40, .V = 300000, .context = 4, .rotary = 8
	};
	for (int d = 0; d < n_devices_; d++)
		for (int guard = 0; guard < 2; guard++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(s), VN_F32);
			bool          *want = want_all(m.plan, false);
			vn_gpu_options o = on(d, F32);
			gpu_run(&m, o, want, VN_ROWS_ALL, 3, 1, &a);
			vn_device_hide_memory = true;
			o.guard = guard;
			gpu_run(&m, o, want, VN_ROWS_ALL, 3, 1, &b);
			vn_device_hide_memory = false;
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

/* Two matrices that are transposed: rows of 40 numbers, and of 300. */
static vn_plan *transposed_plan(void)
{
	vn_builder *b = vn_plan_begin(1, 211, 700);
	vn_plan    *p = NULL;
	vn_error    err = { "" };

	int x = vn_plan_embed(b, weight2(b, "e", 99, 211, 40), VN_POINT_EMBED);
	vn_plan_layer(b, 0);
	x = vn_plan_conv1d(b, x, weight2(b, "up", 0, 40, 300), -1, 0, VN_POINT_UP_PROJ);
	vn_plan_conv1d(b, x, weight2(b, "down", 0, 300, 30), -1, 0, VN_POINT_DOWN_PROJ);
	if (vn_plan_finish(b, &p, &err))
		printf("\n  plan: %s\n", err.text);
	return p;
}

/* In pieces of 256 numbers, of which a few fit into the upload buffer. */
static void weights_arrive_the_same_in_any_pieces(void)
{
	const VkDeviceSize upload = vn_gpu_weights_upload;
	const int64_t      panel = vn_gpu_weights_panel;
	for (int d = 0; d < n_devices_; d++)
		for (int i = 0; i < 4; i++) {
			model m;
			keep  a, b;
			model_start(&m, i & 1 ? transposed_plan() : block_plan(small), VN_F32);
			bool *want = want_all(m.plan, false);
			gpu_run(&m, on(d, F16), want, VN_ROWS_ALL, T, 1, &a);
			vn_device_hide_memory = i & 2;
			vn_gpu_weights_panel = 256;
			vn_gpu_weights_upload = 2048;
			vn_gpu_options o = on(d, F16);
			o.threads = 3;
			gpu_run(&m, o, want, VN_ROWS_ALL, T, 1, &b);
			vn_device_hide_memory = false;
			vn_gpu_weights_panel = panel;
			vn_gpu_weights_upload = upload;
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static bool at_once(void *ctx)
{
	(void)ctx;
	return true;
}

static void loading_can_be_interrupted(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_gpu        *g = NULL;
		vn_error       err = { "" };
		vn_gpu_options o = on(d, F16);
		model_start(&m, block_plan(small), VN_F16);
		o.stop = at_once;
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_INTERRUPTED);
		CU_ASSERT_PTR_NULL(g);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "every bfloat16 becomes the half that the host makes of it",
		  every_bfloat16_becomes_the_half_that_the_host_makes_of_it },
		{ "weights too large for half are counted", weights_too_large_for_half_are_counted },
		{ "weights in double are rounded once and counted", weights_in_double_are_rounded_once_and_counted },
		{ "weights arrive the same through an upload buffer", weights_arrive_the_same_through_an_upload_buffer },
		{ "weights arrive the same in any pieces", weights_arrive_the_same_in_any_pieces },
		{ "loading can be interrupted", loading_can_be_interrupted },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu weights", tests);
}

/* test_gpu_again.c: the commands of a call are recorded once and submitted again (libgpu/tape.h),
 * to the same bits as if they were recorded each time. */
#include "tests/support/test_gpu_trained.h"

#include "libgpu/engine.h"

enum { PROMPT = 9, DECODED = 7 };

typedef struct decoded {
	keep k;              /* the logits of every call, one after the other */
	long after[DECODED]; /* commands recorded up to this many decoded tokens */
} decoded;

/* A prompt, then one token after the other. The logits are tapped. */
static void decode(const vn_plan *p, const vn_tensor *weight, vn_gpu_options o, int64_t prompt, bool always,
                   decoded *run)
{
	const model m = { (vn_plan *)(uintptr_t)p, (vn_tensor *)(uintptr_t)weight };
	vn_gpu     *g = engine(&m, o);
	int32_t    *ids = some_ids(prompt + DECODED, p->vocab);
	bool       *want = calloc((size_t)p->n_values, sizeof *want);

	*run = (decoded) { 0 };
	keep_start(&run->k, p);
	want[p->n_values - 1] = true;
	const vn_taps taps = { .want = want, .sink = keep_sink(&run->k) };
	if (g) {
		g->encoder.buffers.always = always;
		forward(g, ids, prompt, &taps);
		for (int i = 0; i < DECODED; i++) {
			keep_next(&run->k, p);
			forward(g, ids + prompt + i, 1, &taps);
			run->after[i] = g->encoder.buffers.recorded;
		}
	}
	vn_gpu_ops.destroy(g);
	free(want);
	free(ids);
}

static bool same_logits(const vn_plan *p, const decoded *a, const decoded *b)
{
	const kept *x = &a->k.v[p->n_values - 1], *y = &b->k.v[p->n_values - 1];

	return x->n && x->n == y->n && memcmp(x->x, y->x, x->n * sizeof *x->x) == 0;
}

/* known: after this many tokens, nothing is recorded any more; DECODED: not checked. */
static void again(const char *name, const vn_plan *p, const vn_tensor *weight, vn_gpu_options o, int known)
{
	decoded a, b;

	decode(p, weight, o, PROMPT, false, &a);
	decode(p, weight, o, PROMPT, true, &b);
	CU_ASSERT_TRUE(same_logits(p, &a, &b));
	for (int i = known; i < DECODED; i++) {
		CU_ASSERT_EQUAL(a.after[i], a.after[known - 1]);
		CU_ASSERT_TRUE(b.after[i] > b.after[i - 1]);
		if (a.after[i] != a.after[known - 1])
			printf("\n  %s, %s: token %d was recorded ", name, vn_policy_name(o.policy), i + 1);
	}
	keep_stop(&a.k), keep_stop(&b.k);
}

/* Runs every family, among them one with a table of positions and one with states of fixed size,
 * which alternate between two buffers. */
static void trained_again(const char *family, const vn_plan *p, const vn_tensor *weight, vn_gpu_options o)
{
	again(family, p, weight, o, p->n_states > 0 && strcmp(family, "qwen3_5_text") == 0 ? 2 : 1);
}

static void a_decoded_token_is_recorded_once(void)
{
	static const char *const family[] = { "qwen2", "qwen3", "gpt2", "qwen3_5_text" };

	each_trained(family, COUNT(family), trained_again);
}

/* In a cache of blocks; with poison before each call and every value checked behind it. */
static void so_it_is_in_blocks_and_with_a_guard(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int f32 = 0; f32 < 2; f32++)
			for (int guard = 0; guard < 2; guard++) {
				if (!is_tried(d))
					continue;
				model          m;
				vn_gpu_options o = on(d, f32 ? F32 : F16);
				model_start(&m, block_plan(small), o.policy.storage);
				o.paged = !guard;
				o.guard = guard;
				again(guard ? "guarded" : "paged", m.plan, m.weight, o, guard ? DECODED : 1);
				model_stop(&m);
			}
}

/* The first room is for 256 tokens; a key that is the 257th needs other buffers,
 * and other parts of keys. */
static void a_cache_that_grows_is_recorded_anew(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model   m;
		decoded a, b;
		model_start(&m, block_plan(small), VN_F16);
		decode(m.plan, m.weight, on(d, F16), 254, false, &a);
		decode(m.plan, m.weight, on(d, F16), 254, true, &b);
		CU_ASSERT_TRUE(same_logits(m.plan, &a, &b));
		CU_ASSERT_EQUAL(a.after[1], a.after[0]);
		CU_ASSERT_TRUE(a.after[2] > a.after[1]);
		CU_ASSERT_EQUAL(a.after[DECODED - 1], a.after[2]);
		keep_stop(&a.k), keep_stop(&b.k);
		model_stop(&m);
	}
}

/* ---- of the tape itself ---------------------------------------------------------------------- */

/* Buffers of 16 bytes, and their copies to memory of the host. */
static void one_number_more_or_a_destroyed_buffer_is_another_recording(void)
{
	for (int d = 0; d < n_devices_; d++) {
		vn_device  dev;
		vn_encoder e;
		vn_buffer  a, b, other;
		vn_error   err = { "" };
		CU_ASSERT_EQUAL_FATAL(vn_device_open(&dev, devices_[d].index, false, true, &err), VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_encoder_create(&dev, NULL, 1, &e, &err), VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_buffer_create(&dev, &a, &(vn_buffer_need) { VN_FOR_UPLOAD, 16, false, "a" }, &err),
		                      VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_buffer_create(&dev, &b, &(vn_buffer_need) { VN_FOR_READBACK, 16, false, "b" }, &err),
		                      VN_OK);
		CU_ASSERT_EQUAL_FATAL(
			vn_buffer_create(&dev, &other, &(vn_buffer_need) { VN_FOR_UPLOAD, 16, false, "other" }, &err), VN_OK);
		static const struct {
			VkDeviceSize n;
			bool         destroy;
			long         recorded;
		} step[] = { { 16, false, 1 }, { 16, false, 1 }, { 12, false, 2 }, { 16, false, 2 },
			         { 12, false, 2 }, { 12, true, 3 },  { 16, false, 4 }, { 12, false, 4 } };
		for (size_t i = 0; i < COUNT(step); i++) {
			const int cur = e.cur;
			memset(a.map, (int)i + 1, 16);
			memset(b.map, 0, 16);
			if (step[i].destroy)
				vn_buffer_destroy(&dev, &other);
			vn_encode_begin(&e);
			vn_encode_copy(&e, &a, 0, &b, 0, step[i].n);
			CU_ASSERT_EQUAL(vn_encode_submit(&e, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_encode_wait(&e, cur, &err), VN_OK);
			CU_ASSERT_EQUAL(e.buffers.recorded, step[i].recorded);
			CU_ASSERT_EQUAL(((char *)b.map)[0], (char)(i + 1));
			CU_ASSERT_EQUAL(((char *)b.map)[12], step[i].n == 16 ? (char)(i + 1) : 0);
		}
		CU_ASSERT_EQUAL(vn_device_complaint(&dev, &err), VN_OK);
		vn_encoder_destroy(&e);
		vn_buffer_destroy(&dev, &a);
		vn_buffer_destroy(&dev, &b);
		vn_device_close(&dev);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "one number more or a destroyed buffer is another recording",
		  one_number_more_or_a_destroyed_buffer_is_another_recording },
		{ "a cache that grows is recorded anew", a_cache_that_grows_is_recorded_anew },
		{ "so it is in blocks and with a guard", so_it_is_in_blocks_and_with_a_guard },
		{ "a decoded token is recorded once", a_decoded_token_is_recorded_once },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu again", tests);
}

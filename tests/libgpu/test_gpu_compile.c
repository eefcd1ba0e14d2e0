/* test_gpu_compile.c: shaders are compiled before a call is recorded, several at a time, and only
 * those that the call uses. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/engine.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { T = 37, SEEN_MAX = 64 };

/* The pipelines that the driver was asked for, counted by the functions below. */
static struct {
	pthread_mutex_t lock;
	int             slow_ms; /* each pipeline takes that much longer */
	int             at_once, most_at_once;
	int             built, used, late; /* late: built behind the first dispatch of a workgroup */
	VkPipeline      pipeline[SEEN_MAX];
	bool            is_used[SEEN_MAX];
	VkPipeline      bound;
	bool            dispatched;
} seen_ = { .lock = PTHREAD_MUTEX_INITIALIZER };

static vn_vulkan real_;

static VkResult VKAPI_CALL create(VkDevice device, VkPipelineCache cache, uint32_t n,
                                  const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *memory,
                                  VkPipeline *pipeline)
{
	const struct timespec wait = { 0, seen_.slow_ms * 1000000L };

	pthread_mutex_lock(&seen_.lock);
	seen_.at_once++;
	if (seen_.at_once > seen_.most_at_once)
		seen_.most_at_once = seen_.at_once;
	seen_.late += seen_.dispatched;
	pthread_mutex_unlock(&seen_.lock);
	nanosleep(&wait, NULL);
	const VkResult r = real_.CreateComputePipelines(device, cache, n, info, memory, pipeline);
	pthread_mutex_lock(&seen_.lock);
	seen_.at_once--;
	if (seen_.built < SEEN_MAX)
		seen_.pipeline[seen_.built++] = *pipeline;
	pthread_mutex_unlock(&seen_.lock);
	return r;
}

static void VKAPI_CALL bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline)
{
	seen_.bound = pipeline;
	real_.CmdBindPipeline(cmd, point, pipeline);
}

static void VKAPI_CALL dispatch(VkCommandBuffer cmd, uint32_t x, uint32_t y, uint32_t z)
{
	seen_.dispatched = seen_.dispatched || x > 0;
	for (int i = 0; i < seen_.built; i++)
		if (x > 0 && seen_.pipeline[i] == seen_.bound && !seen_.is_used[i]) {
			seen_.is_used[i] = true;
			seen_.used++;
		}
	real_.CmdDispatch(cmd, x, y, z);
}

/* An engine whose calls of the driver are seen. */
static vn_gpu *watched(const model *m, vn_gpu_options o, int slow_ms)
{
	vn_gpu *g = engine(m, o);

	seen_.slow_ms = slow_ms;
	seen_.most_at_once = seen_.built = seen_.used = seen_.late = 0;
	memset(seen_.is_used, 0, sizeof seen_.is_used);
	seen_.dispatched = false;
	real_ = vn_vk;
	vn_vk.CreateComputePipelines = create;
	vn_vk.CmdBindPipeline = bind;
	vn_vk.CmdDispatch = dispatch;
	return g;
}

static void unwatch(void)
{
	vn_vk = real_;
}

static int processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void shaders_are_compiled_at_the_same_time(void)
{
	for (int i = 0; i < 2 * n_devices_; i++) {
		model          m;
		vn_gpu_options o = on(i / 2, F16);
		model_start(&m, block_plan(small), VN_F16);
		o.threads = i % 2; /* one per processor; one */
		int32_t *ids = some_ids(T, small.V);
		vn_gpu  *g = watched(&m, o, 20);
		forward(g, ids, T, NULL);
		unwatch();
		CU_ASSERT_TRUE(seen_.built > 5);
		CU_ASSERT_TRUE(processors() > 1 && !o.threads ? seen_.most_at_once > 1 : seen_.most_at_once == 1);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

/* Every point, in one call of many tokens and one of a single one. */
static void calls_compile_what_they_use(vn_gpu_options o, const model *m, bool tapped)
{
	int32_t *ids = some_ids(T + 1, small.V);
	bool    *want = want_all(m->plan, true);
	keep     k;
	keep_start(&k, m->plan);
	vn_taps taps = { .want = want, .sink = keep_sink(&k) };
	vn_gpu *g = watched(m, o, 0);

	for (int call = 0; call < 2; call++) {
		const double before = vn_gpu_ops.compiling(g);
		const int    built = seen_.built;
		seen_.dispatched = false;
		forward(g, ids + (call ? T : 0), call ? 1 : T, tapped ? &taps : NULL);
		CU_ASSERT_TRUE(seen_.built > built);
		CU_ASSERT_TRUE(vn_gpu_ops.compiling(g) > before);
		CU_ASSERT_EQUAL(seen_.late, 0);
		CU_ASSERT_EQUAL(seen_.used, seen_.built);
		keep_next(&k, m->plan);
	}
	const double before = vn_gpu_ops.compiling(g);
	const int    built = seen_.built;
	forward(g, ids, 1, tapped ? &taps : NULL);
	CU_ASSERT_EQUAL(seen_.built, built);
	CU_ASSERT_EQUAL(vn_gpu_ops.compiling(g), before);
	unwatch();
	vn_gpu_ops.destroy(g);
	keep_stop(&k);
	free(want);
	free(ids);
}

static void what_a_call_uses_is_compiled_before_it_and_nothing_else(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int i = 0; i < 16; i++) {
			model          m;
			vn_gpu_options o = on(d, i & 1 ? F32 : F16);
			o.paged = i & 2;
			o.guard = i & 4;
			model_start(&m, block_plan(small), VN_F16);
			calls_compile_what_they_use(o, &m, i & 8);
			model_stop(&m);
		}
}

/* One after the other, as they were asked for: the bits do not depend on it. */
static void the_bits_are_those_of_shaders_compiled_one_by_one(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k[2];
		model_start(&m, block_plan(small), VN_F16);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(T, small.V);
		for (int i = 0; i < 2; i++) {
			vn_gpu *g = engine(&m, on(d, F16));
			keep_start(&k[i], m.plan);
			vn_taps taps = { .want = want, .sink = keep_sink(&k[i]) };
			for (int s = 0; i == 1 && s < VN_N_KERNELS; s++) {
				VkPipeline pipeline;
				vn_error   err = { "" };
				if (g->kernels.shader[s].words)
					CU_ASSERT_EQUAL(vn_kernel_pipeline(&g->kernels, (vn_kernel)s, &pipeline, &err), VN_OK);
			}
			forward(g, ids, T, &taps);
			vn_gpu_ops.destroy(g);
		}
		CU_ASSERT_EQUAL(different(&k[0], &k[1], want), 0);
		keep_stop(&k[0]);
		keep_stop(&k[1]);
		free(want);
		free(ids);
		model_stop(&m);
	}
}

static bool from_the_third_on(void *ctx)
{
	return ++*(int *)ctx >= 3;
}

static void compiling_can_be_interrupted_and_goes_on_in_the_next_call(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		int      asked = 0;
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(T, small.V);
		vn_gpu  *g = watched(&m, on(d, F16), 50);
		g->encoder.stop = from_the_third_on; /* loading weights asks, too */
		g->encoder.stop_ctx = &asked;
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, T, NULL, &err), VN_ERR_INTERRUPTED);
		const int built = seen_.built;
		CU_ASSERT_FALSE(seen_.dispatched);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
		g->encoder.stop = NULL;
		forward(g, ids, T, NULL);
		unwatch();
		CU_ASSERT_TRUE(processors() > 2 || seen_.built > built);
		CU_ASSERT_EQUAL(seen_.late, 0);
		CU_ASSERT_EQUAL(seen_.used, seen_.built);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "shaders are compiled at the same time", shaders_are_compiled_at_the_same_time },
		{ "what a call uses is compiled before it, and nothing else",
		  what_a_call_uses_is_compiled_before_it_and_nothing_else },
		{ "the bits are those of shaders compiled one by one", the_bits_are_those_of_shaders_compiled_one_by_one },
		{ "compiling can be interrupted and goes on in the next call",
		  compiling_can_be_interrupted_and_goes_on_in_the_next_call },
		CU_TEST_INFO_NULL,
	};
	keep_devices(false); /* no engine finds the pipelines of another */
	return run_gpu_suite("gpu compile", tests);
}

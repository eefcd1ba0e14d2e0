/* test_gpu_pipelines.c: tests libgpu/pipelines.c, and kept_devices.h, which depends on it. */
#include "tests/support/test_gpu_help.h"

enum { T = 9 };

/* Runs a call on a new engine. Returns its device; *built: it built pipelines. */
static VkDevice device_of_a_run(const model *m, vn_gpu_options o, bool *built, keep *k)
{
	vn_gpu  *g = engine(m, o);
	bool    *want = want_all(m->plan, true);
	int32_t *ids = some_ids(T, m->plan->vocab);
	keep     none;

	keep_start(k ? k : &none, m->plan);
	if (g)
		forward(g, ids, T, &(vn_taps) { .want = want, .sink = keep_sink(k ? k : &none) });
	const VkDevice device = g ? g->device.device : VK_NULL_HANDLE;
	*built = g && g->device.pipelines->n > g->kernels.had;
	vn_gpu_ops.destroy(g);
	if (!k)
		keep_stop(&none);
	free(ids);
	free(want);
	return device;
}

static void the_next_engine_has_the_pipelines(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m, other;
		bool     built;
		shape_of s = small;
		s.layers = 1, s.D = 30;
		model_start(&m, block_plan(small), VN_F16);
		model_start(&other, block_plan(s), VN_F16);
		keep_devices(false);
		for (int i = 0; i < 2; i++) {
			device_of_a_run(&m, on(d, F16), &built, NULL);
			CU_ASSERT_TRUE(built);
		}
		keep_devices(true);
		const VkDevice first = device_of_a_run(&m, on(d, F16), &built, NULL);
		CU_ASSERT_TRUE(built);
		CU_ASSERT_PTR_EQUAL(device_of_a_run(&other, on(d, F16), &built, NULL), first); /* another plan */
		CU_ASSERT_FALSE(built);
		CU_ASSERT_PTR_EQUAL(device_of_a_run(&m, on(d, F32), &built, NULL), first); /* other shaders */
		CU_ASSERT_TRUE(built);
		model_stop(&m);
		model_stop(&other);
	}
}

static void bits_are_those_of_new_pipelines(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k[3];
		bool  built;
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		for (int i = 0; i < 3; i++) {
			keep_devices(i > 0);
			if (i == 2)
				device_of_a_run(&m, on(d, F16), &built, NULL);
			device_of_a_run(&m, on(d, F16), &built, &k[i]);
			CU_ASSERT_EQUAL(built, i < 2);
		}
		CU_ASSERT_EQUAL(different(&k[0], &k[1], want), 0);
		CU_ASSERT_EQUAL(different(&k[0], &k[2], want), 0);
		for (int i = 0; i < 3; i++)
			keep_stop(&k[i]);
		free(want);
		model_stop(&m);
	}
}

/* A cache file holds all that was built for it. */
static void another_pipeline_cache_has_its_own(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		bool           built;
		vn_gpu_options o = on(d, F16);
		model_start(&m, block_plan(small), VN_F16);
		keep_devices(true);
		const VkDevice first = device_of_a_run(&m, o, &built, NULL);
		o.cache_dir = "/proc/nowhere";
		CU_ASSERT_PTR_EQUAL(device_of_a_run(&m, o, &built, NULL), first);
		CU_ASSERT_TRUE(built);
		device_of_a_run(&m, o, &built, NULL);
		CU_ASSERT_FALSE(built);
		o.cache_dir = NULL;
		device_of_a_run(&m, o, &built, NULL);
		CU_ASSERT_TRUE(built);
		model_stop(&m);
	}
}

/* What was heard of it: a complaint, a call that failed; or memory that was not freed. */
static void a_device_in_doubt_is_not_kept(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int doubt = 0; doubt < 4; doubt++) {
			model    m;
			bool     built;
			vn_error err = { "" };
			model_start(&m, block_plan(small), VN_F16);
			device_of_a_run(&m, on(d, F16), &built, NULL);
			vn_gpu *g = engine(&m, on(d, F16));
			CU_ASSERT_PTR_NOT_NULL_FATAL(g);
			if (doubt == 1)
				g->device.trouble->complaints++;
			else if (doubt == 2)
				vn_device_fail(&g->device, VK_ERROR_DEVICE_LOST, &err, "a test");
			else if (doubt == 3)
				g->device.allocated++;
			vn_gpu_ops.destroy(g);
			device_of_a_run(&m, on(d, F16), &built, NULL);
			CU_ASSERT_EQUAL(built, doubt != 0);
			model_stop(&m);
		}
}

static void engines_at_the_same_time_have_different_devices(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		model_start(&m, block_plan(small), VN_F16);
		vn_gpu *g = engine(&m, on(d, F16)), *h = engine(&m, on(d, F16));
		CU_ASSERT_FATAL(g && h);
		CU_ASSERT_PTR_NOT_EQUAL(g->device.device, h->device.device);
		vn_gpu_ops.destroy(g);
		vn_gpu_ops.destroy(h);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "the next engine has the pipelines", the_next_engine_has_the_pipelines },
		{ "bits are those of new pipelines", bits_are_those_of_new_pipelines },
		{ "another pipeline cache has its own", another_pipeline_cache_has_its_own },
		{ "a device in doubt is not kept", a_device_in_doubt_is_not_kept },
		{ "engines at the same time have different devices", engines_at_the_same_time_have_different_devices },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu pipelines", tests);
}

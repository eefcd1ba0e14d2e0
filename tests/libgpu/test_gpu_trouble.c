/* test_gpu_trouble.c: the guard, failures during a call, unusual devices and files. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/engine.h"
#include "libgpu/load.h"
#include "libgpu/suitable.h"

#include <stdlib.h>
#include <unistd.h>

static const int64_t T = 37;

/* ---- the guard -------------------------------------------------------------------------- */

static void a_guarded_run_passes_and_gives_the_same_bits(void)
{
	static const int64_t size[] = { 0, 1000 };
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++)
			for (size_t i = 0; i < COUNT(size); i++) {
				model m;
				keep  a, b;
				model_start(&m, block_plan(small), VN_F16);
				bool          *want = want_all(m.plan, true);
				vn_gpu_options o = on(d, half ? F16 : F32);
				o.staging = size[i];
				gpu_run(&m, o, want, VN_ROWS_RANGE, T, 5, &a);
				o.guard = true;
				gpu_run(&m, o, want, VN_ROWS_RANGE, T, 5, &b);
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				keep_stop(&a);
				keep_stop(&b);
				free(want);
				model_stop(&m);
			}
}

static void guard_says(const char *value, bool skip, const char *expect)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_error       err = { "" };
		vn_gpu_options o = on(d, F16);
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(T, small.V);
		o.guard = true;
		vn_gpu *g = engine(&m, o);
		*(skip ? &g->break_skip : &g->break_overrun) = m.plan->value[vn_plan_find(m.plan, value)].node;
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, T, NULL, &err), VN_ERR_DEVICE);
		if (strcmp(err.text, expect) != 0)
			printf("\n  guard: %s\n", err.text);
		CU_ASSERT_STRING_EQUAL(err.text, expect);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
		g->break_skip = g->break_overrun = -1;
		forward(g, ids, T, NULL);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

static void a_value_that_was_never_written_is_named(void)
{
	guard_says("layer1.q_rope", true, "layer1.q_rope was never written (row 0)");
	guard_says("logits", true, "logits was never written (row 0)");
	guard_says("embed", true, "embed was never written (row 0)");
}

static void a_value_that_was_overrun_is_named(void)
{
	guard_says("layer2.mlp_act", false, "layer2.mlp_act was overrun: something wrote 0 bytes after its end");
}

/* ---- failures --------------------------------------------------------------------------- */

static void a_sink_that_fails_ends_the_run_and_leaves_the_position(void)
{
	static const int64_t size[] = { 0, 2000 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(size); i++)
			for (int64_t after = 0; after < 40; after += 13) {
				model          m;
				keep           a, b;
				vn_error       err = { "" };
				vn_gpu_options o = on(d, F16);
				if (!is_tried(d))
					continue;
				model_start(&m, block_plan(small), VN_F16);
				bool    *want = want_all(m.plan, true);
				int32_t *ids = some_ids(T, small.V);
				o.staging = size[i];
				vn_gpu *g = engine(&m, o);
				keep_start(&a, m.plan);
				keep_start(&b, m.plan);
				a.fail_after = after;
				vn_taps taps = { .want = want, .sink = keep_sink(&a) };
				CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, T, &taps, &err), VN_ERR_IO);
				CU_ASSERT_STRING_EQUAL(err.text, "disk full");
				CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
				taps.sink = keep_sink(&b);
				forward(g, ids, T, &taps); /* and the engine still works */
				keep_stop(&a);
				gpu_run(&m, on(d, F16), want, VN_ROWS_ALL, T, 0, &a);
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				vn_gpu_ops.destroy(g);
				keep_stop(&a);
				keep_stop(&b);
				free(ids);
				free(want);
				model_stop(&m);
			}
}

static void bad_calls_are_refused_and_change_nothing(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		vn_gpu  *none = NULL;
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(701, small.V);
		vn_gpu  *g = engine(&m, on(d, F16));
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 0, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 701, NULL, &err), VN_ERR_USAGE);
		ids[1] = small.V;
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 2, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_STRING_EQUAL(err.text, "token 1: id 211 is outside the vocabulary of 211");
		ids[1] = -1;
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 2, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
		ids[1] = 1;
		forward(g, ids, 4, NULL);
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 697, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 4);
		vn_gpu_ops.reset(g);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
		vn_gpu_ops.destroy(g);

		vn_gpu_options o = on(d, (vn_policy) { VN_F64, VN_F64, 0, { 0 } });
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_UNSUPPORTED);
		o = on(d, F16);
		o.device = 1000;
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_DEVICE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there is no Vulkan device 1000"));
		m.weight[2].shape.dim[0]++;
		o = on(d, F16);
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_SHAPE);
		m.weight[2].shape.dim[0]--;
		CU_ASSERT_PTR_NULL(none);
		free(ids);
		model_stop(&m);
	}
}

/* Blocks of 8 KiB: some weights share one, and one of their own stands between. */
static void every_gap_between_weights_is_watched(void)
{
	const VkDeviceSize usual = vn_gpu_weights_block;
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_error       err = { "" };
		vn_gpu_options o = on(d, F16);
		int            shared = 0, own = 0, gaps = 0, staging = 0, apart = -1, next = 0;
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(T, small.V);
		o.guard = true;
		vn_gpu_weights_block = 8192;
		vn_gpu *g = engine(&m, o);
		forward(g, ids, T, NULL);
		for (int i = 0; i < g->weights.n; i++)
			own += g->weights.at[i].bytes > vn_gpu_weights_block;
		shared = g->weights.n - own - (g->weights.n_blocks - own);
		for (int z = 0; z < g->zones.n; z++) {
			gaps += g->zones.zone[z].before && g->zones.zone[z].after;
			staging += g->zones.zone[z].b == &g->staging.buf[0] || g->zones.zone[z].b == &g->staging.buf[1];
		}
		for (int i = 0; i + 1 < g->weights.n && apart < 0; i++) {
			for (next = i + 1; next < g->weights.n && g->weights.at[next].block != g->weights.at[i].block; next++)
				;
			if (next < g->weights.n && next > i + 1)
				apart = i;
		}
		CU_ASSERT_TRUE(own > 0 && shared > 0 && apart >= 0);
		CU_ASSERT_EQUAL(gaps, shared);
		CU_ASSERT_EQUAL(staging, 4);
		if (apart >= 0) { /* and it is that gap's bytes that are watched */
			const vn_gpu_weight_place *a = &g->weights.at[apart];
			vn_buffer                 *b = &g->weights.block[a->block];
			char                       expect[512];
			vn_gpu_ops.begin(g, ids, T, NULL, &err);
			vn_encode_copy(&g->encoder, &g->upload, 0, b, a->offset + a->bytes + 8, 4);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, m.plan->n_nodes, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_ERR_DEVICE);
			snprintf(expect, sizeof expect, "something wrote between %s and %s, 8 bytes after the end of the first",
			         m.plan->weight[apart].name, m.plan->weight[next].name);
			CU_ASSERT_STRING_EQUAL(err.text, expect);
		}
		vn_gpu_weights_block = usual;
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

/* 16384 numbers a token: 2^17 tokens are too many, and a few of a model that
 * may see more are not. */
static void a_cache_is_refused_by_what_is_asked_for(void)
{
	const shape_of s = { .layers = 1, .D = 4, .H = 64, .G = 64, .K = 256, .F = 4, .V = 11, .context = 1 << 20 };
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		model_start(&m, block_plan(s), VN_F16);
		int32_t *ids = some_ids(1 << 17, s.V);
		vn_gpu  *g = engine(&m, on(d, F16));
		forward(g, ids, 3, NULL);
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, (1 << 17) - 3, NULL, &err), VN_ERR_UNSUPPORTED);
		CU_ASSERT_STRING_EQUAL(err.text, "layer0.attn_context: the keys of 131072 tokens have more than 2^31 elements");
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 3);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

/* ---- barriers ---------------------------------------------------------------------------- */

static bool needs_barrier(vn_encoder *e, vn_buffer *read, vn_buffer *written)
{
	if (read)
		vn_encode_reads(e, read);
	if (written)
		vn_encode_writes(e, written);
	return vn_encode_note_uses(e);
}

/* On what is on record; no device takes part. */
static void a_barrier_stands_where_two_uses_meet_and_one_writes(void)
{
	vn_encoder e = { .epoch = 1 };
	vn_buffer  a = { 0 }, b = { 0 }, c = { 0 };
	CU_ASSERT_FALSE(needs_barrier(&e, &a, NULL));
	CU_ASSERT_FALSE(needs_barrier(&e, &a, NULL)); /* read, read */
	CU_ASSERT_FALSE(needs_barrier(&e, &a, &b));   /* another buffer */
	CU_ASSERT_FALSE(needs_barrier(&e, NULL, &c)); /* and one more */
	CU_ASSERT_TRUE(needs_barrier(&e, &b, NULL));  /* written, read */
	CU_ASSERT_FALSE(needs_barrier(&e, &c, NULL)); /* that barrier was over all */
	CU_ASSERT_TRUE(needs_barrier(&e, NULL, &b));  /* read, written */
	CU_ASSERT_TRUE(needs_barrier(&e, NULL, &b));  /* written, written */
	CU_ASSERT_FALSE(needs_barrier(&e, &a, &c));   /* c was read two barriers ago */
	CU_ASSERT_TRUE(needs_barrier(&e, &c, &a));    /* written, read; read, written */
	CU_ASSERT_TRUE(needs_barrier(&e, &a, &a));    /* the same in one command */
	CU_ASSERT_FALSE(needs_barrier(&e, &b, NULL));
	vn_encode_copy_out(&e, &b, 0, &c, 0, 0); /* of nothing: a read of the source alone */
	CU_ASSERT_TRUE(needs_barrier(&e, NULL, &b));
	CU_ASSERT_FALSE(needs_barrier(&e, NULL, &c));
}

static void a_barrier_left_out_is_reported_by_validation(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_error       err = { "" };
		vn_gpu_options o = on(d, F16);
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(T, small.V);
		o.guard = true; /* fills and copies: shaders reach memory by address, which the layer does not follow */
		vn_gpu *g = engine(&m, o);
		g->encoder.omit = true;
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, T, NULL, &err), VN_ERR_DEVICE);
		CU_ASSERT_TRUE(g->device.trouble->complaints > 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(g->device.trouble->complaint, "SYNC-HAZARD"));
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

static void validation_that_cannot_watch_synchronisation_is_refused(void)
{
	model          m;
	vn_error       err = { "" };
	vn_gpu        *g = NULL;
	vn_gpu_options o = on(0, F16);
	model_start(&m, block_plan(small), VN_F16);
	vn_device_old_layer = true;
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_DEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "too old to watch synchronisation"));
	CU_ASSERT_PTR_NULL(g);
	o.validate = false;
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_device_old_layer = false;
	vn_gpu_ops.destroy(g);
	model_stop(&m);
}

/* ---- failures, interruption --------------------------------------------------------------- */

typedef struct patience {
	int asked, limit;
} patience;

static bool lost(void *ctx)
{
	patience *p = ctx;
	return ++p->asked > p->limit;
}

static void an_interrupted_call_leaves_the_position(void)
{
	static const int limit[] = { 0, 5, 10000 };
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		patience p = { 0, 10000 };
		vn_error err = { "" };
		shape_of s = small;
		keep     a, b;
		s.V = 30000; /* the last node takes a software device some tenths of a second */
		s.D = 512;
		model_start(&m, block_plan(s), VN_F16);
		int32_t       *ids = some_ids(600, s.V);
		bool          *want = want_all(m.plan, false);
		vn_gpu_options o = on(d, F16);
		o.stop = lost;
		o.stop_ctx = &p;
		vn_gpu *g = engine(&m, o);
		for (size_t i = 0; i < COUNT(limit); i++) {
			p = (patience) { 0, limit[i] };
			CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 7, NULL, &err),
			                limit[i] < m.plan->n_nodes ? VN_ERR_INTERRUPTED : VN_OK);
			CU_ASSERT_TRUE(limit[i] < m.plan->n_nodes ? p.asked == limit[i] + 1 : p.asked >= m.plan->n_nodes);
		}
		CU_ASSERT_STRING_EQUAL(err.text, "interrupted");
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 7);
		p = (patience) { 0, m.plan->n_nodes }; /* every node, then no longer: where the device takes its time */
		const vn_status st = vn_gpu_ops.forward(g, ids, 600, NULL, &err);
		CU_ASSERT_EQUAL(st, p.asked > m.plan->n_nodes ? VN_ERR_INTERRUPTED : VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), st ? 7 : 607);
		if (strcmp(devices_[d].type, "cpu") == 0)
			CU_ASSERT_EQUAL(st, VN_ERR_INTERRUPTED);
		vn_gpu_ops.reset(g);
		p = (patience) { 0, 10000 };
		keep_start(&a, m.plan);
		vn_taps taps = { .want = want, .sink = keep_sink(&a) };
		forward(g, ids, 9, &taps); /* and the engine still works */
		vn_gpu_ops.destroy(g);
		gpu_run(&m, on(d, F16), want, VN_ROWS_ALL, 9, 0, &b);
		CU_ASSERT_EQUAL(different(&a, &b, want), 0);
		keep_stop(&a);
		keep_stop(&b);
		free(want);
		free(ids);
		model_stop(&m);
	}
}

static void constants_that_do_not_fit_are_refused(void)
{
	model          m;
	vn_error       err = { "" };
	vn_gpu        *g = NULL;
	vn_gpu_options o = on(0, F16);
	model_start(&m, block_plan(small), VN_F16);
	for (int i = 0; i < m.plan->n_nodes; i++)
		if (m.plan->node[i].op == VN_OP_ATTENTION)
			m.plan->node[i].c.attention.heads = 5;
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NULL(g);
	model_stop(&m);
}

static void the_environment_names_a_device(void)
{
	model          m;
	vn_error       err = { "" };
	vn_gpu        *g = NULL;
	vn_gpu_options o = { .policy = F16, .device = -1 };
	model_start(&m, block_plan(small), VN_F16);
	setenv("VERNIER_DEVICE", devices_[0].name, 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_ops.destroy(g);
	setenv("VERNIER_DEVICE", "no such thing", 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_DEVICE);
	CU_ASSERT_STRING_EQUAL(err.text, "no Vulkan device has \"no such thing\" in its name (VERNIER_DEVICE)");
	setenv("VERNIER_DEVICE", "77", 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_DEVICE);
	unsetenv("VERNIER_DEVICE");
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_ops.destroy(g);
	model_stop(&m);
}

static void a_device_that_lacks_something_says_what(void)
{
	const vn_abilities all = { VK_API_VERSION_1_3, true, true, true, true, 32768, 128 };
	char               text[VN_MISSING_TEXT];
	vn_abilities       a = all;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "");
	a.storage16 = false;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "16-bit storage (storageBuffer16BitAccess)");
	a.addresses = a.synchronization2 = a.compute = false;
	a.shared_bytes = 16384;
	a.lanes = 64;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "16-bit storage (storageBuffer16BitAccess), buffer device addresses "
	                             "(bufferDeviceAddress), synchronization2, compute queue, 32 KiB of shared memory, "
	                             "workgroups of 128");
	a.api = VK_API_VERSION_1_2;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "Vulkan 1.3");
}

/* A cache directory that cannot be made, then one whose file is cut short and altered. */
static void a_bad_pipeline_cache_is_ignored(void)
{
	char           dir[] = "/tmp/vernier-test-XXXXXX", command[256];
	model          m;
	vn_error       err = { "" };
	vn_gpu        *g = NULL;
	vn_gpu_options o = { .policy = F16, .device = devices_[0].index, .cache_dir = "/proc/nowhere" };
	model_start(&m, block_plan(small), VN_F16);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_ops.destroy(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	o.cache_dir = dir;
	keep_devices(false); /* what no engine builds is not saved */
	static const struct {
		const char *change;
		bool        hit;
	} step[] = {
		{ "true", false },
		{ "true", true },
		{ "truncate -s -1 %s/*", false },
		{ "true", true },
		{ "printf X | dd of=$(ls %s/*) bs=1 seek=40 conv=notrunc status=none", false },
		{ "rm %s/*", false },
	};
	bool keeps = true; /* the driver gives something to keep */
	for (size_t i = 0; i < COUNT(step) && keeps; i++) {
		char   data[sizeof(VkPipelineCacheHeaderVersionOne)];
		size_t bytes = sizeof data;
		snprintf(command, sizeof command, step[i].change, dir);
		CU_ASSERT_EQUAL(system(command), 0);
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
		CU_ASSERT_EQUAL(g->kernels.cache_hit, step[i].hit);
		forward(g, (const int32_t[]) { 1, 2 }, 2, NULL); /* what it compiles is kept */
		vn_vk.GetPipelineCacheData(g->device.device, g->kernels.cache, &bytes, data);
		keeps = bytes == sizeof data;
		vn_gpu_ops.destroy(g);
	}
	keep_devices(true);
	if (!keeps)
		printf("skipped: the driver's pipeline cache has no whole header ");
	snprintf(command, sizeof command, "rm -r %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
	model_stop(&m);
}

/* The hybrid run (capture/run/hybrid.h) lets the reference compute such a node. */
static void a_formula_that_no_model_has_is_refused_when_its_node_runs(void)
{
	const int32_t ids[] = { 1, 2, 3 };
	vn_error      err = { "" };
	int           node = 0;
	model         m;

	model_start(&m, block_plan(small), VN_F16);
	while (m.plan->node[node].op != VN_OP_ATTENTION)
		node++;
	m.plan->node[node].x.attention.leak = 1;
	vn_gpu *g = engine(&m, on(0, F16));
	CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 3, NULL, &err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, m.plan->value[m.plan->node[node].out[0]].name));
	CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
	CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, ids, 3, NULL, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, node, &err), VN_OK); /* the others run */
	CU_ASSERT_EQUAL(vn_gpu_ops.end(g, false, &err), VN_OK);
	vn_gpu_ops.destroy(g);
	model_stop(&m);
}

static VkResult VKAPI_CALL no_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                        const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *memory,
                                        VkPipeline *pipeline)
{
	(void)device, (void)cache, (void)n, (void)info, (void)memory, (void)pipeline;
	return VK_ERROR_OUT_OF_HOST_MEMORY;
}

/* Pipelines are built in the midst of a call. */
static void a_shader_that_cannot_be_built_fails_the_call(void)
{
	const PFN_vkCreateComputePipelines build = vn_vk.CreateComputePipelines;
	const int32_t                      ids[] = { 1, 2, 3 };
	vn_error                           err = { "" };
	model                              m;

	keep_devices(true); /* no pipelines yet */
	model_start(&m, block_plan(small), VN_F16);
	vn_gpu *g = engine(&m, on(0, F16));
	vn_vk.CreateComputePipelines = no_pipelines;
	CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 3, NULL, &err), VN_ERR_DEVICE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "embed"));
	CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
	vn_vk.CreateComputePipelines = build;
	CU_ASSERT_EQUAL(forward(g, ids, 3, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 3);
	vn_gpu_ops.destroy(g);
	model_stop(&m);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "a shader that cannot be built fails the call", a_shader_that_cannot_be_built_fails_the_call },
		{ "a guarded run passes and gives the same bits", a_guarded_run_passes_and_gives_the_same_bits },
		{ "a formula that no model has is refused when its node runs",
		  a_formula_that_no_model_has_is_refused_when_its_node_runs },
		{ "a value that was never written is named", a_value_that_was_never_written_is_named },
		{ "a value that was overrun is named", a_value_that_was_overrun_is_named },
		{ "a sink that fails ends the run and leaves the position",
		  a_sink_that_fails_ends_the_run_and_leaves_the_position },
		{ "bad calls are refused and change nothing", bad_calls_are_refused_and_change_nothing },
		{ "an interrupted call leaves the position", an_interrupted_call_leaves_the_position },
		{ "every gap between weights is watched", every_gap_between_weights_is_watched },
		{ "a cache is refused by what is asked for", a_cache_is_refused_by_what_is_asked_for },
		{ "a barrier stands where two uses meet and one writes", a_barrier_stands_where_two_uses_meet_and_one_writes },
		{ "a barrier left out is reported by validation", a_barrier_left_out_is_reported_by_validation },
		{ "validation that cannot watch synchronisation is refused",
		  validation_that_cannot_watch_synchronisation_is_refused },
		{ "constants that do not fit are refused", constants_that_do_not_fit_are_refused },
		{ "the environment names a device", the_environment_names_a_device },
		{ "a device that lacks something says what", a_device_that_lacks_something_says_what },
		{ "a bad pipeline cache is ignored", a_bad_pipeline_cache_is_ignored },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu trouble", tests);
}

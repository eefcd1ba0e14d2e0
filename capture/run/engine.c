/* engine.c: see engine.h. */
#include "capture/run/engine.h"

#include "capture/run/interrupt.h"
#include "libref/exec/ref.h"
#ifdef VERNIER_GPU
#include "libgpu/gpu.h"
#endif

static bool stop_requested(void *ctx)
{
	(void)ctx;
	return vn_interrupted();
}

const vn_plan *vn_engine_plan(const vn_model *m, const vn_engine_options *o)
{
	return o->faulty ? vn_faulty_plan(o->faulty) : vn_model_plan(m);
}

static const vn_tensor *weights_of(const vn_model *m, const vn_engine_options *o)
{
	return o->faulty ? vn_faulty_weights(o->faulty) : vn_model_weights(m);
}

static vn_status open_ref(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	const vn_ref_options ro = {
		.policy = o->policy,
		.threads = o->threads,
		.progress = !o->quiet,
		.stop = stop_requested,
		.need = o->faulty ? NULL : vn_model_need,
		.need_ctx = m,
	};
	const int *early;
	vn_ref    *ref;
	vn_status  st;

	if (o->faulty && vn_faulty_early(o->faulty, &early))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: this fault omits a barrier on the GPU: the reference engine has no barriers",
		               vn_engine_plan(m, o)->value[early[0]].name);
	if (!(st = vn_ref_create(vn_engine_plan(m, o), weights_of(m, o), &ro, &ref, err)))
		*e = (vn_engine) { "ref", ref, &vn_ref_ops, vn_engine_plan(m, o)->n_values, false };
	return st;
}

#ifdef VERNIER_GPU
static vn_status open_gpu(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	const int           *early = NULL;
	const int            n_early = o->faulty ? vn_faulty_early(o->faulty, &early) : 0;
	const vn_gpu_options go = { .policy = o->policy,
		                        .device = o->device,
		                        .validate = o->validate,
		                        .guard = o->guard,
		                        .paged = o->paged,
		                        .block = o->block,
		                        .progress = !o->quiet,
		                        .threads = o->threads,
		                        .stop = stop_requested,
		                        .early = early,
		                        .n_early = n_early };
	vn_gpu              *gpu;
	vn_status            st = vn_gpu_create(vn_engine_plan(m, o), weights_of(m, o), &go, &gpu, err);

	if (!st)
		*e = (vn_engine) { "gpu", gpu, &vn_gpu_ops, vn_engine_plan(m, o)->n_values, vn_gpu_compiles(gpu) };
	return st;
}
#else
static vn_status open_gpu(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	(void)e, (void)m, (void)o;
	return vn_fail(err, VN_ERR_USAGE, "this vernier was built without the gpu engine (VERNIER_GPU=OFF)");
}
#endif

vn_status vn_engine_open_plain(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	*e = (vn_engine) { 0 };
	return o->gpu ? open_gpu(e, m, o, err) : open_ref(e, m, o, err);
}

void vn_engine_close(vn_engine *e)
{
	if (e->self)
		e->ops->destroy(e->self);
	*e = (vn_engine) { 0 };
}

/* engine.c: see engine.h. */
#include "capture/run/engine.h"

#include "capture/run/hybrid.h"
#include "capture/run/interrupt.h"
#include "libref/exec/ref.h"
#ifdef VERNIER_GPU
#include "libgpu/gpu.h"
#endif

static bool stop(void *ctx)
{
	(void)ctx;
	return vn_interrupted();
}

const vn_plan *vn_engine_plan(const vn_model *m, const vn_engine_options *o)
{
	return o->faulty ? vn_faulty_plan(o->faulty) : vn_model_plan(m);
}

const vn_tensor *vn_engine_weights(const vn_model *m, const vn_engine_options *o)
{
	return o->faulty ? vn_faulty_weights(o->faulty) : vn_model_weights(m);
}

/* ---- the reference ------------------------------------------------------------ */

static vn_status ref_forward(void *self, const int32_t *ids, int64_t n, const vn_taps *taps, vn_error *err)
{
	return vn_ref_forward(self, ids, n, taps, err);
}

static int64_t ref_position(void *self)
{
	return vn_ref_position(self);
}

static void ref_reset(void *self)
{
	vn_ref_reset(self);
}

static void ref_facts(void *self, vn_facts *f)
{
	vn_ref_facts(self, f);
}

static void ref_destroy(void *self)
{
	vn_ref_destroy(self);
}

static vn_status ref_begin(void *self, const int32_t *ids, int64_t n, const vn_taps *taps, vn_error *err)
{
	return vn_ref_begin(self, ids, n, taps, err);
}

static vn_status ref_run(void *self, int from, int to, vn_error *err)
{
	return vn_ref_run(self, from, to, err);
}

static vn_status ref_read(void *self, int value, void *data, vn_error *err)
{
	return vn_ref_read(self, value, data, err);
}

static vn_status ref_write(void *self, int value, const void *data, vn_error *err)
{
	return vn_ref_write(self, value, data, err);
}

/* It hands over at once. */
static vn_status ref_flush(void *self, vn_error *err)
{
	(void)self, (void)err;
	return VN_OK;
}

static vn_status ref_end(void *self, bool keep, vn_error *err)
{
	(void)err;
	vn_ref_end(self, keep);
	return VN_OK;
}

static vn_status open_ref(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	const vn_ref_options ro = { .policy = o->policy, .threads = o->threads, .progress = !o->quiet, .stop = stop };
	vn_ref   *ref;
	vn_status st = vn_ref_create(vn_engine_plan(m, o), vn_engine_weights(m, o), &ro, &ref, err);

	if (!st)
		*e = (vn_engine){ "ref", ref, ref_forward, ref_position, ref_reset, ref_facts, ref_destroy,
		                  ref_begin, ref_run, ref_read, ref_write, ref_flush, ref_end, vn_engine_plan(m, o)->n_values, false };
	return st;
}

/* ---- the gpu -------------------------------------------------------------------- */

#ifdef VERNIER_GPU
static vn_status gpu_forward(void *self, const int32_t *ids, int64_t n, const vn_taps *taps, vn_error *err)
{
	return vn_gpu_forward(self, ids, n, taps, err);
}

static int64_t gpu_position(void *self)
{
	return vn_gpu_position(self);
}

static void gpu_reset(void *self)
{
	vn_gpu_reset(self);
}

static void gpu_facts(void *self, vn_facts *f)
{
	vn_gpu_facts(self, f);
}

static void gpu_destroy(void *self)
{
	vn_gpu_destroy(self);
}

static vn_status gpu_begin(void *self, const int32_t *ids, int64_t n, const vn_taps *taps, vn_error *err)
{
	return vn_gpu_begin(self, ids, n, taps, err);
}

static vn_status gpu_run(void *self, int from, int to, vn_error *err)
{
	return vn_gpu_run(self, from, to, err);
}

static vn_status gpu_read(void *self, int value, void *data, vn_error *err)
{
	return vn_gpu_read(self, value, data, err);
}

static vn_status gpu_write(void *self, int value, const void *data, vn_error *err)
{
	return vn_gpu_write(self, value, data, err);
}

static vn_status gpu_flush(void *self, vn_error *err)
{
	return vn_gpu_flush(self, err);
}

static vn_status gpu_end(void *self, bool keep, vn_error *err)
{
	return vn_gpu_end(self, keep, err);
}

static vn_status open_gpu(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	const vn_gpu_options go = { .policy = o->policy, .device = o->device, .validate = o->validate, .guard = o->guard,
	                            .paged = o->paged, .block = o->block, .progress = !o->quiet, .stop = stop };
	vn_gpu   *gpu;
	vn_status st = vn_gpu_create(vn_engine_plan(m, o), vn_engine_weights(m, o), &go, &gpu, err);

	if (!st)
		*e = (vn_engine){ "gpu", gpu, gpu_forward, gpu_position, gpu_reset, gpu_facts, gpu_destroy,
		                  gpu_begin, gpu_run, gpu_read, gpu_write, gpu_flush, gpu_end,
		                  vn_engine_plan(m, o)->n_values, vn_gpu_compiles(gpu) };
	return st;
}
#else
static vn_status open_gpu(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	(void)e, (void)m, (void)o;
	return vn_fail(err, VN_ERR_USAGE, "this vernier was built without the gpu engine (VERNIER_GPU=OFF)");
}
#endif

/* ---- either ------------------------------------------------------------------------ */

vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	*e = (vn_engine){ 0 };
	if (o->n_force_ref || o->n_precise)
		return vn_hybrid_open(e, m, o, err);
	return o->gpu ? open_gpu(e, m, o, err) : open_ref(e, m, o, err);
}

void vn_engine_close(vn_engine *e)
{
	if (e->self)
		e->destroy(e->self);
	*e = (vn_engine){ 0 };
}

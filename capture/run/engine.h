/* engine.h: an open engine, and how the reference and the GPU are opened. vn_engine_open
 * (capture/run/hybrid.h) also opens hybrids of both.
 *
 * Owner    the model is borrowed and must outlive the engine.
 * Threads  one at a time.
 * Errors   as in libref/exec/ref.h and libgpu/gpu.h.
 */
#pragma once

#include "libref/model/model.h"
#include "libref/plan/engine.h"
#include "libref/plan/fault.h"
#include "libref/plan/policy.h"

typedef struct vn_engine {
	const char          *name; /* "ref", "gpu" */
	void                *self; /* NULL: not open */
	const vn_engine_ops *ops;
	int                  n_values; /* of the plan that it runs: the length of taps->want */
	bool compiles; /* gpu: it leaves compiled shaders for later runs, as none before it did; takes seconds */
} vn_engine;

typedef struct vn_engine_options {
	bool               gpu;
	vn_policy          policy;
	int                threads;         /* 0: one per processor; gpu: for weights and shaders */
	int                device;          /* gpu; -1: the best one */
	bool               validate, guard; /* gpu */
	bool               paged;           /* gpu: paged cache */
	int                block;           /* tokens per block; 0: 16 */
	bool               loaded;          /* ref: reads experts when the model is opened */
	bool               quiet;           /* no progress on the terminal */
	bool               mtp;             /* for who opens the model: with its head (vn_model_open_as) */
	/* If some nodes run elsewhere or in another precision, the engine is a hybrid
	 * (capture/run/hybrid.h); vn_engine_open_plain ignores these. Borrowed for the call. */
	const char *const *force_ref; /* gpu: globs of nodes that run on the reference */
	int                n_force_ref;
	const char *const *precise; /* "f32@GLOB"; the last one that matches a node applies */
	int                n_precise;
	const vn_faulty   *faulty; /* runs this plan and these weights; NULL: the model's own */
} vn_engine_options;

/* Returns the plan that the engine will run. */
const vn_plan *vn_engine_plan(const vn_model *m, const vn_engine_options *o);
/* Opens the reference or the GPU. Progress is shown on the terminal. A signal
 * (capture/run/interrupt.h) ends the current call with VN_ERR_INTERRUPTED. The GPU engine is
 * refused in builds without it. */
vn_status      vn_engine_open_plain(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);
void           vn_engine_close(vn_engine *e); /* safe on a zeroed one */

/* Returns the seconds that its calls have spent on compiling code for a device. Inline, so that
 * code that only runs an engine need not link every engine. */
static inline double vn_engine_compiling(const vn_engine *e)
{
	return e->ops->compiling ? e->ops->compiling(e->self) : 0.0;
}

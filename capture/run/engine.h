/* engine.h: opens the engine that a command asks for: the reference, the GPU, or a hybrid of both.
 *
 * Owner    the model is borrowed and must outlive the engine.
 * Threads  one at a time.
 * Errors   as libref/exec/ref.h and libgpu/gpu.h say.
 */
#ifndef VN_CAPTURE_ENGINE_H
#define VN_CAPTURE_ENGINE_H

#include "libref/model/model.h"
#include "libref/plan/engine.h"
#include "libref/plan/fault.h"
#include "libref/plan/policy.h"

typedef struct vn_engine {
	const char *name; /* "ref", "gpu" */
	void       *self; /* NULL: not open */
	const vn_engine_ops *ops;
	int         n_values; /* of the plan it runs: taps->want is as long */
	bool        compiles; /* gpu: its first call compiles shaders, which takes seconds */
} vn_engine;

typedef struct vn_engine_options {
	bool      gpu;
	vn_policy policy;
	int       threads;         /* ref; 0: one a processor */
	int       device;          /* gpu; -1: the best */
	bool      validate, guard; /* gpu */
	bool      paged;           /* gpu: the cache in blocks */
	int       block;           /* tokens of one; 0: 16 */
	bool      quiet;           /* no progress on the terminal */
	/* Some nodes elsewhere, or in another precision: then the engine is a hybrid
	 * one (capture/run/hybrid.h). Borrowed for the call. */
	const char *const *force_ref;  /* gpu: globs of nodes that run on the reference */
	int                n_force_ref;
	const char *const *precise;    /* "f32@GLOB": the last that matches a node holds */
	int                n_precise;
	const vn_faulty *faulty;   /* run this in place of the model's plan and weights; NULL: those */
} vn_engine_options;

/* Progress goes to the terminal; a signal (capture/run/interrupt.h) ends the call at
 * hand with VN_ERR_INTERRUPTED. The gpu engine is refused where it was not built in. */
const vn_plan   *vn_engine_plan(const vn_model *m, const vn_engine_options *o); /* what it is going to run */
const vn_tensor *vn_engine_weights(const vn_model *m, const vn_engine_options *o);
vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);
void      vn_engine_close(vn_engine *e); /* safe on a zeroed one */

#endif

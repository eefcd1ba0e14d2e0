/* synth.h: synthetic models of real shapes, for benchmarks and tests.
 *
 * Weights are a function of tensor name, element and seed: the same everywhere
 * and every time. They are scaled so that activations neither vanish nor
 * explode through any number of layers. The model says that it is synthetic:
 * nothing learned from its outputs holds for a trained one.
 */
#ifndef VN_LIBREF_MODEL_SYNTH_H
#define VN_LIBREF_MODEL_SYNTH_H

#include "libref/base/dtype.h"
#include "libref/base/error.h"
#include "libref/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

enum { VN_SYNTH_LAYERS = 1024 }; /* the most that a plan has */

typedef struct vn_synth_options {
	int      layers;   /* up to VN_SYNTH_LAYERS; 0: as many as the shape has */
	vn_dtype dtype;    /* of the weights in the file */
	uint64_t seed;
	bool     force;    /* replace a directory that holds such a model and nothing else */
	bool     progress;
} vn_synth_options;

/* The names of the shapes; NULL after the last. */
const char *vn_synth_shape(int i);

/* The plan of a shape; layers as above. */
vn_status vn_synth_plan(const char *shape, int layers, vn_plan **plan, vn_error *err);

/* Writes dir/config.json and dir/model.safetensors. Written beside it, as
 * dir.partial, and renamed when whole: a failure leaves what was there before,
 * and nothing else. A dir that holds any other file is refused, force or not.
 * Ignores SIGXFSZ from then on. */
vn_status vn_synth_write(const char *shape, const char *dir, const vn_synth_options *o, vn_error *err);

#endif

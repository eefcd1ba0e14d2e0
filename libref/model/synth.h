/* synth.h: makes synthetic models with the shapes of real ones, for benchmarks and tests.
 *
 * Each weight is a function of tensor name, element and seed, so it is the same everywhere. Weights
 * are scaled so that activations neither vanish nor explode in any number of layers. The model is
 * marked as synthetic: observations on its outputs do not apply to a trained model.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/base/error.h"
#include "libref/family/family.h"

#include <stdbool.h>
#include <stdint.h>

enum { VN_SYNTH_LAYERS = 1024 }; /* limit of a plan */

typedef struct vn_synth_options {
	int      layers; /* up to VN_SYNTH_LAYERS; 0: the number of the shape */
	vn_dtype dtype;  /* of the weights in the file */
	uint64_t seed;
	bool     force; /* replace a directory that holds such a model and nothing else */
	bool     progress;
} vn_synth_options;

/* Returns the name of shape i; NULL after the last. */
const char *vn_synth_shape(int i);

/* Makes the plan of a shape. layers: as in vn_synth_options. */
vn_status vn_synth_plan(const char *shape, int layers, vn_plan **plan, vn_error *err);

/* A tensor of the file: a weight, or the weights of all experts in one. */
typedef struct vn_synth_tensor {
	char     name[2 * VN_NAME_MAX];
	vn_shape shape;
} vn_synth_tensor;

/* How the file has weight w of the plan. Returns false if it lies in the tensor of another. Experts
 * that take a tensor's columns in turn are read by transformers from that tensor alone, others from
 * tensors of their own. */
bool vn_synth_stored(const vn_family *family, const vn_plan *p, int w, vn_synth_tensor *t);

/* Writes dir/config.json and dir/model.safetensors. They are written to dir.partial, which is
 * renamed when complete, so a failure changes nothing. A dir that holds any other file is refused,
 * even with force. Ignores SIGXFSZ from then on. */
vn_status vn_synth_write(const char *shape, const char *dir, const vn_synth_options *o, vn_error *err);

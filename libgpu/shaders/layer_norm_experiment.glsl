// layer_norm_experiment.glsl: the part of layer_norm.comp that an experiment changes
// (vn_experiment.norm.keep_mean); the others: root_experiment.glsl.
float mean_of(float sum) { return p.keep_mean != 0 ? 0.0 : sum / float(p.N); }

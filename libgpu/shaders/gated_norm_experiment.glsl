// gated_norm_experiment.glsl: the parts of gated_norm.comp that an experiment changes
// (vn_experiment.norm); the others: root_experiment.glsl.
float gated(float z)            { return p.gate == VN_SIGMOID ? 1.0 / (1.0 + exp_(-z)) : silu(z); }
float to_norm(float x, uint at) { return x * (p.gate_first != 0 ? gated(float(p.z.v[at])) : 1.0); }

// rms_norm_experiment.glsl: the parts of rms_norm.comp that an experiment changes
// (vn_experiment.norm); the others: root_experiment.glsl.
uint weight(uint n) { return n % p.G; }
bool by_eight()     { return false; }

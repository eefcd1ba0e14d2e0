// root.glsl: the divisor of a norm: sqrt(mean square + eps), or for l2_norm sqrt(sum of
// squares + eps). usual: the number of columns in that mean.
#if EXPERIMENT
#include "root_experiment.glsl"
#else
float root_of(float sum, float usual) { return sqrt(sum / usual + p.eps); }
float normed(float x)                 { return x; } // x / root, before it is multiplied by the weight
#endif

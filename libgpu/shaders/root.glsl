// root.glsl: the divisor of a norm: sqrt(mean square + eps), or for l2_norm sqrt(sum of
// squares + eps). columns: in that mean; 1 for l2_norm.
float root_of(float sum, float columns) { return sqrt(sum / columns + p.eps); }

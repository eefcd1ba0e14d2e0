// root.glsl: the divisor of a norm: sqrt(mean square + eps), or for l2_norm sqrt(sum of
// squares + eps). usual: the number of columns in that mean.
#if EXPERIMENT
// flags: 1 eps is outside the root, 2 the sum of squares is a half, 4 the normed number is rounded
// to half before it is multiplied by the weight.
float root_of(float sum, float usual)
{
	sum = (p.flags & 2u) != 0 ? as_half(sum) : sum;
	return (p.flags & 1u) != 0 ? sqrt(sum / p.divisor) + p.eps : sqrt(sum / p.divisor + p.eps);
}

float normed(float x) { return (p.flags & 4u) != 0 ? as_half(x) : x; }
#else
float root_of(float sum, float usual) { return sqrt(sum / usual + p.eps); }
float normed(float x)                 { return x; }
#endif

// root_experiment.glsl: root.glsl with the changes of an experiment (vn_experiment.norm).
// flags: 1 eps is outside the root, 2 the sum of squares is a half, 4 the normed number is rounded
// to half before it is multiplied by the weight.
float root_of(float sum, float usual)
{
	sum = (p.flags & 2u) != 0 ? as_half(sum) : sum;
	return (p.flags & 1u) != 0 ? sqrt(sum / p.divisor) + p.eps : sqrt(sum / p.divisor + p.eps);
}

float normed(float x) { return (p.flags & 4u) != 0 ? as_half(x) : x; }

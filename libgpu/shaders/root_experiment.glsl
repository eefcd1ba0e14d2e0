// root_experiment.glsl: root.glsl with the changes of an experiment (vn_experiment.norm).
float root_of(float sum, float usual)
{
	sum = p.sum_f16 != 0 ? as_half(sum) : sum;
	return p.eps_outside != 0 ? sqrt(sum / p.divisor) + p.eps : sqrt(sum / p.divisor + p.eps);
}

float normed(float x) { return p.first_f16 != 0 ? as_half(x) : x; }

// log_decay_experiment.glsl: the formula of log_decay.comp, in any form of an experiment
// (vn_decay_form).
float decay(float A, float u)
{
	float rate = -exp_(A);
	if (p.form == VN_DECAY_POSITIVE)
		rate = exp_(A);
	else if (p.form == VN_DECAY_RAW)
		rate = A;
	else if (p.form == VN_DECAY_NEGATED)
		rate = -A;
	return rate * (p.form == VN_DECAY_LINEAR ? u : softplus(u));
}

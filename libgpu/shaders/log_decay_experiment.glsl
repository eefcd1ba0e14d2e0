// log_decay_experiment.glsl: the formula of log_decay.comp, in any form of an experiment
// (vn_decay_form).
float decay(float A, float u)
{
	return (p.form == VN_DECAY_POSITIVE ? exp_(A) : p.form == VN_DECAY_RAW ? A
	        : p.form == VN_DECAY_NEGATED ? -A : -exp_(A)) *
	       (p.form == VN_DECAY_LINEAR ? u : softplus(u));
}

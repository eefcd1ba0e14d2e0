// log_decay_experiment.glsl: the formula of log_decay.comp, in any form of an experiment
// (vn_decay_form).
const uint POSITIVE = 1, RAW = 2, NEGATED = 3, LINEAR = 4;

float decay(float A, float u)
{
	return (p.form == POSITIVE ? exp_(A) : p.form == RAW ? A : p.form == NEGATED ? -A : -exp_(A)) *
	       (p.form == LINEAR ? u : softplus(u));
}

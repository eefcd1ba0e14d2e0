// root.glsl: what a norm divides by. divisor is the width of a row (l2_norm: 1) and
// eps stands under the root, unless an experiment says otherwise.
float root_of(float sum, float divisor, float eps, uint eps_outside)
{
	return eps_outside != 0 ? sqrt(sum / divisor) + eps : sqrt(sum / divisor + eps);
}

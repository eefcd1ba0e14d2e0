// root.glsl: what a norm divides by. divisor is the width of a row (l2_norm: 1) and eps
// stands under the root, unless an experiment says otherwise, in odd: 1 eps is outside it, 2 the
// sum of squares is a half, 4 what is normed is one before it meets the weight.
float root_of(float sum, float divisor, float eps, uint odd)
{
	sum = (odd & 2u) != 0 ? as_half(sum) : sum;
	return (odd & 1u) != 0 ? sqrt(sum / divisor) + eps : sqrt(sum / divisor + eps);
}

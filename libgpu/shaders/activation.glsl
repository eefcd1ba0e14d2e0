// activation.glsl: the activations of the families (vn_act).
#include "forms.glsl"

// erfc(z) exp(z^2) for z >= 0 is t exp(P(t)), t = 1 / (1 + z/2): a fit of degree 8
// to z = 9.5, where exp(-z^2) is 0 in float. With x = -z sqrt 2, exp(-z^2) is
// exp(-x^2/2), and x^2 is taken in two parts, for it is multiplied by its own size.
float gelu(float x)
{
	const float a = abs(x), t = 1.0 / (1.0 + a * 0.35355339);
	const float high = uintBitsToFloat(floatBitsToUint(a) & 0xFFFFF000u); // its square is exact
	float p = 0.0856283758;
	p = p * t - 0.589286632;
	p = p * t + 1.5455602268;
	p = p * t - 1.862182251;
	p = p * t + 0.9073744457;
	p = p * t - 0.2591436034;
	p = p * t + 0.4449952436;
	p = p * t + 0.9922031056;
	p = p * t - 1.2651490596;
	const float tail = t * exp_(-0.5 * high * high) * exp_(0.5 * (high - a) * (high + a) + p); // erfc(|x| / sqrt 2)
	return 0.5 * x * (x < 0.0 ? tail : 2.0 - tail);
}

float activation(uint act, float x)
{
	switch (act) {
	case VN_SILU:
		return silu(x);
	case VN_GELU:
		return gelu(x);
	case VN_GELU_TANH: // (1 + tanh u) / 2 = 1 / (1 + exp(-2u)); 2 sqrt(2/pi)
		return x / (1.0 + exp_(-1.5957691216 * (x + 0.044715 * x * x * x)));
	case VN_QUICK_GELU:
		return x / (1.0 + exp_(-1.702 * x));
	default: // sigmoid
		return 1.0 / (1.0 + exp_(-x));
	}
}

// map.glsl: operands of the shaders that go element by element, and the activations.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
	Real a, b, y; // act: b is not read
	uint n, act;  // act: VN_SILU...
	uint form;    // gated: VN_GATE_USUAL...
} p;

const uint SILU = 0, GELU = 1, GELU_TANH = 2, RELU = 4, QUICK_GELU = 5, IDENTITY = 6, TWO_SIGMOID = 7, SOFT_CAP = 8, AS_F16 = 9,
           AS_F16_SATURATED = 10, AS_F16_FLUSHED = 11, AS_F16_CUT = 12, AS_BF16_CUT = 13;
const uint PRODUCT = 1, BOTH = 2;

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

// tanh(x), without a difference of numbers that are alike: by its series near 0.
float tanh_(float x)
{
	const float a = abs(x), s = x * x;

	if (a < 0.25)
		return x * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0 - s * (17.0 / 315.0 - s * (62.0 / 2835.0)))));
	return sign(x) * (1.0 - 2.0 / (exp_(2.0 * a) + 1.0));
}

// As float16, towards 0: a step back where rounding went away from it.
float as_half_cut(float x)
{
	const float y = as_half(x);
	const uint  e = max(floatBitsToUint(x) >> 23 & 0xFFu, 113u); // 2^-14

	if (isnan(x) || isinf(x) || abs(y) <= abs(x))
		return y;
	return isinf(y) ? sign(x) * 65504.0 : y - sign(x) * uintBitsToFloat(e - 10u << 23);
}

float activate(float x)
{
	switch (p.act) {
	case SILU:
		return silu(x);
	case GELU:
		return gelu(x);
	case GELU_TANH: // (1 + tanh u) / 2 = 1 / (1 + exp(-2u)); 2 sqrt(2/pi)
		return x / (1.0 + exp_(-1.5957691216 * (x + 0.044715 * x * x * x)));
	case RELU: // a NaN stays one
		return x < 0.0 ? 0.0 : x;
	case QUICK_GELU:
		return x / (1.0 + exp_(-1.702 * x));
	case IDENTITY:
		return x;
	case TWO_SIGMOID:
		return 2.0 / (1.0 + exp_(-x));
	case SOFT_CAP:
		return 30.0 * tanh_(x / 30.0);
	case AS_F16:
		return as_half(x);
	case AS_F16_SATURATED:
		return isnan(x) ? x : clamp(as_half(x), -65504.0, 65504.0);
	case AS_F16_FLUSHED:
		return abs(as_half(x)) < 6.103515625e-5 ? 0.0 : as_half(x);
	case AS_F16_CUT:
		return as_half_cut(x);
	case AS_BF16_CUT:
		return isnan(x) ? x : uintBitsToFloat(floatBitsToUint(x) & 0xFFFF0000u);
	default: // sigmoid
		return 1.0 / (1.0 + exp_(-x));
	}
}

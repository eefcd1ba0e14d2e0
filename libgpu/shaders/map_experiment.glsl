// map_experiment.glsl: the activations and gated products that no family has (vn_act from VN_RELU
// on, vn_gate_form).
// tanh(x) without cancellation: by its series near 0.
float tanh_(float x)
{
	const float a = abs(x), s = x * x;

	if (a < 0.25)
		return x * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0 - s * (17.0 / 315.0 - s * (62.0 / 2835.0)))));
	return sign(x) * (1.0 - 2.0 / (exp_(2.0 * a) + 1.0));
}

// Rounds to float16 towards 0: one step back if rounding went away from 0.
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
	case VN_RELU: // a NaN stays one
		return x < 0.0 ? 0.0 : x;
	case VN_QUICK_GELU:
		return x / (1.0 + exp_(-1.702 * x));
	case VN_IDENTITY:
		return x;
	case VN_TWO_SIGMOID:
		return 2.0 / (1.0 + exp_(-x));
	case VN_SOFT_CAP:
		return 30.0 * tanh_(x / 30.0);
	case VN_AS_F16:
		return as_half(x);
	case VN_AS_F16_SATURATED:
		return isnan(x) ? x : clamp(as_half(x), -65504.0, 65504.0);
	case VN_AS_F16_FLUSHED:
		return abs(as_half(x)) < 6.103515625e-5 ? 0.0 : as_half(x);
	case VN_AS_F16_CUT:
		return as_half_cut(x);
	case VN_AS_BF16_CUT:
		return isnan(x) ? x : uintBitsToFloat(floatBitsToUint(x) & 0xFFFF0000u);
	default:
		return of_model(x);
	}
}

float gated(float gate, float up)
{
	return p.form == VN_GATE_PRODUCT ? activate(gate * up)
	                                 : activate(gate) * (p.form == VN_GATE_BOTH ? activate(up) : up);
}

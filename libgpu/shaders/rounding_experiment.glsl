// rounding_experiment.glsl: rounds a float to another format, as an experiment does. The result is
// a float again.

// Rounds to half, as half_bits. The half becomes a float by integers, because a device may lose
// subnormals in unpackHalf2x16.
float as_half(float x)
{
	const uint h = half_bits(x), e = h >> 10 & 0x1Fu, sign = (h & 0x8000u) << 16, m = h & 0x3FFu;

	if (e == 0)
		return uintBitsToFloat(floatBitsToUint(float(m) * 5.9604644775390625e-8) | sign);
	return uintBitsToFloat(sign | (e == 31 ? 0x7F800000u | m << 13 : (e + 112u) << 23 | m << 13));
}

// Rounds to bfloat16, to nearest, ties to even.
float as_bf16(float x)
{
	const uint u = floatBitsToUint(x);

	return (u & 0x7FFFFFFFu) > 0x7F800000u ? x : uintBitsToFloat(u + 0x7FFFu + (u >> 16 & 1u) & 0xFFFF0000u);
}

// Rounds x to float8, to nearest, ties to even. most: the largest number (e4m3: 448, e5m2: 57344);
// digits: mantissa bits; least: the biased exponent below which the spacing of numbers stays the
// same (2^-6: 121; 2^-14: 113).
float as_f8(float x, float most, uint least, uint digits)
{
	const float a = min(abs(x), most);
	const uint  e = max(floatBitsToUint(a) >> 23, least);
	const float unit = uintBitsToFloat(e - digits << 23);

	return isnan(x) ? x : sign(x) * (roundEven(a / unit) * unit);
}

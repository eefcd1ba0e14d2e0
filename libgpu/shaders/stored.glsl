// stored.glsl: stores a number and returns the stored (rounded) one,
// as another dispatch would read it.
#if STORE_F16
float put_stored(Real y, uint at, float x)
{
	const uint h = half_bits(x);

	Bits(y).v[at] = uint16_t(h);
	return unpackHalf2x16(h).x;
}

float stored(Real y, uint at) { return unpackHalf2x16(uint(Bits(y).v[at])).x; }

void unpack8(uvec4 w, out vec4 a, out vec4 b)
{
	a = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
	b = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
}

void put8_stored(Real y, uint at, inout vec4 a, inout vec4 b)
{
	const uvec4 w = uvec4(halves(a), halves(b));

	Words4(y).v[at / 8] = w;
	unpack8(w, a, b);
}

void stored8(Real y, uint at, out vec4 a, out vec4 b) { unpack8(Words4(y).v[at / 8], a, b); }
#else
float put_stored(Real y, uint at, float x)
{
	y.v[at] = x;
	return x;
}

float stored(Real y, uint at) { return y.v[at]; }

void put8_stored(Real y, uint at, inout vec4 a, inout vec4 b) { put8(y, at, a, b); }

void stored8(Real y, uint at, out vec4 a, out vec4 b)
{
	a = Real8(y).v[at / 8].a;
	b = Real8(y).v[at / 8].b;
}
#endif

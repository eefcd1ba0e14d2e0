// squares.glsl: the part of a lane in the sum of squares of a row of x: `width` numbers from `row`
// on, in eights if by_eight. precise: the bits are those of add_norm.comp.
float squares(uint row, uint width, bool by_eight)
{
	const uint lane = gl_LocalInvocationID.x;
	precise float ss = 0.0;

	if (by_eight)
		for (uint n = row / 8 + lane; n < (row + width) / 8; n += LANES) {
			const vec4 a = vec4(Real8(p.x).v[n].a), b = vec4(Real8(p.x).v[n].b);
			ss += ((a.x * a.x + a.y * a.y) + (a.z * a.z + a.w * a.w))
			    + ((b.x * b.x + b.y * b.y) + (b.z * b.z + b.w * b.w));
		}
	else
		for (uint n = lane; n < width; n += LANES) {
			const float x = float(p.x.v[row + n]);
			ss += x * x;
		}
	return ss;
}

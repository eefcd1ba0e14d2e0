// map_main.glsl: over all numbers, eight at a time where they lie so: one(e) is number e, eight(e) numbers 8e to 8e +
// 7.
void main()
{
	const uint eights = p.eights != 0 ? p.n / 8 : 0;

	for (uint e = gl_GlobalInvocationID.x; e < eights; e += gl_NumWorkGroups.x * 64)
		eight(e);
	for (uint e = eights * 8 + gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64)
		one(e);
}

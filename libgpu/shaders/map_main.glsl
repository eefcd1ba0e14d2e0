// map_main.glsl: main() of the shaders that go element by element. Calls eight(e) for elements 8e
// to 8e + 7 if they are aligned, else one(e) for element e.
void main()
{
	const uint eights = p.eights != 0 ? p.n / 8 : 0;

	for (uint e = gl_GlobalInvocationID.x; e < eights; e += gl_NumWorkGroups.x * 64)
		eight(e);
	for (uint e = eights * 8 + gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64)
		one(e);
}

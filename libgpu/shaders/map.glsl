// map.glsl: operands of the shaders that go element by element, and silu.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
	Real a, b, y; // act: b is not read
	uint n;
} p;

float silu(float x)
{
	return x / (1.0 + exp_(-x));
}

// map.glsl: operands of the shaders that go element by element, and the activations.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
	Real a, b, y; // act: b is not read
	uint n, act;  // act: VN_SILU...
	uint eights;  // not 0: a, b and y start at eight numbers
#if EXPERIMENT
	uint form;    // gated: VN_GATE_USUAL...
#endif
} p;

#include "activation.glsl"

float of_model(float x) { return activation(p.act, x); }

#if EXPERIMENT
#include "map_experiment.glsl"
#else
float activate(float x) { return of_model(x); }

float gated(float gate, float up) { return activate(gate) * up; }
#endif

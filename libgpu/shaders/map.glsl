// map.glsl: operands of the shaders that go element by element, and the activations.
layout(local_size_x = 64) in;
PUSH(vn_push_map);

#include "activation.glsl"

float activate(float x) { return activation(p.act, x); }

float gated(float gate, float up) { return activate(gate) * up; }

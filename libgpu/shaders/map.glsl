// map.glsl: operands of the shaders that go element by element, and the activations.
layout(local_size_x = 64) in;
PUSH(vn_push_map);

#include "activation.glsl"

float of_model(float x) { return activation(p.act, x); }

#if EXPERIMENT
#include "map_experiment.glsl"
#else
float activate(float x) { return of_model(x); }

float gated(float gate, float up) { return activate(gate) * up; }
#endif

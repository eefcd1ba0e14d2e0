// forms.glsl: numbers by which C chooses an activation: the enumerators of libref/plan/plan.h,
// which kernels.c compares.
#ifndef FORMS_GLSL
#define FORMS_GLSL

#ifndef FORM
#define FORM(name, number) const uint name = number;
#endif

FORM(VN_SILU, 0) FORM(VN_GELU, 1) FORM(VN_GELU_TANH, 2) FORM(VN_SIGMOID, 3)

#endif

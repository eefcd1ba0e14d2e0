// forms.glsl: numbers by which C chooses an activation, or pairs of columns: the enumerators of
// libref/plan/plan.h and rope.h, which kernels.c compares.
#ifndef FORMS_GLSL
#define FORMS_GLSL

#ifndef FORM
#define FORM(name, number) const uint name = number;
#endif

FORM(VN_SILU, 0) FORM(VN_GELU, 1) FORM(VN_GELU_TANH, 2) FORM(VN_SIGMOID, 3) FORM(VN_QUICK_GELU, 5)
FORM(VN_PAIR_HALVES, 0) FORM(VN_PAIR_NEIGHBOURS, 1) FORM(VN_PAIR_SORTED, 3)

#endif

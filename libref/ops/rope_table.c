/* rope_table.c */
#include "libref/ops/rope_table.h"
#include <math.h>
float vn_rope_cos(float a) { return (float)cos((double)a); }
float vn_rope_sin(float a) { return (float)sin((double)a); }

/* engine_choice.h: opens the engine that a command asks for: the reference, the GPU, or a hybrid of
 * both.
 *
 * Errors   as in capture/run/engine.h and capture/run/hybrid.h.
 */
#ifndef VN_CAPTURE_ENGINE_CHOICE_H
#define VN_CAPTURE_ENGINE_CHOICE_H

#include "capture/run/engine.h"

/* Opens a hybrid engine if o->force_ref or o->precise is given, else the reference or the GPU. */
vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err);

#endif

/* engine_choice.c: see engine_choice.h. */
#include "capture/run/engine_choice.h"

#include "capture/run/hybrid.h"

vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	return o->n_force_ref || o->n_precise ? vn_hybrid_open(e, m, o, err) : vn_engine_open_plain(e, m, o, err);
}

/* variants.h: the mistakes that a replay tries, as its file names them (variants.def). */
#pragma once

#include "libref/plan/fault.h"

/* Returns the row of this word; -1: there is none. */
int         vn_variant_find(const char *word);
vn_mistake  vn_variant_mistake(int row);
/* Returns its sentence: a format of at most two texts. */
const char *vn_variant_form(int row);

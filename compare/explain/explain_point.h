/* explain_point.h: explains one checkpoint: runs the strategies of trial/, estimate/,
 * rearrange/ and this folder in order. The result goes to t->x, which names the checkpoint and has
 * room for answers. */
#pragma once

#include "compare/trial/case.h"

/* Tries every strategy until one answers. like: the explanation of a similar checkpoint: only its
 * answers, its runner-up and an overflow of squares are tried; NULL: all. */
void vn_explain_point(vn_case *t, const vn_findings *like);
/* Tries one trial: a fault of the catalogue at every place that it fits, and at all of them
 * together. */
void vn_explain_with(vn_case *t, const vn_trial *h);
/* Called if other steps refuted the answer in t->x: tries the strategies after the catalogue.
 * fitted: a fitted answer was refuted; strategies that would only find it again are left out. */
void vn_explain_further(vn_case *t, bool fitted);

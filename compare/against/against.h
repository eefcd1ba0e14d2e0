/* against.h: judges a run while it is recorded (capture/run/against.h), by the metrics and limits
 * of a comparison.
 *
 * Each checkpoint is judged by itself, as `vernier compare` judges one without a floor: steps of
 * one token are not pooled, and operations are not replayed. Digests come first: equal digests of
 * finite numbers agree, and the reference's numbers are not read. A checkpoint cannot be judged if
 * the reference lacks it or has no digest of it, if it holds one number everywhere, or if it holds
 * NaN or infinities.
 */
#pragma once

#include "capture/run/against.h"

extern const vn_run_judge vn_against_judge;

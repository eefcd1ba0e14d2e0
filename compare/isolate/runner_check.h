/* runner_check.h: the command that drives another engine. */
#ifndef VN_COMPARE_RUNNER_CHECK_H
#define VN_COMPARE_RUNNER_CHECK_H

#include "compare/isolate/runner.h"

/* Runs the command with the toggles on[i] (n) in VERNIER_FORCE_REF; its standard output is
 * discarded. *good: the answer by exit status; a command that writes a recording must exit with 0.
 * VN_ERR_IO: it gave no answer. */
vn_status vn_runner_ask(const vn_runner *x, const bool *on, bool *good, vn_error *err);

#endif

/* error.h: how functions report failure: a vn_status for the caller, a line of text for the user.
 *
 * Every function that can fail for a reason outside the program returns a vn_status and fills the
 * caller's vn_error; VN_OK leaves the text alone. The text names the file and the object, what was
 * expected and what was found. It is written where the facts are known; callers add only what the
 * callee could not know. A NULL vn_error is allowed everywhere.
 */
#pragma once

#include "libref/base/freed.h"
#include "libref/base/status.h"

/* Fills err and returns status. Failures of the machine (VN_ERR_NOMEM, and VN_ERR_IO with such an
 * errno) are also noted (trouble.h). */
__attribute__((format(printf, 3, 4))) vn_status vn_fail(vn_error *err, vn_status status, const char *format, ...);

/* Puts "prefix: " before the text in err. Returns status unchanged. */
__attribute__((format(printf, 3, 4))) vn_status vn_context(vn_error *err, vn_status status, const char *format, ...);

/* show_values.h: writes the numbers of a tensor into a file. */
#pragma once

#include "capture/recording/recording.h"

/* Writes entry i (data: its numbers) to path, in the form that its ending selects. .txt or .csv:
 * one line per row of the last axis, with enough digits to give the same numbers back. .npy: the
 * same bits (bf16 and float8 as float32, which represents them exactly). Refuses an existing path
 * unless force. */
vn_status vn_show_values(const vn_entry *e, const void *data, const char *path, bool force, vn_error *err);
/* Does the path end in one of those forms? */
bool      vn_show_values_form(const char *path);

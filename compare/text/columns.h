/* columns.h: orders of a tensor's columns that hold the same numbers.
 *
 * The two of a rotated pair lie half a head apart (HuggingFace) or side by side (GGUF's Llama);
 * gate and up are two halves, or alternate. In the words of a name map the columns of a
 * tensor's last axis are "(2 freq)" in the one order and "(freq 2)" in the other.
 */
#ifndef VN_COMPARE_COLUMNS_H
#define VN_COMPARE_COLUMNS_H

#include "libref/base/arrange.h"
#include "libref/base/tensor.h"

#include <stddef.h>

/* How the candidate's columns lie, those of the reference being in the other order. */
typedef enum vn_column_order { VN_COLUMNS_SAME, VN_COLUMNS_PAIRS, VN_COLUMNS_HALVES, VN_N_COLUMNS } vn_column_order;

/* Where each column of `width`, an even number, of the reference is in the candidate. */
vn_arrange  vn_columns_arranged(vn_column_order lie, int64_t width);
/* "(freq 2)", "(2 freq)". */
const char *vn_columns_name(vn_column_order lie);
/* "a name map says so with axes: "token head (freq 2)", to_axes: "token head (2 freq)"". axes: the dims string, or "". */
void        vn_say_columns(vn_column_order lie, const char *axes, int rank, char *text, size_t room);

#endif

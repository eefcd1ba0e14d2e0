/* columns.h: the two orders in which engines store the columns of rotated pairs, and of gate and
 * up.
 *
 * The two columns of a rotated pair are half a head apart (HuggingFace) or adjacent (GGUF's Llama);
 * gate and up are two halves, or alternate. In a name map, the columns of the last axis are "(2
 * freq)" in the first order and "(freq 2)" in the second.
 */
#pragma once

#include "libref/base/arrange.h"
#include "libref/base/tensor.h"

#include <stddef.h>

/* The order of the candidate's columns, if the reference has the other one. */
typedef enum vn_column_order { VN_COLUMNS_SAME, VN_COLUMNS_PAIRS, VN_COLUMNS_HALVES, VN_N_COLUMNS } vn_column_order;

/* Returns where each column of the reference is in the candidate. width: the number of columns,
 * even. */
vn_arrange  vn_columns_arranged(vn_column_order order, int64_t width);
/* Returns "(freq 2)" or "(2 freq)". */
const char *vn_columns_name(vn_column_order order);
/* Writes the words for a name map: declare this order in a name map with
 * axes: "token head (freq 2)", to_axes: "token head (2 freq)". axes: the dims string, or "". */
void        vn_text_say_columns(vn_column_order order, const char *axes, int rank, char *text, size_t room);

/* rope_table.h */
#ifndef VN_LIBREF_OPS_ROPE_TABLE_H
#define VN_LIBREF_OPS_ROPE_TABLE_H
float vn_rope_cos(float angle);
float vn_rope_sin(float angle);
#endif

/* folds.h: a list of checkpoints in few words: one point in many steps and layers is one item. */
#pragma once

#include "compare/comparison/checkpoint.h"

/* The checkpoints of a list that have one point. */
typedef struct vn_fold {
	int first; /* checkpoint */
	int n;
	int step[2], layer[2]; /* the least and the largest */
} vn_fold;

/* Folds a list (n). Returns how many folds it has, of which the first `most` are written. */
int         vn_folds_of(const vn_checkpoint *checkpoint, const int *list, int n, vn_fold *fold, int most);
/* Writes "attn_context in steps 1 to 64, layers 0 and 1"; of a single checkpoint its label. Returns
 * text. */
const char *vn_fold_say(const vn_checkpoint *checkpoint, const vn_fold *fold, char text[VN_WORDS]);

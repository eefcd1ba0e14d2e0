/* folds.c: see folds.h. */
#include "compare/result/folds.h"

#include "libref/base/text.h"

#include <string.h>

static void widen(int range[2], int x)
{
	range[0] = x < range[0] ? x : range[0];
	range[1] = x > range[1] ? x : range[1];
}

int vn_folds_of(const vn_checkpoint *checkpoint, const int *list, int n, vn_fold *fold, int most)
{
	int folds = 0;

	for (int i = 0; i < n; i++) {
		const vn_checkpoint *p = &checkpoint[list[i]];
		int                  at = 0;
		while (at < folds && at < most &&
		       (strcmp(vn_point_of(&checkpoint[fold[at].first]), vn_point_of(p)) != 0 ||
		        (checkpoint[fold[at].first].layer < 0) != (p->layer < 0)))
			at++;
		if (at >= most) {
			folds = most + 1; /* others are not told apart */
			continue;
		}
		if (at == folds)
			fold[folds++] = (vn_fold) { list[i], 0, { p->step, p->step }, { p->layer, p->layer } };
		fold[at].n++;
		widen(fold[at].step, p->step);
		widen(fold[at].layer, p->layer);
	}
	return folds;
}

static void say_range(const char *what, const int range[2], char *text)
{
	if (range[0] == range[1])
		vn_text_add(text, VN_WORDS, "%s %d", what, range[0]);
	else
		vn_text_add(text, VN_WORDS, "%ss %d %s %d", what, range[0], range[1] == range[0] + 1 ? "and" : "to", range[1]);
}

const char *vn_fold_say(const vn_checkpoint *checkpoint, const vn_fold *fold, char text[VN_WORDS])
{
	const vn_checkpoint *p = &checkpoint[fold->first];
	const bool           steps = fold->step[1] > 0, layers = p->layer >= 0;
	const int            all = (fold->step[1] - fold->step[0] + 1) * (fold->layer[1] - fold->layer[0] + 1);
	char                 label[VN_LABEL];

	text[0] = 0;
	if (fold->n == 1) {
		vn_text_add(text, VN_WORDS, "%s", vn_label(p, label));
		return text;
	}
	vn_text_add(text, VN_WORDS, "%s ", vn_point_of(p));
	if (fold->n < all)
		vn_text_add(text, VN_WORDS, "%d times ", fold->n);
	vn_text_add(text, VN_WORDS, "in ");
	if (steps)
		say_range("step", fold->step, text);
	if (layers) {
		vn_text_add(text, VN_WORDS, steps ? ", " : "");
		say_range("layer", fold->layer, text);
	}
	vn_text_clean(text, VN_WORDS);
	return text;
}

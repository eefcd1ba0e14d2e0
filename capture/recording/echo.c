/* echo.c: see echo.h. */
#include "capture/recording/echo.h"
#include "capture/recording/logit_rows.h"

#include <math.h>

enum { FEWEST = 8 /* rows that say anything */ };

static vn_status count_rows(vn_choices *c, int64_t tokens, const int32_t *ids, vn_echo *e, vn_error *err)
{
	int64_t   n = 0, seen = 0, id;
	vn_status st = VN_OK;

	for (int64_t i = 0; i < tokens; i++)
		n += c->at[i].entry >= 0;
	const int64_t rows = n < VN_ECHO_ROWS ? n : VN_ECHO_ROWS;
	for (int64_t i = 0; i < tokens && !st; i++) {
		const bool recorded = c->at[i].entry >= 0;
		if (recorded && seen * rows / n != (seen + 1) * rows / n && !(st = vn_choices_read(c, i, &id, err))) {
			e->rows++;
			e->peaks += id == ids[i];
			e->repeats += i < tokens - 1 && ids[i + 1] == ids[i];
		}
		seen += recorded;
	}
	return st;
}

vn_status vn_echo_of(vn_recording *r, vn_echo *e, vn_error *err)
{
	const int32_t *ids = NULL;
	const int64_t  tokens = vn_recording_tokens(r, &ids, NULL);
	vn_choices     c;

	*e = (vn_echo) { 0 };
	if (tokens == 0 || vn_recording_batch(r) > 1)
		return VN_OK;
	vn_status st = vn_choices_open(&c, r, tokens, err);
	if (!st && c.width > 0)
		st = count_rows(&c, tokens, ids, e, err);
	vn_choices_close(&c);
	return st;
}

/* A model that predicts well repeats a token about as often as the text does. A model whose head
 * reads the embedding nearly always repeats it. Twice as often, and five in a hundred more, is
 * neither chance nor style; three standard errors avoid false alarms on short texts. */
bool vn_echoes(double share, double expected, int64_t n)
{
	return n >= FEWEST && share - 3 * sqrt(share * (1 - share) / (double)n) > 2 * expected + 0.05;
}

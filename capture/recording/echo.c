/* echo.c: see echo.h. */
#include "capture/recording/echo.h"
#include "capture/recording/logit_rows.h"

#include <math.h>
#include <stdlib.h>

enum { FEWEST = 8 /* rows that say anything */ };

static vn_status count_row(vn_recording *r, const vn_logit_row *at, int64_t width, const int32_t *id, bool last,
                           unsigned char *room, vn_echo *e, vn_error *err)
{
	const vn_status st = vn_recording_read(r, at->entry, at->row * width, width, room, err);

	if (st)
		return st;
	e->rows++;
	e->peaks += vn_argmax(room, vn_recording_entry(r, at->entry)->dtype, width) == id[0];
	e->repeats += !last && id[1] == id[0];
	return VN_OK;
}

static vn_status count_rows(vn_recording *r, const vn_logit_row *at, int64_t tokens, int64_t width, const int32_t *ids,
                            vn_echo *e, vn_error *err)
{
	unsigned char *room = malloc((size_t)width * 8);
	int64_t        n = 0, seen = 0;
	int            held = -1;
	vn_status      st = room ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %lld scores", (long long)width);

	for (int64_t i = 0; i < tokens; i++)
		n += at[i].entry >= 0;
	const int64_t rows = n < VN_ECHO_ROWS ? n : VN_ECHO_ROWS;
	for (int64_t i = 0; i < tokens && !st; i++) {
		if (at[i].entry < 0)
			continue;
		if (held >= 0 && held != at[i].entry)
			vn_recording_release(r, held);
		held = at[i].entry;
		if (seen * rows / n != (seen + 1) * rows / n)
			st = count_row(r, &at[i], width, ids + i, i == tokens - 1, room, e, err);
		seen++;
	}
	if (held >= 0)
		vn_recording_release(r, held);
	free(room);
	return st;
}

vn_status vn_echo_of(vn_recording *r, vn_echo *e, vn_error *err)
{
	const int32_t *ids = NULL;
	const int64_t  tokens = vn_recording_tokens(r, &ids, NULL);
	vn_logit_row  *at = NULL;
	int64_t        width = 0;

	*e = (vn_echo) { 0 };
	if (tokens == 0 || vn_recording_batch(r) > 1)
		return VN_OK;
	vn_status st = vn_logit_rows_of(r, tokens, &at, &width, err);
	if (!st && width > 0)
		st = count_rows(r, at, tokens, width, ids, e, err);
	free(at);
	return st;
}

/* A model that predicts well repeats a token about as often as the text does. A model whose head
 * reads the embedding nearly always repeats it. Twice as often, and five in a hundred more, is
 * neither chance nor style; three standard errors avoid false alarms on short texts. */
bool vn_echoes(double share, double expected, int64_t n)
{
	return n >= FEWEST && share - 3 * sqrt(share * (1 - share) / (double)n) > 2 * expected + 0.05;
}

/* message.c: see message.h. Every piece starts at a multiple of 8. */
#include "capture/store/message.h"

#include <stdlib.h>
#include <string.h>

static const int64_t ABSENT = -1; /* the length that marks a NULL text */

void vn_message_finish(vn_message *m)
{
	free(m->data);
	*m = (vn_message) { 0 };
}

static void put_padded_bytes(vn_message *m, const void *data, size_t bytes)
{
	const size_t padded = (bytes + 7) / 8 * 8;

	if (m->bad || padded > m->room - m->n) {
		const size_t room = 2 * (m->n + padded) + 1024;
		char        *moved = m->bad ? NULL : realloc(m->data, room);
		if (!moved) {
			m->bad = true;
			return;
		}
		m->data = moved;
		m->room = room;
	}
	if (bytes)
		memcpy(m->data + m->n, data, bytes);
	memset(m->data + m->n + bytes, 0, padded - bytes);
	m->n += padded;
}

void vn_message_put_int(vn_message *m, int64_t x)
{
	put_padded_bytes(m, &x, sizeof x);
}

void vn_message_put_bytes(vn_message *m, const void *data, size_t bytes)
{
	vn_message_put_int(m, (int64_t)bytes);
	put_padded_bytes(m, data, bytes);
}

void vn_message_put_row(vn_message *m, const void *data, size_t bytes)
{
	put_padded_bytes(m, data, bytes);
}

void vn_message_put_text(vn_message *m, const char *text)
{
	if (text)
		vn_message_put_bytes(m, text, strlen(text) + 1);
	else
		vn_message_put_int(m, ABSENT);
}

void vn_message_put_texts(vn_message *m, char *const *text, int64_t n)
{
	vn_message_put_int(m, n);
	for (int64_t i = 0; i < n; i++)
		vn_message_put_text(m, text[i]);
}

static const void *take_bytes(vn_message *m, size_t bytes)
{
	const size_t padded = (bytes + 7) / 8 * 8;
	const char  *from = m->data + m->at;

	if (m->bad || bytes > m->n - m->at || padded > m->n - m->at) {
		m->bad = true;
		return NULL;
	}
	m->at += padded;
	return from;
}

int64_t vn_take_int(vn_message *m)
{
	int64_t     x = 0;
	const void *from = take_bytes(m, sizeof x);
	if (from)
		memcpy(&x, from, sizeof x);
	return x;
}

const void *vn_take_bytes(vn_message *m, size_t *bytes)
{
	const int64_t n = vn_take_int(m);
	const void   *from = n < 0 ? NULL : take_bytes(m, (size_t)n);
	*bytes = from ? (size_t)n : 0;
	return from;
}

const char *vn_take_text(vn_message *m)
{
	size_t bytes;
	return vn_take_bytes(m, &bytes);
}

char **vn_take_texts(vn_message *m, int64_t *n)
{
	*n = vn_take_int(m);
	char **text = *n < 0 || m->bad ? NULL : malloc(((size_t)*n + 1) * sizeof *text);
	for (int64_t i = 0; text && i < *n; i++)
		text[i] = (char *)(uintptr_t)vn_take_text(m);
	m->bad |= !text;
	return text;
}

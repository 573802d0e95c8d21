/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three small members that a request and its work have in common, as one word: so they
 * are read, compared and copied at once.
 */
#ifndef IBCHAN_FORM_H
#define IBCHAN_FORM_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <asm/byteorder.h>

/* What struct ibchan_wr.form and struct ibchan_work.form are with these. */
#ifdef __BIG_ENDIAN
#define ibchan_form(num_sge, opcode, flags)				\
	((u32)(num_sge) << 16 | (u32)(opcode) << 8 | (u8)(flags))
#else
#define ibchan_form(num_sge, opcode, flags)				\
	((u16)(num_sge) | (u32)(opcode) << 16 | (u32)(u8)(flags) << 24)
#endif

static __always_inline u8 ibchan_form_opcode(u32 form)
{
	return form / ibchan_form(0, 1, 0);
}

/* One element, and no flags but @flags. */
static __always_inline bool ibchan_form_is_plain(u32 form, u8 flags)
{
	return (form & ibchan_form(U16_MAX, 0, flags ^ U8_MAX)) == ibchan_form(1, 0, 0);
}

#endif /* IBCHAN_FORM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members of a struct that one floor alone names. Kbuild defines IBCHAN_FLOOR_<floor> for the
 * files of a floor; in any other file a line that names such a member does not compile.
 */
#ifndef IBCHAN_ONLY_H
#define IBCHAN_ONLY_H

#if !defined(__CHECKER__) && defined(__has_attribute)
#if __has_attribute(unavailable)
#define IBCHAN_UNAVAILABLE(floor)	__attribute__((unavailable("only " floor "/ names it")))
#endif
#endif
#ifndef IBCHAN_UNAVAILABLE
#define IBCHAN_UNAVAILABLE(floor)
#endif

#ifdef IBCHAN_FLOOR_verbs
#define __verbs_only
#else
#define __verbs_only	IBCHAN_UNAVAILABLE("verbs")
#endif

#ifdef IBCHAN_FLOOR_channel
#define __channel_only
#else
#define __channel_only	IBCHAN_UNAVAILABLE("channel")
#endif

#ifdef IBCHAN_FLOOR_connect
#define __connect_only
#else
#define __connect_only	IBCHAN_UNAVAILABLE("connect")
#endif

#endif /* IBCHAN_ONLY_H */

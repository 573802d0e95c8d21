/* SPDX-License-Identifier: GPL-2.0-only */
/* What plugin.c uses of QEMU's interface for plugins, version 1. */
#ifndef PROFILE_PLUGIN_H
#define PROFILE_PLUGIN_H

#include <stddef.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

enum { INLINE_ADD_U64 };
enum { NO_REGISTERS };

/* What it calls. */
extern int qemu_plugin_version;
int qemu_plugin_install(unsigned long long id, const struct qemu_info *info, int argc,
			char **argv);

typedef void (*translated)(unsigned long long id, struct qemu_plugin_tb *tb);
typedef void (*executed)(unsigned int cpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(unsigned long long id, translated call);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
unsigned long long qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						void *counter, unsigned long long add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed call,
					    int registers, void *data);

#endif /* PROFILE_PLUGIN_H */

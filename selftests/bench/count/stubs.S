/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module calls of the kernel on the way of a post. Each function does as little as it
 * can: what the kernel spends there is not counted.
 */
	.text

	.macro begin name
	.globl \name
	.type \name, @function
\name:
	.endm

	.macro end name
	.size \name, . - \name
	.endm

	.macro nothing name
	begin \name
	ret
	end \name
	.endm

	.macro zero name
	begin \name
	xor %eax, %eax
	ret
	end \name
	.endm

	nothing __fentry__
	nothing __x86_return_thunk
	nothing _raw_spin_lock
	nothing _raw_spin_unlock
	nothing _raw_spin_lock_bh
	nothing _raw_spin_unlock_bh
	nothing __local_bh_enable_ip
	nothing __rcu_read_lock
	nothing __rcu_read_unlock
	nothing __check_object_size
	nothing __init_waitqueue_head
	nothing tasklet_setup
	nothing mutex_lock
	nothing mutex_unlock
	zero __SCT__cond_resched
	zero __SCT__might_resched
	zero xa_load

	begin count_save_flags
	pushf
	pop %rax
	ret
	end count_save_flags

	begin __list_add_valid
	mov $1, %eax
	ret
	end __list_add_valid

	begin __get_user_4
	mov (%rax), %edx
	xor %eax, %eax
	ret
	end __get_user_4

	begin __put_user_4
	mov %eax, (%rcx)
	xor %ecx, %ecx
	ret
	end __put_user_4

	begin _copy_from_user
	mov %rdx, %rcx
	rep movsb
	xor %eax, %eax
	ret
	end _copy_from_user

	begin _copy_to_user
	mov %rdx, %rcx
	rep movsb
	xor %eax, %eax
	ret
	end _copy_to_user

	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	begin __x86_indirect_thunk_\reg
	jmp *%\reg
	end __x86_indirect_thunk_\reg
	.endr

	.section .note.GNU-stack, "", @progbits

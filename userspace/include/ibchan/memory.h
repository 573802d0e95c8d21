/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: protection domains, memory regions, remote regions. Include <ibchan.h>. */
#ifndef _IBCHAN_MEMORY_H
#define _IBCHAN_MEMORY_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * ibchan_pd_alloc() - make a protection domain
 * @device: open
 * @pd: where to put it
 * @error: details; NULL is fine
 *
 * Memory and channels meet only inside one.
 *
 * Return: 0; -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>.
 */
int ibchan_pd_alloc(struct ibchan_device *device, struct ibchan_pd **pd,
		    struct ibchan_error *error);

/**
 * ibchan_pd_free() - free a protection domain
 * @pd: NULL is fine
 *
 * Return: 0; -EBUSY: a memory region or a channel of it exists.
 */
int ibchan_pd_free(struct ibchan_pd *pd);

/**
 * struct ibchan_mr_params - the memory to register
 * @size: sizeof(struct ibchan_mr_params)
 * @access: IBCHAN_ACCESS_*; remote write and atomic need local write
 * @addr: first byte; any alignment
 * @length: bytes, 1 and up
 */
struct ibchan_mr_params {
	__u32 size;
	__u32 access;
	void *addr;
	size_t length;
};

/**
 * ibchan_mr_reg() - pin and register memory
 * @pd: where it may be used
 * @params: the range and what it allows
 * @mr: where to put it
 * @error: details; NULL is fine
 *
 * The pages are charged to RLIMIT_MEMLOCK, unless the caller has CAP_IPC_LOCK. The range stays
 * registered, and its pages pinned, when the process unmaps it.
 *
 * Without local write the mapping may be read-only. On Linux 6.1 a shared one then takes no more
 * pages than a fast registration (soft-RoCE: 512), and of a private one the process gets a copy of
 * each page, so that it grows by the whole range. With local write a shared mapping of a file on
 * storage is refused: map it from a tmpfs, from memfd_create(2) or from huge pages.
 *
 * Buffers: the range may be used freely until a work names it. With a remote access, peers may use
 * it from the time they know its key until ibchan_mr_dereg() has returned 0.
 *
 * Return: 0; -EINVAL: no bytes, or an access that cannot be; -EOPNOTSUPP: the device cannot
 * register user memory safely; -ENOMEM: no memory, or RLIMIT_MEMLOCK (then @error names used, limit
 * and needed); -EFAULT: not all of the range is mapped, or, for local write, may be written;
 * -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>.
 */
int ibchan_mr_reg(struct ibchan_pd *pd, const struct ibchan_mr_params *params,
		  struct ibchan_mr **mr, struct ibchan_error *error);

/**
 * ibchan_mr_reg_local() - register memory for this side's own works
 * @pd: where it may be used
 * @addr: first byte
 * @length: bytes
 * @mr: where to put it
 * @error: details; NULL is fine
 *
 * ibchan_mr_reg() with IBCHAN_ACCESS_LOCAL: no peer can name it.
 *
 * Buffers: the range may be used freely until a work names it.
 *
 * Return: as ibchan_mr_reg().
 */
int ibchan_mr_reg_local(struct ibchan_pd *pd, void *addr, size_t length,
			struct ibchan_mr **mr, struct ibchan_error *error);

/**
 * ibchan_mr_reg_shared() - register memory that peers may read and write
 * @pd: where it may be used
 * @addr: first byte
 * @length: bytes
 * @mr: where to put it
 * @error: details; NULL is fine
 *
 * ibchan_mr_reg() with IBCHAN_ACCESS_SHARED. A peer that learns its remote region
 * can write whenever it likes.
 *
 * Buffers: as ibchan_mr_reg() says of a remote access.
 *
 * Return: as ibchan_mr_reg().
 */
int ibchan_mr_reg_shared(struct ibchan_pd *pd, void *addr, size_t length,
			 struct ibchan_mr **mr, struct ibchan_error *error);

/**
 * struct ibchan_dmabuf_params - the part of a dma-buf to register
 * @size: sizeof(struct ibchan_dmabuf_params)
 * @access: IBCHAN_ACCESS_*; remote write and atomic need local write
 * @fd: of the dma-buf
 * @reserved: 0
 * @addr: where the caller has mapped the first byte, or NULL; ibchan_mr_addr() returns it
 * @length: bytes, 1 and up
 * @offset: of the first byte, from the start of the dma-buf
 */
struct ibchan_dmabuf_params {
	__u32 size;
	__u32 access;
	int fd;
	__u32 reserved;
	void *addr;
	size_t length;
	__u64 offset;
};

/**
 * ibchan_mr_reg_dmabuf() - register memory of an exporter
 * @pd: where it may be used
 * @params: the range and what it allows
 * @mr: where to put it
 * @error: details; NULL is fine
 *
 * The memory need not be mapped: elements name an offset in the region. The region holds the
 * dma-buf; its descriptor and its mappings may go at any time. Nothing is charged to
 * RLIMIT_MEMLOCK.
 *
 * So far only soft devices can (IBCHAN_DEVICE_DMABUF among the device's caps): the exporter maps
 * the dma-buf for the CPU. To it the region is one access by the CPU, which begins here; the
 * program has to keep its works apart from what other devices do with the dma-buf meanwhile.
 *
 * Buffers: as ibchan_mr_reg() says, as far as other users of the dma-buf allow.
 *
 * Return: 0; -EINVAL: no bytes, an access that cannot be, a range that leaves the dma-buf, a
 * descriptor of something else, or a reserved member that is not zero; with remote access also more
 * pages than the device can register at a time (soft-RoCE: 512); -EBADF: no open file; -EACCES: the
 * dma-buf was not opened for reading, or for writing where the access has local write; -EOPNOTSUPP:
 * the device has DMA of its own, the exporter has no mapping for the CPU, or none in memory with
 * pages (@error says which); -EINTR: a signal ended the wait for what others do with the memory;
 * -ENOMEM; -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>; the exporter's errno.
 */
int ibchan_mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf_params *params,
			 struct ibchan_mr **mr, struct ibchan_error *error);

/**
 * ibchan_mr_dereg() - unregister memory
 * @mr: NULL is fine
 *
 * Buffers: once this has returned 0, no peer reaches the memory any more, and no work names it. It
 * may be unmapped before as well: its pages stay as they are until then.
 *
 * Return: 0; -EBUSY: a posted work uses it.
 */
int ibchan_mr_dereg(struct ibchan_mr *mr);

/**
 * ibchan_mr_addr() - where a memory region begins
 * @mr: registered
 *
 * Return: its first byte, as it was registered.
 */
void *ibchan_mr_addr(const struct ibchan_mr *mr);

/**
 * ibchan_mr_length() - how long a memory region is
 * @mr: registered
 *
 * Return: bytes.
 */
__u64 ibchan_mr_length(const struct ibchan_mr *mr);

/* Bytes of a remote region on the wire: address, length, key. */
#define IBCHAN_REMOTE_REGION_SIZE	20

/**
 * struct ibchan_remote_region - a range of a peer's memory
 * @addr: of its first byte, as the peer registered it
 * @length: bytes
 * @rkey: the key to it
 * @reserved: 0
 */
struct ibchan_remote_region {
	__u64 addr;
	__u64 length;
	__u32 rkey;
	__u32 reserved;
};

/**
 * ibchan_mr_remote_region() - the remote region by which a peer names this memory
 * @mr: registered with a remote access
 * @region: where to put it
 *
 * Return: 0; -EACCES: @mr allows no remote access.
 */
int ibchan_mr_remote_region(const struct ibchan_mr *mr, struct ibchan_remote_region *region);

/**
 * ibchan_remote_region_sub() - a part of a remote region
 * @region: the whole
 * @offset: from its first byte
 * @length: bytes of the part; 0 is allowed
 * @sub: where to put the part; may be @region itself
 *
 * Return: 0; -EINVAL: the part does not lie inside the whole, or goes past the highest
 * address; @sub is as it was.
 */
int ibchan_remote_region_sub(const struct ibchan_remote_region *region, __u64 offset, __u64 length,
			     struct ibchan_remote_region *sub);

/**
 * ibchan_remote_region_sub_unchecked() - a part of a remote region, as given
 * @region: the whole
 * @offset: from its first byte
 * @length: bytes of the part
 *
 * Return: the part. If it leaves the whole, only the peer's device can notice.
 */
struct ibchan_remote_region
ibchan_remote_region_sub_unchecked(const struct ibchan_remote_region *region,
				   __u64 offset, __u64 length);

/**
 * ibchan_remote_region_nth() - an element of the array that a region begins with
 * @region: the whole
 * @size: bytes of an element
 * @index: 0 and up
 * @sub: where to put the element; may be @region itself
 *
 * Return: 0; -EINVAL: the element does not lie inside the whole, also where its
 * offset would wrap around; @sub is as it was.
 */
int ibchan_remote_region_nth(const struct ibchan_remote_region *region, __u64 size, __u64 index,
			     struct ibchan_remote_region *sub);

/**
 * ibchan_remote_region_element - an element of a type of such an array
 * @region: the whole
 * @type: of an element
 * @index: 0 and up
 * @sub: where to put the element
 *
 * Return: as ibchan_remote_region_nth().
 */
#define ibchan_remote_region_element(region, type, index, sub)		\
	ibchan_remote_region_nth(region, sizeof(type), index, sub)

/**
 * ibchan_remote_region_field - a member of the struct that a region begins with
 * @region: the whole
 * @type: the struct
 * @member: of it
 * @sub: where to put the member
 *
 * Return: 0; -EINVAL: the region ends before the member does.
 */
#define ibchan_remote_region_field(region, type, member, sub)		\
	ibchan_remote_region_sub(region, offsetof(type, member),	\
				 sizeof(((type *)0)->member), sub)

/**
 * ibchan_remote_region_to_bytes() - for the wire, in network order
 * @region: to encode
 * @bytes: IBCHAN_REMOTE_REGION_SIZE bytes
 *
 * The form is that of ibchan_remote_pack() in the kernel API: the peer may be a kernel consumer.
 */
void ibchan_remote_region_to_bytes(const struct ibchan_remote_region *region, void *bytes);

/**
 * ibchan_remote_region_from_bytes() - from the wire
 * @region: where to put it
 * @bytes: the bytes that the peer sent
 * @size: how many bytes
 *
 * Return: 0; -EINVAL: not IBCHAN_REMOTE_REGION_SIZE bytes, or the range wraps around.
 */
int ibchan_remote_region_from_bytes(struct ibchan_remote_region *region,
				    const void *bytes, size_t size);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_MEMORY_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host channel adapter for tests: an ib_device that behaves like hardware and reaches
 * memory only as hardware does. It has no wire: the HCAs of one machine reach each other.
 *
 * Its bus device is QEMU's `edu`, whose registers are not used: behind an IOMMU, what is
 * mapped for that device is all that the HCA can reach. Every access asks the IOMMU's table
 * at that moment, so an access to memory that was given back too early is seen and reported.
 *
 *	main.c		parameters, presets, the PCI driver, registration
 *	device.c	what a device, its ports and its addresses are like
 *	memory.c	regions, and how bytes are reached and moved
 *	cq.c		completion queues and their events
 *	qp.c		queue pairs and posting
 *	engine.c	what happens to a posted work
 *	mad.c		management packets, which rdma_cm connects by
 *	shadow.c	what is mapped for the device, in which direction
 *
 * One lock guards everything, so that what two HCAs do to each other needs no lock order. No
 * callback of a consumer runs under it.
 */
#ifndef HCA_H
#define HCA_H

#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/rbtree_types.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#define HCA_PORTS	2
#define HCA_VECTORS	8
#define HCA_MAX		4
#define HCA_GIDS	16
#define HCA_PKEYS	3

/* A queue's depth and a cq's entries, at most. */
#define HCA_MAX_WR	16384
#define HCA_MAX_CQE	BIT(20)

/* Elements of a work, and its bytes of inline data, at most; a preset may have fewer. */
#define HCA_MAX_SGE	32
#define HCA_MAX_INLINE	512

/* A write or a read is moved in steps of so many bytes; between them others have the lock. */
#define HCA_STEP	(64 * 1024)

/* No region has this one. */
#define HCA_RESERVED_LKEY	0xffffff00U

/* What a consumer must never have the device do; each is reported and counted. */
enum hca_fault {
	HCA_UNMAPPED,		/* the bytes are not mapped for the device */
	HCA_DIRECTION,		/* they are, for the other direction */
	HCA_BEYOND_MAPPING,	/* they are not part of any mapping, only of its page */
	HCA_BEYOND_REGION,	/* a local element leaves its region */
	HCA_NO_REGION,		/* a local element's region is gone, or not valid */
	HCA_CQ_OVERRUN,		/* a completion finds no room */
	HCA_BAD_UNMAP,		/* unmapped in another way than it was mapped */
	HCA_FAULTS
};

/* What may stay when it is to be destroyed, in the order of the parameter. */
enum hca_destroy { HCA_DESTROY_QP, HCA_DESTROY_CQ, HCA_DESTROY_MR, HCA_DESTROYS };

/**
 * struct hca_preset - what a device is like
 * @name: value of the parameter `like`
 * @driver_id: of the driver that it is like
 * @max_sge: elements of a work
 * @max_inline: bytes that a kernel queue pair takes inline
 * @max_fast_reg_pages: pages of a fast registration; 0: it has none
 * @vectors: completion vectors
 * @local_dma_lkey: it has a key for all memory
 * @lkey: that key
 * @virt_dma: the driver wants virtual addresses for DMA addresses
 * @reports_missed: ib_req_notify_cq() tells of completions that nobody was told of
 * @arms_nothing: the cq is not armed then
 * @grh_required: ports of InfiniBand need a global route header
 * @roce_v1: ports of Ethernet have each address twice, of RoCE v1 and of v2
 * @registers_by_dma: a region's address less the DMA address of its first page is the offset there
 */
struct hca_preset {
	const char *name;
	enum rdma_driver_id driver_id;
	u32 max_sge;
	u32 max_inline;
	u32 max_fast_reg_pages;
	u32 vectors;
	bool local_dma_lkey;
	u32 lkey;
	bool virt_dma;
	bool reports_missed;
	bool arms_nothing;
	bool grh_required;
	bool roce_v1;
	bool registers_by_dma;
};

/**
 * struct hca_port - a port of a device
 * @lid: local identifier, InfiniBand only
 * @gids: addresses
 * @pkeys: partitions
 * @ndev: network device, Ethernet only; there is a reference
 */
struct hca_port {
	u16 lid;
	union ib_gid gids[HCA_GIDS];
	u16 pkeys[HCA_PKEYS];
	struct net_device *ndev;
};

struct hca_device {
	struct ib_device ib;
	struct device *bus;
	const struct hca_preset *preset;
	struct iommu_domain *domain;
	struct list_head link;
	struct notifier_block netdevs;
	int number;
	bool is_roce;
	bool leaving;
	u32 cqs_on_vector[HCA_VECTORS];
	u32 next_key;
	u32 next_qpn;
	struct rb_root_cached mappings;
	struct hca_port ports[HCA_PORTS];
	struct xarray mrs;
	struct xarray qps;
	struct hca_qp *gsi[HCA_PORTS];
};

enum hca_mr_kind { HCA_MR_DMA, HCA_MR_USER, HCA_MR_FAST };

/**
 * struct hca_mr - a memory region
 * @ib: its key is the consumer's until a fast registration has run
 * @kind: how it was made
 * @umem: pages of user memory
 * @table: pages that ib_map_mr_sg() was given
 * @num_table: how many
 * @max_pages: room in both
 * @valid: the device takes its key
 * @key: which
 * @access: enum ib_access_flags
 * @iova: address of its first byte
 * @length: bytes
 * @pages: DMA addresses
 * @num_pages: how many
 * @shift: log2 of a page's size
 */
struct hca_mr {
	struct ib_mr ib;
	enum hca_mr_kind kind;
	struct ib_umem *umem;
	u64 *table;
	u32 num_table;
	u32 max_pages;
	bool valid;
	u32 key;
	int access;
	u64 iova;
	u64 length;
	u64 *pages;
	u32 num_pages;
	u32 shift;
};

struct hca_cqe {
	struct ib_wc wc;
	struct hca_qp *qp;
	u32 slot;
	bool is_send;
	bool solicited;
};

struct hca_cq {
	struct ib_cq ib;
	struct hca_cqe *ring;
	u32 size;
	u32 head;
	u32 tail;
	u32 vector;
	enum ib_cq_notify_flags armed;
	u32 held;
	u16 moderation_count;
	u16 moderation_us;
	struct irq_work irq;
	struct work_struct work;
	struct delayed_work period;
};

/* Nothing but the core's. */
struct hca_pd {
	struct ib_pd ib;
};

struct hca_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
	u8 network;
};

/* A posted work of either queue. */
struct hca_wqe {
	u64 wr_id;
	ktime_t due;
	enum ib_wr_opcode opcode;
	int flags;
	u32 num_sge;
	u32 length;
	u32 moved;
	u32 slot;
	union {
		__be32 imm;
		u32 invalidate;
	};
	u64 remote;
	u32 rkey;
	u64 compare_add;
	u64 swap;
	struct hca_mr *mr;
	int access;
	struct hca_ah *ah;
	u32 remote_qpn;
	struct ib_sge sge[HCA_MAX_SGE];
	u8 data[HCA_MAX_INLINE];
};

/**
 * struct hca_queue - works of a queue pair, or of a shared receive queue
 * @ring: @size works
 * @posted: works ever posted
 * @done: works ever ended
 * @freed: works whose completion was polled, or one behind them: their slots are free
 */
struct hca_queue {
	struct hca_wqe *ring;
	u32 size;
	u32 posted;
	u32 done;
	u32 freed;
};

/**
 * struct hca_srq - a shared receive queue
 * @ib: the core's; its domain, and not a queue pair's, is that of the receives' regions
 * @queue: receives that no queue pair has taken
 * @max_sge: elements of each
 * @limit: when fewer are left, that is told once; 0: it is not
 * @limit_work: tells it
 */
struct hca_srq {
	struct ib_srq ib;
	struct hca_queue queue;
	u32 max_sge;
	u32 limit;
	struct work_struct limit_work;
};

/**
 * struct hca_qp - a queue pair
 * @ib: the core's
 * @state: enum ib_qp_state
 * @attr: what ib_modify_qp() has set
 * @init: what it was made with
 * @sq: works to send
 * @rq: works to receive
 * @work: runs the send queue, and flushes both
 * @events: bits of enum ib_event_type that are to be told
 * @event_work: tells them
 * @retries: time-outs since something was acknowledged
 * @rnr_retries: refusals for want of a receive since one was accepted
 * @retry_at: not before this
 * @established: IB_EVENT_COMM_EST was told
 * @asked_to_fail: its consumer has moved it to ERR
 * @took_last: it takes no receive of its shared queue any more, which was told
 */
struct hca_qp {
	struct ib_qp ib;
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct hca_queue sq;
	struct hca_queue rq;
	struct delayed_work work;
	unsigned long events;
	struct work_struct event_work;
	u32 retries;
	u32 rnr_retries;
	ktime_t retry_at;
	bool established;
	bool asked_to_fail;
	bool took_last;
};

extern spinlock_t hca_lock;
extern struct list_head hca_devices;
extern struct workqueue_struct *hca_wq;
extern unsigned int hca_delay_us;
extern unsigned int hca_jitter_us;
extern bool hca_null;
extern bool hca_hard_irq;
extern bool hca_flushes_when_asked;
extern unsigned int hca_lost_attribute;
extern atomic_t hca_port_queries;

#define HCA_COMMAND_BYTES	256

/*
 * A command to a firmware has its arguments in memory that drivers allocate for it, also where
 * something ends: that may start I/O, unless the caller's scope forbids it. A mode that is there
 * to measure consumers does without.
 */
static inline void hca_command(void)
{
	if (!hca_null)
		kfree(kmalloc(HCA_COMMAND_BYTES, GFP_KERNEL | __GFP_NOFAIL));
}

static inline struct hca_device *to_hca(struct ib_device *ib)
{
	return container_of(ib, struct hca_device, ib);
}

static inline struct hca_qp *to_hca_qp(struct ib_qp *ib)
{
	return container_of(ib, struct hca_qp, ib);
}

static inline struct hca_cq *to_hca_cq(struct ib_cq *ib)
{
	return container_of(ib, struct hca_cq, ib);
}

static inline struct hca_mr *to_hca_mr(struct ib_mr *ib)
{
	return container_of(ib, struct hca_mr, ib);
}

/* main.c */
bool hca_keeps(enum hca_destroy what);
unsigned int hca_faults_of(enum hca_fault fault);
void hca_expect_faults(bool expects);
struct hca_device *hca_first(void);
void hca_report(struct hca_device *hca, enum hca_fault fault, const char *what, u64 addr);

/* device.c */
int hca_set_lid(u32 number, u32 port, u16 lid);
extern const struct ib_device_ops hca_device_ops;
void hca_ports_init(struct hca_device *hca);
int hca_set_pkey(u32 number, u32 port, u32 index, u16 pkey);
int hca_netdevs_take(struct hca_device *hca, char *const *names);
int hca_netdev_watch(struct hca_device *hca);
void hca_netdev_unwatch(struct hca_device *hca);
void hca_netdevs_give_back(struct hca_device *hca);

/* memory.c */
struct hca_cursor {
	struct hca_device *hca;
	struct ib_pd *pd;
	const struct ib_sge *sge;
	u32 num;
	u64 skip;
	u8 *data;
	int remote_access;
};

extern const struct ib_device_ops hca_memory_ops;
int hca_move(struct hca_cursor *to, struct hca_cursor *from, u32 bytes);
u8 *hca_reach(struct hca_cursor *cursor, bool writes, u32 *bytes);
void hca_advance(struct hca_cursor *cursor, u32 bytes);
int hca_fast_register(struct hca_device *hca, const struct hca_wqe *wqe);
int hca_invalidate(struct hca_device *hca, struct ib_pd *pd, u32 key);

/* cq.c */
extern const struct ib_device_ops hca_cq_ops;
void hca_cq_push(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited);
void hca_cq_clean(struct hca_cq *cq, const struct hca_qp *qp);

/* qp.c */
extern const struct ib_device_ops hca_qp_ops;
void hca_qp_tell(struct hca_qp *qp, enum ib_event_type event);
struct hca_queue *hca_recv_queue(struct hca_qp *qp);
struct ib_pd *hca_recv_pd(const struct hca_qp *qp);
void hca_srq_taken(struct hca_qp *qp);

/* engine.c */
void hca_engine_work(struct work_struct *work);
void hca_engine_run(struct hca_qp *qp);
void hca_complete_recv(struct hca_qp *qp, struct ib_wc *wc, bool solicited);
struct hca_wqe *hca_queue_next(struct hca_queue *queue);
struct hca_port *hca_port_of(const struct hca_qp *qp);
bool hca_port_is_up(const struct hca_port *port);

/* mad.c */
int hca_send_datagram(struct hca_qp *qp, struct hca_wqe *wqe);

/* shadow.c */
int hca_shadow_start(void);
void hca_shadow_stop(void);
void hca_shadow_add(struct hca_device *hca);
void hca_shadow_remove(struct hca_device *hca);
enum hca_fault hca_shadow_check(struct hca_device *hca, u64 addr, u32 *bytes, bool writes);

#endif /* HCA_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Descriptors that go to another process in a message.
 */
#ifndef TEST_DESCRIPTOR_H
#define TEST_DESCRIPTOR_H

int send_descriptor(int socket, int fd);
/* The descriptor, or -errno. */
int receive_descriptor(int socket);

#endif /* TEST_DESCRIPTOR_H */

#!/usr/bin/env python3
"""Connects two network interfaces, and delays, loses and throttles frames.

    wire.py A B [--delay 100ms] [--loss 5%] [--rate 10mbit] [--seed N] [--ready FILE]

For kernels without netem. Frames that arrive on A are sent on B, and vice versa. Each
direction has a delay, a loss rate, and a bandwidth with a queue that drops the frames
that do not fit, as in a router. When the connection works, the process ID is written
to FILE. Each frame has a header of the kernel (PACKET_VNET_HDR). It says that the
segments of a TCP sender stay together, and that the receiver completes the checksum.
"""

import argparse
import heapq
import itertools
import os
import random
import re
import select
import socket
import sys
import time

SOL_PACKET, PACKET_VNET_HDR, ETH_P_ALL, PACKET_OUTGOING = 263, 15, 3, 4
VNET_HEADER = 10
QUEUE_BYTES = 2 << 20  # queued by the rate limit; further frames are dropped


def seconds(text):
    match = re.fullmatch(r"([\d.]+)(us|ms|s)?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"a time such as 100ms, not '{text}'")
    return float(match[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1, None: 1e-3}[match[2]]


def share(text):
    match = re.fullmatch(r"([\d.]+)%", text)
    if not match or float(match[1]) > 100:
        raise argparse.ArgumentTypeError(f"a share such as 5%, not '{text}'")
    return float(match[1]) / 100


def bits(text):
    match = re.fullmatch(r"([\d.]+)(kbit|mbit|gbit|bit)", text)
    if not match or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"a rate such as 10mbit, not '{text}'")
    return float(match[1]) * {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[match[2]]


class Direction:
    """Frames on their way from one interface to the other, in order of release."""

    def __init__(self, source, sink, options, seed):
        self.source, self.sink, self.options = source, sink, options
        self.chance = random.Random(seed)
        self.waiting, self.number, self.free_at = [], itertools.count(), 0.0

    def take(self, now):
        """Takes in what has arrived."""
        for _ in range(64):
            try:
                frame, address = self.source.recvfrom(1 << 17)
            except BlockingIOError:
                return
            except OSError:  # the interface is down
                return
            if address[2] == PACKET_OUTGOING or self.chance.random() < self.options.loss:
                continue
            at = now
            if self.options.rate:
                at = max(now, self.free_at)
                if (at - now) * self.options.rate / 8 > QUEUE_BYTES:
                    continue
                at = self.free_at = at + (len(frame) - VNET_HEADER) * 8 / self.options.rate
            heapq.heappush(self.waiting, (at + self.options.delay, next(self.number), frame))

    def release(self, now):
        """Sends what is due; returns the time of the next frame."""
        while self.waiting and self.waiting[0][0] <= now:
            try:
                self.sink.send(self.waiting[0][2])
            except OSError as error:
                # The interface is full or gone: drop the frame.
                if error.errno is None:
                    raise
            heapq.heappop(self.waiting)
        return self.waiting[0][0] if self.waiting else None


def attach(interface):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
    end.bind((interface, 0))
    end.setblocking(False)
    return end


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--delay", type=seconds, default=0.0)
    parser.add_argument("--loss", type=share, default=0.0)
    parser.add_argument("--rate", type=bits, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ready")
    options = parser.parse_args()
    a, b = attach(options.a), attach(options.b)
    directions = [Direction(a, b, options, options.seed), Direction(b, a, options, -options.seed)]
    if options.ready:
        with open(options.ready + ".new", "w") as file:
            print(os.getpid(), file=file)
        os.rename(options.ready + ".new", options.ready)
    while True:
        now = time.monotonic()
        due = [t for t in (d.release(now) for d in directions) if t is not None]
        wait = max(0.0, min(due) - time.monotonic()) if due else 1.0
        select.select([a, b], [], [], wait)
        now = time.monotonic()
        for direction in directions:
            direction.take(now)


if __name__ == "__main__":
    sys.exit(main())

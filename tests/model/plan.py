#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Derive the graph of a collective and print it as Promela tables.

The programs are the planner's tables; the edges are derived by the rules for
the machine's graph (kinds 1 to 4, see Documentation/model.rst). The output is
included by flow.pml and death.pml as "plan.pml".
"""
import argparse
import sys


class Block:
    """One block: produced by its rank (p=1) from t tiles, updated k times."""

    def __init__(self, rank, shard, p=1, t=1):
        self.rank, self.shard, self.p, self.t = rank, shard, p, t
        self.k = p


class Trigger:
    """COPY or SUM into dst; sources are (block, at) in the order listed."""

    def __init__(self, op, dst, sources, seq):
        self.op, self.dst, self.sources, self.seq = op, dst, sources, seq


class Program:
    """The blocks and triggers of all ranks."""

    def __init__(self, ranks):
        self.ranks, self.blocks, self.triggers = ranks, {}, []

    def block(self, rank, shard, **kw):
        self.blocks[rank, shard] = Block(rank, shard, **kw)

    def trigger(self, op, dst, *sources):
        block = self.blocks[dst]
        block.k += 1
        self.triggers.append(Trigger(op, dst, sources, block.k))


def ring_rs(prog):
    n = prog.ranks
    for s in range(n):
        r = [(s + 1 + j) % n for j in range(n)]
        for j in range(1, n):
            prog.trigger("sum", (r[j], s),
                         ((r[j - 1], s), 1 if j == 1 else 2), ((r[j], s), 1))


def ring_ag(prog, at_owner):
    """The copies of ring AR: each takes its source's last update."""
    n = prog.ranks
    for s in range(n):
        r = [(s + 1 + j) % n for j in range(n)]
        src, at = (s, s), at_owner
        for j in range(n - 1):
            prog.trigger("copy", (r[j], s), (src, at))
            src, at = (r[j], s), prog.blocks[r[j], s].k


def direct_rs(prog):
    n = prog.ranks
    for s in range(n):
        prog.trigger("sum", (s, s), *[((r, s), 1) for r in range(n)])


def direct_ag(prog, at_owner):
    n = prog.ranks
    for s in range(n):
        for r in range(n):
            if r != s:
                prog.trigger("copy", (r, s), ((s, s), at_owner))


def exchange(prog):
    """In-place all-to-all of two ranks through scratch blocks: the table in
    which the write-after-read edges are not implied by the data's flow."""
    for r in range(2):
        prog.block(r, "x")
        prog.block(r, "scratch", p=0)
    for r in range(2):
        prog.trigger("copy", (r, "scratch"), ((1 - r, "x"), 1))
        prog.trigger("copy", (r, "x"), ((r, "scratch"), 1))


def build(name, ranks):
    prog = Program(ranks)
    if name == "exchange":
        exchange(prog)
        return prog
    for r in range(ranks):
        for s in range(ranks):
            prog.block(r, s)
    {"ring": ring_rs, "direct": direct_rs}[name.split("-")[0]](prog)
    if name == "ring-ar":
        ring_ag(prog, 2)
    elif name == "direct-ar":
        direct_ag(prog, 2)
    return prog


def order(name, rank, ranks):
    """The order in which one producer finishes its rank's shards."""
    if name == "exchange":
        return ["x"]
    if name.startswith("ring"):
        return [(rank - 1 - i) % ranks for i in range(ranks)]
    return list(range(ranks))


class Graph:
    """Events (triggers, productions, arms) and their edges into nodes.

    Nodes: trigger i is i, retire(r) is triggers + r. Events: trigger i is i,
    production of block b is triggers + b, arming of r is triggers + blocks + r.
    """

    def __init__(self, prog, drop):
        self.prog, self.drop = prog, drop
        self.index = {key: i for i, key in enumerate(prog.blocks)}
        self.nt, self.nb = len(prog.triggers), len(prog.blocks)
        self.nodes = self.nt + prog.ranks
        self.succ = [[] for _ in range(self.nt + self.nb + prog.ranks)]
        for i, trigger in enumerate(prog.triggers):
            self.edges_of(i, trigger)
        for rank in range(prog.ranks):
            self.edges_of_retire(rank)
        self.edges = [sum(ev.count(n) for ev in self.succ)
                      for n in range(self.nodes)]

    def update(self, key, number):
        """The event that is a block's update of that number."""
        if self.prog.blocks[key].p and number == 1:
            return self.nt + self.index[key]
        return next(i for i, t in enumerate(self.prog.triggers)
                    if t.dst == key and t.seq == number)

    def edge(self, event, node):
        if node not in self.succ[event]:
            self.succ[event].append(node)

    def arm(self, rank):
        return self.nt + self.nb + rank

    def edges_of(self, i, trigger):
        for key, at in trigger.sources:                         # kind 1
            self.edge(self.update(key, at), i)
        if trigger.seq > 1:                                     # kind 2
            self.edge(self.update(trigger.dst, trigger.seq - 1), i)
        for j, other in enumerate(self.prog.triggers):
            reads = (trigger.dst, trigger.seq - 1) in other.sources
            if reads and j != i and self.drop != "war":
                self.edge(j, i)
        self.edge(self.arm(trigger.dst[0]), i)                  # kind 3

    def edges_of_retire(self, rank):
        node = self.nt + rank
        self.edge(self.arm(rank), node)                         # kind 3
        for key, block in self.prog.blocks.items():             # kind 4
            if block.p and block.rank == rank:
                self.edge(self.nt + self.index[key], node)
        for i, trigger in enumerate(self.prog.triggers):
            reads = any(key[0] == rank for key, _ in trigger.sources)
            writes = trigger.dst[0] == rank
            if writes or (reads and self.drop != "readers"):
                self.edge(i, node)

    def own_last(self, last):
        """A trigger counts its own rank's retirement after the others', so
        that its process owes nobody anything once that has retired."""
        for i, trigger in enumerate(self.prog.triggers):
            own = self.nt + trigger.dst[0]
            first = [n for n in self.succ[i] if n < self.nt]
            others = [n for n in self.succ[i] if n >= self.nt and n != own]
            self.succ[i] = first + (others + [own] if last else [own] + others)


def values(prog):
    """What each block holds after each update: a set of contributions."""
    held = {(key, 1): {key[0]} for key, b in prog.blocks.items() if b.p}
    todo = list(prog.triggers)
    while todo:
        ready = [t for t in todo if all(s in held for s in t.sources)]
        if not ready:
            sys.exit("plan.py: a cycle")
        for t in ready:
            parts = [held[s] for s in t.sources]
            if sum(map(len, parts)) != len(set().union(*parts)):
                sys.exit("plan.py: a contribution added twice")
            held[t.dst, t.seq] = set().union(*parts)
            todo.remove(t)
    return {at: sum(1 << r for r in s) for at, s in held.items()}


def array(name, rows, width=None, fill=255, kind="byte"):
    """One constant table: hidden, so it is no part of the model's state."""
    if width:
        rows = [x for row in rows for x in list(row) + [fill] * (width - len(row))]
    rows = rows or [fill]
    print("hidden %s %s[%d] = {%s};" % (kind, name, len(rows),
                                        ", ".join(map(str, rows))))


def mask(ranks):
    return sum(1 << r for r in set(ranks))


def emit(name, graph):
    prog, held = graph.prog, values(graph.prog)
    blocks, triggers = prog.blocks, prog.triggers
    width = max(map(len, graph.succ))
    srcs = max(len(t.sources) for t in triggers)
    print("/* %s, %d ranks: made by plan.py */" % (name, prog.ranks))
    print("#define RANKS", prog.ranks)
    print("#define BLOCKS", graph.nb)
    print("#define TRIGGERS", graph.nt)
    print("#define NODES", graph.nodes)
    print("#define SUCCS", width)
    print("#define SRCS", srcs)
    print("#define ORDER", prog.ranks if name != "exchange" else 1)
    print("#define HMASK", 7 if max(graph.edges) < 8 else 15)
    print("/* successors of each event; edges into each node */")
    array("succ", graph.succ, width)
    array("nsucc", [len(ev) for ev in graph.succ])
    array("edges", graph.edges)
    print("/* blocks */")
    array("b_rank", [b.rank for b in blocks.values()])
    array("b_p", [b.p for b in blocks.values()])
    array("b_t", [b.t for b in blocks.values()])
    array("b_k", [b.k for b in blocks.values()])
    array("b_final", [held[key, b.k] for key, b in blocks.items()])
    array("order", [[graph.index[r, s] for s in order(name, r, prog.ranks)]
                    for r in range(prog.ranks)],
          prog.ranks if name != "exchange" else 1)
    print("/* triggers: destination, update number, sources, their contents */")
    array("t_dst", [graph.index[t.dst] for t in triggers])
    array("t_seq", [t.seq for t in triggers])
    array("t_src", [[graph.index[key] for key, _ in t.sources]
                    for t in triggers], srcs)
    array("t_want", [[held[s] for s in t.sources] for t in triggers], srcs)
    array("t_nsrc", [len(t.sources) for t in triggers])
    array("t_rank", [t.dst[0] for t in triggers])
    array("owned", [sum(1 << i for i, t in enumerate(triggers)
                        if t.dst[0] == r) for r in range(prog.ranks)],
          kind="short")
    array("t_ranks", [mask([t.dst[0]] + [key[0] for key, _ in t.sources])
                      for t in triggers])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collective", choices=[
        "ring-rs", "direct-rs", "ring-ar", "direct-ar", "exchange"])
    parser.add_argument("ranks", type=int)
    parser.add_argument("--drop", choices=["war", "readers"],
                        help="leave out one kind of edge (a mutation)")
    parser.add_argument("--own-first", action="store_true",
                        help="count a trigger's own rank's retirement before "
                             "the others' (a mutation)")
    parser.add_argument("--tiles", action="append", default=[],
                        metavar="BLOCK=T", help="tiles of a block (default 1)")
    args = parser.parse_args()
    prog = build(args.collective, args.ranks)
    keys = list(prog.blocks)
    for spec in args.tiles:
        b, t = spec.split("=")
        prog.blocks[keys[int(b)]].t = int(t)
    graph = Graph(prog, args.drop)
    graph.own_last(not args.own_first)
    emit(args.collective, graph)


if __name__ == "__main__":
    main()

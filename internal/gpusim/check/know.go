package check

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// What threads know of each other is kept in values that are never changed once made, so that a release hands over a pointer.

// leaf is what is known of the threads of one block: that all they did up to a clock of their warp comes before.
type leaf struct {
	warps []uint32 // by warp: the clock up to which all its lanes are known
	more  []mark   // threads of which more is known, ascending
}

type mark struct {
	thread uint16
	clock  uint32
}

// of is the clock up to which a thread is known, 0 for not at all.
func (l *leaf) of(thread uint16) uint32 {
	if l == nil {
		return 0
	}
	known := l.warps[thread/simt.WarpSize]
	if n := len(l.more); n > 0 {
		if i, ok := slices.BinarySearchFunc(l.more, thread, func(m mark, t uint16) int { return int(m.thread) - int(t) }); ok {
			known = max(known, l.more[i].clock)
		}
	}
	return known
}

// covers is whether l knows all that o does.
func (l *leaf) covers(o *leaf) bool {
	if o == nil || l == o {
		return true
	}
	if l == nil {
		return false
	}
	for i, c := range o.warps {
		if l.warps[i] < c {
			return false
		}
	}
	for _, m := range o.more {
		if l.of(m.thread) < m.clock {
			return false
		}
	}
	return true
}

// merge is what either knows.
func (l *leaf) merge(o *leaf) *leaf {
	switch {
	case l.covers(o):
		return l
	case o.covers(l):
		return o
	}
	g := newGathering(len(l.warps))
	g.add(l)
	g.add(o)
	return g.leaf()
}

// gathering merges many leaves.
type gathering struct {
	warps, threads []uint32
	single         bool // threads has something
}

func newGathering(warps int) *gathering { return &gathering{warps: make([]uint32, warps)} }

func (g *gathering) add(l *leaf) {
	if l == nil {
		return
	}
	for i, c := range l.warps {
		g.warps[i] = max(g.warps[i], c)
	}
	for _, m := range l.more {
		if !g.single {
			g.single = true
			g.threads = make([]uint32, len(g.warps)*simt.WarpSize)
		}
		g.threads[m.thread] = max(g.threads[m.thread], m.clock)
	}
}

func (g *gathering) leaf() *leaf {
	l := &leaf{warps: g.warps}
	if !g.single {
		return l
	}
	for w := range g.warps {
		lanes := g.threads[w*simt.WarpSize:][:simt.WarpSize]
		l.warps[w] = max(l.warps[w], slices.Min(lanes))
		for i, c := range lanes {
			if c > l.warps[w] {
				l.more = append(l.more, mark{uint16(w*simt.WarpSize + i), c})
			}
		}
	}
	return l
}

// tree is leaves by block, with a fan-out of 16. Versions share what they have in common.
type tree struct {
	kids []*tree // nil in the lowest level, which has the leaf
	leaf *leaf
}

const (
	fanOut     = 16
	fanOutBits = 4
)

// levelsFor is the height of trees of so many blocks.
func levelsFor(blocks int) (n int) {
	for size := 1; size < blocks; size *= fanOut {
		n++
	}
	return n
}

func (t *tree) get(block uint32, levels int) *leaf {
	for t != nil && levels > 0 {
		levels--
		t = t.kids[block>>(fanOutBits*levels)%fanOut]
	}
	if t == nil {
		return nil
	}
	return t.leaf
}

// with is the tree with a block's leaf merged in.
func (t *tree) with(block uint32, l *leaf, levels int) *tree {
	if levels == 0 {
		if t != nil && t.leaf.covers(l) {
			return t
		}
		if t != nil {
			l = l.merge(t.leaf)
		}
		return &tree{leaf: l}
	}
	levels--
	i := block >> (fanOutBits * levels) % fanOut
	kids := make([]*tree, fanOut)
	if t != nil {
		kid := t.kids[i].with(block, l, levels)
		if kid == t.kids[i] {
			return t
		}
		copy(kids, t.kids)
		kids[i] = kid
	} else {
		kids[i] = (*tree)(nil).with(block, l, levels)
	}
	return &tree{kids: kids}
}

// joined is what either tree knows: one of them where it knows all that the other does.
func (t *tree) joined(o *tree) *tree {
	switch {
	case t == o || o == nil:
		return t
	case t == nil:
		return o
	case t.kids == nil:
		switch l := t.leaf.merge(o.leaf); l {
		case t.leaf:
			return t
		case o.leaf:
			return o
		default:
			return &tree{leaf: l}
		}
	}
	var kids [fanOut]*tree
	mine, theirs := true, true
	for i := range kids {
		kids[i] = t.kids[i].joined(o.kids[i])
		mine, theirs = mine && kids[i] == t.kids[i], theirs && kids[i] == o.kids[i]
	}
	switch {
	case mine:
		return t
	case theirs:
		return o
	}
	return &tree{kids: kids[:]}
}

// view is what a thread knows beyond what barriers and meetings of lanes put in order: of its own block and of others.
type view struct {
	own *leaf
	far *tree

	whole *tree // both, once it was asked for
	heard *tree // is part of it: what a thread that polls hears again and again
}

// union is what either view knows.
func union(a, b *view) *view {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	}
	u := view{far: a.far.joined(b.far)}
	switch {
	case a.own == nil:
		u.own = b.own
	case b.own == nil:
		u.own = a.own
	default:
		u.own = a.own.merge(b.own)
	}
	switch {
	case u.own == a.own && u.far == a.far:
		return a
	case u.own == b.own && u.far == b.far:
		return b
	}
	return &u
}

// all is the view as other blocks get it.
func (v *view) all(block uint32, levels int) *tree {
	switch {
	case v == nil:
		return nil
	case v.own == nil:
		return v.far
	case v.whole == nil:
		v.whole = v.far.with(block, v.own, levels)
	}
	return v.whole
}

// hearing is what a thread of a block knows that is told a tree.
func (v *view) hearing(t *tree, block uint32, levels int) *view {
	if t == nil || v != nil && v.heard == t {
		return v
	}
	v = union(v, viewOf(t, block, levels))
	v.heard = t
	return v
}

// viewOf is what a tree tells a thread of a block.
func viewOf(t *tree, block uint32, levels int) *view {
	if t == nil {
		return nil
	}
	return &view{own: t.get(block, levels), far: t}
}

package gpusim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// boxCase is a tensor map, a tensor in memory, and a box of it.
type boxCase struct {
	m       tensormap.Map
	tensor  []byte
	at      [tensormap.MaxRank]int
	offsets [tensormap.MaxRank - 2]int
	off     int // in shared memory
}

// randomBox makes a tensor map that the driver would take, and a box that mostly overlaps the tensor.
func randomBox(r *rand.Rand) *boxCase {
	for {
		c := &boxCase{off: 128 * r.IntN(9)}
		m := &c.m
		m.Elem = tensormap.Elem(r.IntN(int(tensormap.Elems)))
		m.Rank = 1 + r.IntN(tensormap.MaxRank)
		m.Swizzle, m.NaN = tensormap.Swizzle(r.IntN(4)), m.Elem.Float() && r.IntN(2) == 0
		if m.Rank >= 3 {
			m.Im2col = r.IntN(3) == 0
			m.Interleave = tensormap.Interleave(max(r.IntN(5)-2, 0))
		}
		m.Addr = 1 << 20
		size := m.Elem.Bytes()
		for i := range m.Rank {
			m.Dim[i], m.Box[i], m.Step[i] = uint64(1+r.IntN(9)), 1+r.IntN(6), 1+r.IntN(1+r.IntN(3))
			c.at[i] = r.IntN(int(m.Dim[i])+8) - 6
		}
		m.Dim[0] = uint64(1 + r.IntN(96/size))
		m.Box[0] = 16 / size * (1 + r.IntN(6))
		if slice := m.Interleave.Bytes(); slice > 0 {
			m.Dim[0] = uint64(slice / size * (1 + r.IntN(3)))
			c.at[0] = slice / size * (r.IntN(4) - 1)
		}
		m.Channels, m.Pixels = m.Box[0], 1+r.IntN(20)
		for i := range m.Rank - 2 {
			m.Lower[i], m.Upper[i] = r.IntN(5)-3, r.IntN(5)-3
			c.offsets[i] = r.IntN(4)
			if m.Im2col { // a filter stands within the bounds
				c.at[i+1] = m.Lower[i] + r.IntN(max(int(m.Dim[i+1])+m.Upper[i]-m.Lower[i], 1))
			}
		}
		unit := uint64(16)
		if m.Interleave == tensormap.Interleave32 {
			unit = 32
		}
		at := m.Dim[0] * uint64(size)
		if slice := m.Interleave.Bytes(); slice > 0 {
			at = uint64(slice)
		}
		for i := 1; i < m.Rank; i++ {
			if i == m.Rank-1 && m.Interleave != tensormap.NoInterleave { // slices come before images
				at *= (m.Dim[0]*uint64(size) + uint64(m.Interleave.Bytes()) - 1) / uint64(m.Interleave.Bytes())
			}
			m.Stride[i] = (at+unit-1)/unit*unit + unit*uint64(r.IntN(2))
			if m.Interleave != tensormap.NoInterleave {
				m.Stride[i] = at
			}
			at = m.Stride[i] * m.Dim[i]
		}
		c.tensor = make([]byte, (at+31)/16*16)
		for i := range c.tensor {
			c.tensor[i] = byte(r.Uint32())
		}
		if m.Check() == nil && m.BoxBytes() <= 16<<10 {
			return c
		}
	}
}

// element is where an element is in the tensor, with its channel and its other coordinates; false outside.
func (c *boxCase) element(p [tensormap.MaxRank]int) (at int, inside bool) {
	m := &c.m
	for i := range m.Rank {
		if p[i] < 0 || p[i] >= int(m.Dim[i]) {
			return 0, false
		}
		if i > 0 {
			at += p[i] * int(m.Stride[i])
		}
	}
	size := m.Elem.Bytes()
	slice := m.Interleave.Bytes()
	if slice == 0 {
		return at + p[0]*size, true
	}
	per := slice / size
	return at + p[0]/per*int(m.Dim[m.Rank-2])*int(m.Stride[m.Rank-2]) + p[0]%per*size, true
}

// each calls f for each element of the box: its place in the box without swizzle, and its coordinates in the tensor.
func (c *boxCase) each(f func(at int, p [tensormap.MaxRank]int)) {
	m := &c.m
	size, slice := m.Elem.Bytes(), m.Interleave.Bytes()
	per := m.Box[0] // channels that lie together
	if slice > 0 {
		per = slice / size
	}
	slices, at := (m.Box[0]+per-1)/per, 0
	row := func(s int, p [tensormap.MaxRank]int) {
		for e := range per {
			q := p
			q[0] = c.at[0] + s*per + e
			f(at, q)
			at += size
		}
	}
	if m.Im2col {
		for s := range slices {
			p := c.at
			for range m.Pixels {
				q := p
				for i := range m.Rank - 2 {
					q[i+1] += c.offsets[i]
				}
				row(s, q)
				carry := true
				for i := 1; i < m.Rank-1 && carry; i++ {
					if p[i] += m.Step[i]; p[i] > int(m.Dim[i])-1+m.Upper[i-1] {
						p[i] = m.Lower[i-1]
					} else {
						carry = false
					}
				}
				if carry {
					p[m.Rank-1]++
				}
			}
		}
		return
	}
	// Nested loops, outermost first: images, slices where there are any, the other dimensions.
	var order []int
	for i := m.Rank - 1; i > 0; i-- {
		order = append(order, i)
		if i == m.Rank-1 && slice > 0 {
			order = append(order, 0)
		}
	}
	if slice == 0 {
		order = append(order, 0)
	}
	var walk func(depth, s int, p [tensormap.MaxRank]int)
	walk = func(depth, s int, p [tensormap.MaxRank]int) {
		if depth == len(order) {
			row(s, p)
			return
		}
		d := order[depth]
		if d == 0 {
			for s := range slices {
				walk(depth+1, s, p)
			}
			return
		}
		for j := 0; j < m.Box[d]; j += m.Step[d] {
			q := p
			q[d] = c.at[d] + j
			walk(depth+1, s, q)
		}
	}
	walk(0, 0, [tensormap.MaxRank]int{})
}

// swizzled is where a byte of the box is in shared memory: of each line of 128 bytes the units of 16 are exchanged.
func (c *boxCase) swizzled(at int) int {
	a := c.off + at
	line, unit, rest := a/128, a/16%8, a%16
	switch c.m.Swizzle {
	case tensormap.Swizzle32:
		unit ^= line & 1
	case tensormap.Swizzle64:
		unit ^= line & 3
	case tensormap.Swizzle128:
		unit ^= line & 7
	}
	return line*128 + unit*16 + rest
}

// loaded is shared memory after the box came.
func (c *boxCase) loaded(size int) []byte {
	s := bytes.Repeat([]byte{0xee}, size)
	n := c.m.Elem.Bytes()
	c.each(func(at int, p [tensormap.MaxRank]int) {
		to := s[c.swizzled(at):][:n]
		if from, ok := c.element(p); ok {
			copy(to, c.tensor[from:])
			return
		}
		clear(to)
		if c.m.NaN {
			for i := range to {
				to[i] = 0xff
			}
			to[n-1] = 0x7f
		}
	})
	return s
}

// stored is the tensor after shared memory was stored there, or added.
func (c *boxCase) stored(s []byte, combine func(old, v uint64) uint64) []byte {
	out := bytes.Clone(c.tensor)
	n := c.m.Elem.Bytes()
	c.each(func(at int, p [tensormap.MaxRank]int) {
		if to, ok := c.element(p); ok {
			var old, v uint64
			for i := n - 1; i >= 0; i-- {
				old, v = old<<8|uint64(out[to+i]), v<<8|uint64(s[c.swizzled(at+i)])
			}
			for i, v := 0, combine(old, v); i < n; i++ {
				out[to+i], v = byte(v), v>>8
			}
		}
	})
	return out
}

const boxShared = 20 << 10

// source is a kernel with the map by value, which fills shared memory from a buffer, loads or stores the box and gives shared
// memory back.
func (c *boxCase) source(copies string) string {
	return hopperHead + ".extern .shared .align 1024 .b8 s[];\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out)\n{\n" +
		".reg .b64 %m, %g, %q, %out; .reg .b32 %t, %i, %s, %bar, %v<4>; .reg .pred %z, %p, %first; .shared .align 8 .b8 bars[8];\n" +
		"mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %bar, bars; mov.b64 %m, map; cvta.param.u64 %m, %m; shl.b32 %i, %t, 4; cvt.u64.u32 %q, %i;\n" +
		"@%first mbarrier.init.shared::cta.b64 [%bar], 1;\nld.param.u64 %g, [in]; add.u64 %g, %g, %q; mov.u32 %s, s; add.u32 %s, %s, %i;\n" +
		fmt.Sprintf("FILL: ld.global.v4.b32 {%%v0,%%v1,%%v2,%%v3}, [%%g]; st.shared.v4.b32 [%%s], {%%v0,%%v1,%%v2,%%v3}; add.u32 %%s, %%s, 1024; add.u64 %%g, %%g, 1024; add.u32 %%i, %%i, 1024; setp.lt.u32 %%z, %%i, %d; @%%z bra FILL;\n", boxShared) +
		"fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %s, s;\n" + copies +
		"shl.b32 %i, %t, 4; cvt.u64.u32 %q, %i; ld.param.u64 %g, [out]; add.u64 %g, %g, %q; add.u32 %s, %s, %i;\n" +
		fmt.Sprintf("GIVE: ld.shared.v4.b32 {%%v0,%%v1,%%v2,%%v3}, [%%s]; st.global.v4.b32 [%%g], {%%v0,%%v1,%%v2,%%v3}; add.u32 %%s, %%s, 1024; add.u64 %%g, %%g, 1024; add.u32 %%i, %%i, 1024; setp.lt.u32 %%z, %%i, %d; @%%z bra GIVE;\nret;\n}\n", boxShared)
}

func joined(list []int) string {
	return "{" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]") + "}"
}

// copy spells an instruction with the box.
func (c *boxCase) coords() string { return "[%m, " + joined(c.at[:c.m.Rank]) + "]" }

func (c *boxCase) load() string {
	mode, offsets := ".tile", ""
	if c.m.Im2col {
		mode, offsets = ".im2col", ", "+joined(c.offsets[:c.m.Rank-2])
	}
	return fmt.Sprintf("@%%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%bar], %d;\n@%%first cp.async.bulk.tensor.%dd.shared::cluster.global%s.mbarrier::complete_tx::bytes [s+%d], %s, [%%bar]%s;\n",
		c.m.BoxBytes(), c.m.Rank, mode, c.off, c.coords(), offsets) + waitFor("W", "%bar", 0)
}

func (c *boxCase) store(op string) string {
	return fmt.Sprintf("@!%%first bra STORED;\n%s.%dd.global.shared::cta%s.tile.bulk_group %s, [s+%d];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nSTORED: bar.sync 0;\n",
		strings.TrimSuffix(op, ".add"), c.m.Rank, strings.TrimPrefix(op, strings.TrimSuffix(op, ".add")), c.coords(), c.off)
}

// run launches the kernel and returns shared memory and the tensor.
func (c *boxCase) run(t *testing.T, copies string, in []byte, o Options) (shared, tensor []byte) {
	t.Helper()
	r := hopper(t, c.source(copies))
	at := r.upload(c.tensor, "tensor")
	m := c.m
	m.Addr = at
	out := r.alloc(boxShared, "out")
	k := r.prog.Kernel("k")
	rep, err := r.dev.Launch(k, d1(1), d1(64), boxShared, pack(k, m.Bytes(), r.upload(in, "in"), out), o)
	if err != nil || len(rep.Findings) > 0 {
		t.Fatalf("%+v: %v, %v\n%s", c.m, err, rep, copies)
	}
	return download[byte](r, out, boxShared), download[byte](r, at, len(c.tensor))
}

// TestTensorBoxes: boxes of random tensors, in all types, layouts, swizzles and modes, against a model element by element.
func TestTensorBoxes(t *testing.T) {
	r := testutil.Rand(t)
	for i := range 250 {
		c := randomBox(r)
		o := hopperOptions[i%4]
		fill := make([]byte, boxShared)
		for i := range fill {
			fill[i] = byte(r.Uint32())
		}
		if c.m.Im2col || i%2 == 0 {
			empty := bytes.Repeat([]byte{0xee}, boxShared)
			if got, _ := c.run(t, c.load(), empty, o); !bytes.Equal(got, c.loaded(boxShared)) {
				t.Fatalf("a box at %v, offsets %v, of %+v is not what it should be", c.at, c.offsets, c.m)
			}
			continue
		}
		op, combine := "cp.async.bulk.tensor", func(_, v uint64) uint64 { return v }
		if e := c.m.Elem; e == tensormap.U32 || e == tensormap.S32 || e == tensormap.U64 {
			op, combine = "cp.reduce.async.bulk.tensor.add", func(old, v uint64) uint64 { return old + v }
		}
		if _, got := c.run(t, c.store(op), fill, o); !bytes.Equal(got, c.stored(fill, combine)) {
			t.Fatalf("a tensor of %+v is not what it should be after %s of a box at %v", c.m, op, c.at)
		}
	}
}

// TestTensorMapBytes: what is encoded is decoded, by tensormap.replace too.
func TestTensorMapBytes(t *testing.T) {
	r := testutil.Rand(t)
	for range 500 {
		c := randomBox(r)
		m := c.m
		b := m.Bytes()
		got, err := tensormap.Parse(b[:])
		m.Stride[0] = uint64(m.Elem.Bytes())
		if err != nil || *got != m {
			t.Fatalf("%+v is decoded as %+v, %v", m, got, err)
		}
	}
}

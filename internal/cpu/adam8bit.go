package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(prepareAdam8bit, ir.Adam8bit) }

// codeTable are the numbers that codes stand for, of second moments and of first ones, and the middles between each and the next,
// as keys.
type codeTable[T kernels.Float] struct {
	values  [2][ir.CodeValues]T
	middles [2][ir.CodeValues]int64
}

// key is an integer that is ordered as numbers are: comparing those is a subtraction, and no branch that random data mispredict.
func key(v float64) int64 {
	bits := int64(math.Float64bits(v + 0)) // of -0 as of 0
	return bits ^ int64(uint64(bits>>63)>>1)
}

func (c *codeTable[T]) fill(table []float64) {
	for i := range c.values {
		half := table[i*ir.CodeValues:][:ir.CodeValues]
		for j, v := range half {
			c.values[i][j] = T(v)
			if j > 0 {
				c.middles[i][j-1] = key(float64(T((half[j-1] + v) / 2)))
			}
		}
	}
}

// adam8bit is a launch: its arguments, scalars and tables.
type adam8bit struct {
	args  []device.Arg
	p     [6]float64
	scale float64
	skip  bool
	f32   *codeTable[float32]
	f64   *codeTable[float64]
}

// codedSpace is what a chunk works in, a block at a time.
type codedSpace struct {
	p, g     [ir.CodeBlock]float32 // widened
	m32, v32 [ir.CodeBlock]float32
	m64, v64 [ir.CodeBlock]float64
}

func prepareAdam8bit(k *device.Kernel) (run, error) {
	const outs = 5
	var params []*ir.Type
	for i := 2; i < k.Op.NumIn(); i += ir.Adam8bitGroup {
		params = append(params, k.Op.In(i))
	}
	list := pieces(params) // of whole blocks, tails apart
	spaces := newSpare(func() (s codedSpace) { return s })
	each := newLoop(func(u *adam8bit, lo, hi int) {
		s := spaces.get()
		defer spaces.put(s)
		for _, p := range list[lo:hi] {
			out, in := u.args[outs*p.tensor:][:outs], u.args[outs*len(params)+2+ir.Adam8bitGroup*p.tensor:][:ir.Adam8bitGroup]
			u.piece(s, out, in, params[p.tensor], p)
		}
	})
	tables32, tables64 := newSpare(func() (t codeTable[float32]) { return t }), newSpare(func() (t codeTable[float64]) { return t })
	scale := k.Op.In(0).DType
	return func(args []device.Arg, p *device.Params) error {
		u := adam8bit{args: args, scale: numberAt(args[len(k.Out)], scale), skip: param(p, 6) != 0, f32: tables32.get(), f64: tables64.get()}
		defer tables32.put(u.f32)
		defer tables64.put(u.f64)
		table := values[float64](args[len(k.Out)+1], 2*ir.CodeValues)
		u.f32.fill(table)
		u.f64.fill(table)
		for i := range u.p {
			u.p[i] = scalar(p, i)
		}
		each.run(len(list), 1, u)
		return nil
	}, nil
}

// piece updates a range of one parameter.
func (u *adam8bit) piece(s *codedSpace, out, in []device.Arg, t *ir.Type, p piece) {
	n, blocks := t.Size(), (t.Size()+ir.CodeBlock-1)/ir.CodeBlock
	for i, a := range []int{0, 2, 3, 4, 5} {
		keepBytes(out[i], in[a], t, i, n, blocks, p)
	}
	if u.skip {
		return
	}
	m, v := values[uint8](out[1], n), values[uint8](out[2], n)
	mTop, vTop := values[float32](out[3], blocks), values[float32](out[4], blocks)
	turn := values[int64](in[6], 1)[0]
	c1, c2 := 1-power(u.p[1], turn), 1-power(u.p[2], turn)
	for lo := p.lo; lo < p.hi; lo += ir.CodeBlock {
		hi, b := min(lo+ir.CodeBlock, p.hi), lo/ir.CodeBlock
		if dt := t.DType; dt == dtype.F64 {
			w, g := widen[float64](out[0], dt, lo, hi, nil), widen[float64](in[1], dt, lo, hi, nil)
			updateCoded(u, u.f64, c1, c2, w, g, s.m64[:hi-lo], s.v64[:hi-lo], m[lo:hi], v[lo:hi], &mTop[b], &vTop[b])
		} else {
			w, g := widen(out[0], dt, lo, hi, s.p[:]), widen(in[1], dt, lo, hi, s.g[:])
			updateCoded(u, u.f32, c1, c2, w, g, s.m32[:hi-lo], s.v32[:hi-lo], m[lo:hi], v[lo:hi], &mTop[b], &vTop[b])
			narrowInto(out[0], dt, lo, w)
		}
	}
}

// keepBytes copies a piece's part of an operand to where it is written, unless it lies there.
func keepBytes(out, in device.Arg, t *ir.Type, result, n, blocks int, p piece) {
	switch result {
	case 0:
		size := t.DType.Size()
		copy(values[uint8](out, n*size)[p.lo*size:p.hi*size], values[uint8](in, n*size)[p.lo*size:])
	case 1, 2:
		copy(values[uint8](out, n)[p.lo:p.hi], values[uint8](in, n)[p.lo:])
	default:
		lo, hi := p.lo/ir.CodeBlock, (p.hi+ir.CodeBlock-1)/ir.CodeBlock
		copy(values[float32](out, blocks)[lo:hi], values[float32](in, blocks)[lo:])
	}
}

// updateCoded is AdamW's update of one block, whose moments are decoded into m and v and coded again.
func updateCoded[T kernels.Float](u *adam8bit, c *codeTable[T], c1, c2 float64, p, g, m, v []T, m8, v8 []uint8, mTop, vTop *float32) {
	rate, beta1, beta2 := u.p[0]*u.p[5], u.p[1], u.p[2]
	scale, keep, step, spread, eps := T(u.scale), T(1-rate*u.p[4]), T(rate/c1), T(1/math.Sqrt(c2)), T(u.p[3])
	rest1, keep2, rest2 := T(1-beta1), T(beta2), T(1-beta2)
	top1, top2 := T(*mTop), T(*vTop)
	g, m, v, m8, v8 = g[:len(p)], m[:len(p)], v[:len(p)], m8[:len(p)], v8[:len(p)]
	for i, w := range p {
		d, m0 := g[i]*scale, c.values[1][m8[i]]*top1
		m1, v1 := m0+rest1*(d-m0), c.values[0][v8[i]]*top2*keep2+rest2*d*d
		m[i], v[i] = m1, v1
		p[i] = w*keep - step*m1/(T(math.Sqrt(float64(v1)))*spread+eps)
	}
	*mTop, *vTop = encode(&c.middles[1], m, m8), encode(&c.middles[0], v, v8)
}

// encode finds the codes nearest to the shares of x in its largest, which it returns; NaN if one is.
func encode[T kernels.Float](middles *[ir.CodeValues]int64, x []T, codes []uint8) float32 {
	var most T
	for _, v := range x {
		if v = T(math.Abs(float64(v))); !(v <= most) && most == most {
			most = v
		}
	}
	top := float32(most)
	for i, v := range x {
		share := T(0)
		if top != 0 {
			share = v / T(top)
		}
		if share != share {
			codes[i] = 0
			continue
		}
		at, k := uint8(0), key(float64(share))
		for bit := uint8(ir.CodeValues / 2); bit > 0; bit /= 2 {
			at += bit & uint8((middles[at+bit-1]-k-1)>>63) // where the middle is not above
		}
		codes[i] = at
	}
	return top
}

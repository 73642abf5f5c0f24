package cuda_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// far is a device with memory for operands that span more than 2³¹ elements. Their few elements touch few pages of it.
type far struct {
	t   *testing.T
	dev device.Device
	q   device.Queue
	buf hostmem.Block
}

func newFar(t *testing.T) *far {
	f := &far{t: t, dev: opener(t, simcuda.Config{})()}
	var err error
	if f.q, err = f.dev.NewQueue(); err == nil {
		f.buf, err = hostmem.Alloc(1 << 16)
	}
	f.must(err)
	t.Cleanup(func() {
		f.must(f.q.Close())
		f.must(f.buf.Free())
		f.must(f.dev.Close())
	})
	return f
}

func (f *far) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *far) alloc(bytes int64) device.Arg {
	f.t.Helper()
	m, err := f.dev.Alloc(max(bytes, 1))
	f.must(err)
	return device.Arg{Mem: m}
}

func (f *far) host() device.Arg {
	return device.Arg{Mem: device.Mem{Addr: uint64(f.buf.Addr), Size: int64(f.buf.Size), Host: true}}
}

// put is a row-major operand.
func (f *far) put(t *ir.Type, a ref.Array) device.Arg {
	f.t.Helper()
	to := f.alloc(t.Bytes())
	ref.Encode(f.buf.Bytes(), t, a)
	f.must(f.q.Copy(to, f.host(), t.Bytes()))
	f.must(f.q.Sync())
	return to
}

// spread is a row-major operand of t's shape with its elements where t has them, each copied by itself.
func (f *far) spread(t *ir.Type, dense device.Arg) device.Arg {
	f.t.Helper()
	size := int64(t.DType.Size())
	to := f.alloc(int64(t.Span()) * size)
	for i := range t.Size() {
		at, from := device.Arg{Mem: to.Mem}, dense
		for d, rest := t.Rank()-1, i; d >= 0; d-- {
			at.Offset += int64(rest%t.Dim(d)) * int64(t.Strides()[d]) * size
			rest /= t.Dim(d)
		}
		from.Offset += int64(i) * size
		f.must(f.q.Copy(at, from, size))
	}
	return to
}

// run launches an op and returns the bytes of its first result, which is row-major.
func (f *far) run(op ir.Op, in ...device.Arg) []byte {
	f.t.Helper()
	k, err := f.dev.Prepare(op)
	f.must(err)
	var args []device.Arg
	for _, t := range k.Out {
		args = append(args, f.alloc(t.Bytes()))
	}
	args = append(append(args, in...), f.alloc(k.Workspace))
	f.must(f.q.Launch(k, args, &device.Params{}))
	n := k.Out[0].Bytes()
	f.must(f.q.Copy(f.host(), args[0], n))
	f.must(f.q.Sync())
	return bytes.Clone(f.buf.Bytes()[:n])
}

// TestFarStrides compares operations on views whose elements lie more than 2³¹ apart with those on dense copies.
func TestFarStrides(t *testing.T) {
	f, r := newFar(t), testutil.Rand(t)
	const apart = 1 << 30 // three rows span more than 2³¹ elements
	for _, c := range []struct {
		code ir.Code
		attr ir.Attr
		x, y *ir.Type // y may be nil
	}{
		{ir.Add, ir.Attr{}, ir.Strided(dtype.BF16, []int{3, 37}, []int{apart, 1}), ir.Dense(dtype.BF16, 3, 37)},
		{ir.Add, ir.Attr{}, ir.Strided(dtype.BF16, []int{37, 3}, []int{1, apart}), ir.Dense(dtype.BF16, 37, 3)},
		{ir.Copy, ir.Attr{Out: ir.Dense(dtype.BF16, 37, 3)}, ir.Strided(dtype.BF16, []int{37, 3}, []int{1, apart}), nil},
		{ir.Copy, ir.Attr{Out: ir.Dense(dtype.U8, 33, 33)}, ir.Strided(dtype.U8, []int{33, 33}, []int{1, apart/16 + 1}), nil},
		{ir.Cast, ir.Attr{DType: dtype.F32}, ir.Strided(dtype.BF16, []int{3, 37}, []int{apart, 1}), nil},
		{ir.Sum, ir.Attr{Axes: 1}, ir.Strided(dtype.BF16, []int{3, 37}, []int{apart, 1}), nil},
		{ir.Sum, ir.Attr{Axes: 2}, ir.Strided(dtype.BF16, []int{3, 37}, []int{apart, 1}), nil},
		{ir.ArgMax, ir.Attr{}, ir.Strided(dtype.BF16, []int{3, 37}, []int{apart, 1}), nil},
		{ir.MatMul, ir.Attr{}, ir.Strided(dtype.BF16, []int{66, 40}, []int{apart / 32, 1}), ir.Strided(dtype.BF16, []int{40, 66}, []int{1, apart / 32})},
		{ir.MatMul, ir.Attr{}, ir.Strided(dtype.BF16, []int{66, 40}, []int{apart/32 + 1, 1}), ir.Dense(dtype.BF16, 40, 66)},
		{ir.MatMul, ir.Attr{}, ir.Strided(dtype.F32, []int{40, 70}, []int{1, apart / 32}), ir.Strided(dtype.F32, []int{70, 66}, []int{apart / 32, 1})},
		{ir.MatMul, ir.Attr{}, ir.Strided(dtype.F64, []int{3, 7, 4}, []int{apart, 4, 1}), ir.Dense(dtype.F64, 3, 4, 6)},
	} {
		t.Run(fmt.Sprint(c.code, c.x, c.y), func(t *testing.T) {
			f.t = t
			var far, near []device.Arg
			var views, types []*ir.Type
			for _, v := range []*ir.Type{c.x, c.y} {
				if v != nil {
					dense := f.put(v.AsDense(), small(r, v.AsDense()))
					views, types = append(views, v), append(types, v.AsDense())
					far, near = append(far, f.spread(v, dense)), append(near, dense)
				}
			}
			got, want := f.run(ir.New(c.code, c.attr, views...), far...), f.run(ir.New(c.code, c.attr, types...), near...)
			if !bytes.Equal(got, want) {
				t.Errorf("got %x, of dense operands %x", got, want)
			}
			for _, a := range far {
				f.dev.Free(a.Mem)
			}
		})
	}
}

// TestFarRows takes rows and elements of a table from beyond its first 2³¹ elements.
func TestFarRows(t *testing.T) {
	f, r := newFar(t), testutil.Rand(t)
	const rows, width = 1<<18 + 3, 1 << 13
	table, ids := ir.Dense(dtype.BF16, rows, width), ir.Dense(dtype.I64, 3)
	w := f.alloc(table.Bytes())
	for _, c := range []struct {
		code ir.Code
		from *ir.Type
		step int
		at   []int64
	}{
		{ir.Embedding, table, width, []int64{rows - 1, 0, 1 << 18}},
		{ir.Gather, ir.Dense(dtype.BF16, rows*width), 1, []int64{rows*width - 1, 5, 1<<31 + 9}},
	} {
		item := ir.Dense(dtype.BF16, c.step)
		var want []byte
		for _, i := range c.at {
			data := f.put(item, small(r, item))
			want = append(want, f.buf.Bytes()[:item.Bytes()]...)
			w.Offset = i * item.Bytes()
			f.must(f.q.Copy(w, data, item.Bytes()))
		}
		w.Offset = 0
		if got := f.run(ir.New(c.code, ir.Attr{}, c.from, ids), w, f.put(ids, ref.Ints(ids, c.at...))); !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, want %x", c.code, got, want)
		}
	}
}

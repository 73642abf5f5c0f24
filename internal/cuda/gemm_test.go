package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	reference "github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"

	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
)

// TestTensorCores runs products of 16-bit matrices with the arithmetic of A100 and H100, which cuts off what others
// round, and with lanes that part.
func TestTensorCores(t *testing.T) {
	dev := newBareDevice(gpusim.Options{Checks: gpusim.AllChecks, Seed: 7, Numerics: gpusim.Truncating, Schedule: gpusim.Independent})
	runSuite(t, dev, func(c *conform.Case) bool { return c.Op.In(0).DType == dtype.BF16 }, ir.MatMul, ir.Linear)
}

// runSuite runs those of the short conformance cases of codes that are wanted and that the device prepares: one in two, and
// of each code those before the first that passes.
func runSuite(t *testing.T, dev device.Device, want func(c *conform.Case) bool, codes ...ir.Code) {
	t.Helper()
	o := conform.Options{Seed: testutil.Seed(t), Short: true, Codes: codes}
	spread := testutil.NewSpread(t, o.Seed, 2)
	cases := func(yield func(*conform.Case) bool) {
		for c := range conform.Cases(o) {
			if want(c) && !yield(c) {
				return
			}
		}
	}
	r, err := conform.NewRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	passed := map[ir.Code]int{}
	for c := range cases {
		if passed[c.Op.Code] > 0 && !spread.Takes(c.Name) {
			continue
		}
		switch res := r.Run(c); res.Status {
		case conform.Failed:
			t.Error(res.String())
		case conform.Passed:
			passed[c.Op.Code]++
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		if passed[code] == 0 {
			t.Errorf("no case of %s ran", code)
		}
	}
}

// TestConvTiles runs the suite's convolutions by tiles where the engine would not.
func TestConvTiles(t *testing.T) {
	dev := newBareDevice(gpusim.Options{Checks: gpusim.AllChecks, Seed: 5, Numerics: gpusim.Truncating, Schedule: gpusim.Independent})
	var side int
	dev.prepare = func(b *builder) (err error) {
		var c *convolution
		var p sides
		var plan func(*builder, sides)
		in, out := b.op.Ins(), b.outs[0]
		switch b.op.Code {
		case ir.Conv2d:
			if c, err = newConvolution(b, in[0], in[1], out); err == nil {
				p, plan = c.forward(), c.planForward
			}
		case ir.Conv2dGradInput:
			if c, err = newConvolution(b, out, in[1], in[0]); err == nil {
				p, plan = c.gradInput(), c.planGradInput
			}
		case ir.Conv2dGradWeight:
			if c, err = newConvolution(b, in[1], out, in[0]); err == nil {
				p, plan = c.gradWeight(), c.planGradWeight
			}
		}
		if err != nil || !p.tileable(c.dt) {
			return errors.Join(err, device.ErrUnsupported)
		}
		p.side = side
		plan(b, p)
		return nil
	}
	for _, side = range []int{64, 128} {
		want := func(c *conform.Case) bool {
			return c.Op.In(0).DType == dtype.BF16 || side == 64 && c.Op.In(0).DType == dtype.F32
		}
		runSuite(t, dev, want, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight)
	}
}

// TestTiles runs the kernels for tiles, whole and cut along k, against sums in float64: a run one product in three.
func TestTiles(t *testing.T) {
	r := testutil.Rand(t)
	spread := testutil.NewSpread(t, r.Uint64(), 3)
	dev := newBareDevice(gpusim.Options{Checks: gpusim.AllChecks, Numerics: gpusim.Truncating})
	large, small := (&product{}).tilings(dev.planner, dtype.BF16)
	largeF32, smallF32 := (&product{}).tilings(dev.planner, dtype.F32)
	for _, kernel := range []struct {
		dt   dtype.DType
		tile tiling
	}{{dtype.F32, smallF32}, {dtype.F32, largeF32}, {dtype.BF16, small}, {dtype.BF16, large}, {dtype.BF16, odd}, {dtype.F16, small}} {
		tile := kernel.tile
		for layout := range 4 {
			for i, size := range [][4]int{{tile.rows, tile.cols, 96, 1}, {tile.rows - 3, tile.cols + 5, 161, 2}, {tile.rows - 2, tile.cols - 6, 64, 1}} {
				name := fmt.Sprintf("%s/%s/%d/%v", kernel.dt, tile.name, layout, size)
				if !spread.Takes(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					dev.skew = int64(i * kernel.dt.Size() % 4)
					testTiles(t, r, dev, kernel.dt, tile, layout, size)
				})
			}
		}
	}
}

func testTiles(t *testing.T, r *rand.Rand, dev *bareDevice, dt dtype.DType, tile tiling, layout int, size [4]int) {
	m, n, k := size[0], size[1], size[2]
	a, b := randomMatrix(r, dt, m, k, layout&1 != 0), randomMatrix(r, dt, k, n, layout&2 != 0)
	got := dev.run(t, dt, tile, size[3], a, b)
	for i, v := range got.Data {
		var want, magnitude float64
		for l := range k {
			x := a.Data[i/n*k+l] * b.Data[l*n+i%n]
			want, magnitude = want+x, magnitude+math.Abs(x)
		}
		if d := math.Abs(v - want); d > math.Abs(want)*dt.Epsilon()/2+(2+math.Sqrt(float64(k)))*0x1p-23*magnitude {
			t.Fatalf("element %d,%d is %v, want %v", i/n, i%n, v, want)
		}
	}
}

// randomMatrix has neighbours in a column when transposed, else in a row.
func randomMatrix(r *rand.Rand, dt dtype.DType, rows, cols int, transposed bool) reference.Array {
	strides := []int{cols, 1}
	if transposed {
		strides = []int{1, rows}
	}
	typ := ir.Strided(dt, []int{rows, cols}, strides)
	v := make([]float64, rows*cols)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	image := make([]byte, typ.Span()*dt.Size())
	reference.Encode(image, typ, reference.Floats(typ, v...))
	return reference.Decode(image, typ)
}

// TestMainLoop pins what a step of the large kernels on tensor cores costs, as the difference of two lengths of k.
func TestMainLoop(t *testing.T) {
	r := testutil.Rand(t)
	dev := newBareDevice(gpusim.Options{Counters: true})
	for layout, name := range []string{"gemm128_kn_bf16", "gemm128_mn_bf16", "gemm128_kk_bf16", "gemm128_mk_bf16"} {
		large, _ := (&product{}).tilings(dev.planner, dtype.BF16)
		count := func(k int) gpusim.Counters {
			dev.run(t, dtype.BF16, large, 1, randomMatrix(r, dtype.BF16, large.rows, k, layout&1 != 0), randomMatrix(r, dtype.BF16, k, large.cols, layout&2 != 0))
			return dev.reports[name].Counters
		}
		short, long := count(256), count(512)
		per := func(f func(c gpusim.Counters) uint64) float64 {
			return float64(f(long)-f(short)) / float64(long.ByClass["tensor"]-short.ByClass["tensor"])
		}
		others := per(func(c gpusim.Counters) uint64 { return c.Instructions }) - 1
		wavefronts := per(func(c gpusim.Counters) uint64 { return c.SharedWavefronts })
		copies := per(func(c gpusim.Counters) uint64 { return c.ByClass["async copy"] - 2*c.ByClass["sync"] }) // less a commit and a wait per barrier
		t.Logf("%s: per mma %.3f other instructions, %.3f wavefronts, %.3f copies", name, others, wavefronts, copies)
		if others > 1.5 || wavefronts > 1.25 || long.SharedConflicts > 0 {
			t.Errorf("%s: %.3f other instructions and %.3f wavefronts per mma, %d bank conflicts", name, others, wavefronts, long.SharedConflicts)
		}
		if widest := float64(large.rows+large.cols) * 128 / (16 * 32) / float64(large.rows/16*large.cols/8*4); math.Abs(copies-widest) > 1e-9 {
			t.Errorf("%s: %.3f copies per mma, %.3f if all have 16 bytes", name, copies, widest)
		}
		if two := 2 * (dev.reports[name].Shared + 1<<10); two > gpusim.A100().SM.Shared {
			t.Errorf("%s: two blocks of four warps take %d bytes of shared memory, more than a multiprocessor has", name, two)
		}
	}
}

// TestOddRows pins what a step costs of which one operand's rows lie at odd distances, as the gradient of 50257 logits: a
// copy of each of its words and a repair of each of its chunks, and no more sectors than the rows touch.
func TestOddRows(t *testing.T) {
	r := testutil.Rand(t)
	dev := newBareDevice(gpusim.Options{Counters: true})
	for layout, name := range []string{"gemmodd_kn_bf16", "gemmodd_mn_bf16"} {
		count := func(k int) gpusim.Counters {
			dev.run(t, dtype.BF16, odd, 1, randomMatrix(r, dtype.BF16, odd.rows-1, k+1, layout&1 != 0), randomMatrix(r, dtype.BF16, k+1, odd.cols, false))
			return dev.reports[name].Counters
		}
		short, long := count(256), count(512)
		per := func(f func(c gpusim.Counters) uint64) float64 {
			return float64(f(long)-f(short)) / float64(long.ByClass["tensor"]-short.ByClass["tensor"])
		}
		others := per(func(c gpusim.Counters) uint64 { return c.Instructions }) - 1
		wavefronts := per(func(c gpusim.Counters) uint64 { return c.SharedWavefronts })
		sectors := float64(long.GlobalSectors-short.GlobalSectors) / float64((odd.rows+odd.cols)*256*2/32) // in proportion to the terms between
		t.Logf("%s: per mma %.3f other instructions, %.3f wavefronts; %.3f of the operands' sectors", name, others, wavefronts, sectors)
		if others > 6 || wavefronts > 2 || long.SharedConflicts > 0 || sectors > 1.3 {
			t.Errorf("%s: per mma %.3f other instructions and %.3f wavefronts, %d bank conflicts, %.3f of the operands' sectors", name, others, wavefronts, long.SharedConflicts, sectors)
		}
	}
}

// TestCut covers all terms by parts of at least longPart, no more than fill the grid, and fills it where there are terms.
func TestCut(t *testing.T) {
	for _, k := range []int{0, 1, 31, 511, 1023, 1024, 1025, 4096, 50257, 65536, 1 << 28} {
		for _, tiles := range []int{1, 3, 64, 72, 96, 144, 263, 264, 1 << 20} {
			splits, per := cutTerms(k, tiles, 64)
			if splits < 1 || splits*per < k || splits > 1 && ((splits-1)*per >= k || tiles*(splits-1) >= fullGrid+fullGrid/8 || per < longPart || per%64 != 0) {
				t.Errorf("%d terms over %d tiles: %d parts of %d", k, tiles, splits, per)
			}
			if full := ceilDiv(fullGrid, tiles); k >= full*(longPart+64) && splits < full {
				t.Errorf("%d terms over %d tiles: %d parts, %d fill the grid", k, tiles, splits, full)
			}
		}
	}
}

// TestJoin compares the places that a product's joined batch names with those of its dimensions.
func TestJoin(t *testing.T) {
	r := testutil.Rand(t)
	places := func(p *product) (list [][2]int) {
		list = [][2]int{{}}
		for _, d := range p.dims {
			var next [][2]int
			for _, at := range list {
				for i := range d.size {
					next = append(next, [2]int{at[0] + i*d.a, at[1] + i*d.b})
				}
			}
			list = next
		}
		return list
	}
	for range 200 {
		var p product
		step := 1
		for range r.IntN(5) {
			d := batchDim{1 + r.IntN(3), step * r.IntN(2), step * r.IntN(2)}
			p.dims = slices.Insert(p.dims, 0, d)
			step *= d.size
		}
		before := slices.Clone(p.dims)
		want := places(&p)
		p.join()
		if got := places(&p); !slices.Equal(got, want) {
			t.Fatalf("%v joined to %v: %v, want %v", before, p.dims, got, want)
		}
	}
}

// run computes a product on a bare device with a tiling and returns the result's elements.
func (d *bareDevice) run(t *testing.T, dt dtype.DType, tile tiling, splits int, a, b reference.Array) reference.Array {
	t.Helper()
	return d.runWith(t, dt, a, b, func(p *product, plan *builder) {
		depth := 128 / dt.Size()
		p.planTiles(plan, dt, tile, splits, roundUp(ceilDiv(p.k, splits), depth))
	})
}

// runWith computes a product by the plan that f makes.
func (d *bareDevice) runWith(t *testing.T, dt dtype.DType, a, b reference.Array, f func(p *product, plan *builder)) reference.Array {
	t.Helper()
	p := product{m: a.Type.Dim(0), n: b.Type.Dim(1), k: a.Type.Dim(1),
		aRow: a.Type.Strides()[0], aCol: a.Type.Strides()[1], bRow: b.Type.Strides()[0], bCol: b.Type.Strides()[1]}
	out := ir.Dense(dt, p.m, p.n)
	op := ir.New(ir.MatMul, ir.Attr{}, a.Type, b.Type)
	plan := &builder{d: d.planner, op: &op, outs: []*ir.Type{out}}
	p.c, p.a, p.b = plan.out(0), plan.in(0), plan.in(1)
	f(&p, plan)
	if plan.err != nil {
		t.Fatal(plan.err)
	}
	place := func(x reference.Array) device.Arg {
		image := make([]byte, int(d.skew)+x.Type.Span()*dt.Size())
		reference.Encode(image[d.skew:], x.Type, x)
		m, err := d.Alloc(int64(len(image)))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.sim.Write(m.Addr, image); err != nil {
			t.Fatal(err)
		}
		return device.Arg{Mem: m, Offset: d.skew}
	}
	args := []device.Arg{{}, place(a), place(b), {}}
	for i, n := range map[int]int64{0: int64(out.Size() * dt.Size()), 3: max(plan.work, 1)} {
		m, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		args[i].Mem = m
	}
	k := &device.Kernel{Op: op, Out: plan.outs, Impl: &plan.plan}
	if err := (bareQueue{d}).Launch(k, args, nil); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, out.Size()*dt.Size())
	if err := d.sim.Read(image, args[0].Mem.Addr); err != nil {
		t.Fatal(err)
	}
	for _, a := range args {
		d.Free(a.Mem)
	}
	return reference.Decode(image, out)
}

// TestSchedules cuts a product in parts and demands the same bits of every order of blocks and warps.
func TestSchedules(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.BF16} {
		a, b := randomMatrix(r, dt, 70, 1100, false), randomMatrix(r, dt, 1100, 90, true)
		_, small := (&product{}).tilings(newBareDevice(gpusim.Options{}).planner, dt)
		var first []float64
		for i, o := range []gpusim.Options{{}, {Seed: 1, Cores: 2}, {Seed: 2, Schedule: gpusim.Independent}} {
			got := newBareDevice(o).run(t, dt, small, 3, a, b).Data
			if i == 0 {
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("%s: the bits of schedules %+v and none differ", dt, o)
			}
		}
	}
}

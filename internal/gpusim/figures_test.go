package gpusim

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// ragged is a kernel whose blocks do different amounts of work: each stores 3·block+5 times, from shared memory.
const ragged = `
.version 7.4
.target sm_80
.address_size 64
.visible .entry ragged(.param .u64 out)
{
	.reg .b64 %out, %at; .reg .b32 %lane, %cta, %i, %n, %v, %s; .reg .pred %p;
	.shared .align 4 .b8 part[512];
	ld.param.u64 %out, [out];
	mov.u32 %lane, %tid.x; mov.u32 %cta, %ctaid.x;
	mad.lo.u32 %i, %cta, 128, %lane; mul.wide.u32 %at, %i, 4; add.s64 %out, %out, %at;
	mul.lo.u32 %s, %lane, 4; mov.u32 %v, part; add.u32 %s, %s, %v;
	mul.lo.u32 %n, %cta, 3; add.u32 %n, %n, 5; mov.u32 %i, 0;
again:
	st.shared.u32 [%s], %i;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%out], %v;
	add.u32 %i, %i, 1;
	setp.lt.u32 %p, %i, %n;
	@%p bra again;
	ret;
}
`

// figured are launches whose counts and times are compared with what a golden file says. Sampled ones have no whole number of blocks
// for each that ran, so that a sum that is rounded in parts would show.
var figured = []struct {
	name   string
	launch func(t *testing.T, o Options) *Report
}{
	{"transpose", func(t *testing.T, o Options) *Report {
		const n = 320
		r := newRig(t, source(t), false)
		return r.launch("transpose", d2(n/32, n/32), d2(32, 8), o, r.upload(make([]float32, n*n), "x"), r.alloc(4*n*n, "y"), int32(n), int32(n))
	}},
	{"sgemm", func(t *testing.T, o Options) *Report {
		const m, n, k = 320, 448, 32
		r := newRig(t, source(t), false)
		return r.launch("sgemm", d2(n/64, m/64), d1(256), o, r.upload(make([]float32, m*k), "a"), r.upload(make([]float32, k*n), "b"), r.alloc(4*m*n, "c"), int32(m), int32(n), int32(k))
	}},
	{"gemm_bf16", func(t *testing.T, o Options) *Report { return onGemm(t, 320, o) }},
	{"softmax", func(t *testing.T, o Options) *Report {
		const rows, cols = 37, 300
		r := newRig(t, source(t), false)
		return r.launch("softmax", d1(rows), d1(32), o, r.upload(make([]float32, rows*cols), "x"), r.alloc(4*rows*cols, "y"), int32(cols))
	}},
	{"layernorm", func(t *testing.T, o Options) *Report {
		const rows, cols = 31, 769
		r := newRig(t, source(t), false)
		return r.launch("layernorm", d1(rows), d1(256), o, r.upload(make([]float32, rows*cols), "x"), r.upload(make([]float32, cols), "g"),
			r.upload(make([]float32, cols), "b"), r.alloc(4*rows*cols, "y"), int32(cols))
	}},
	{"histogram", func(t *testing.T, o Options) *Report {
		const n = 11 * 256
		r := newRig(t, source(t), false)
		return r.launch("histogram", d1(11), d1(256), o, r.upload(make([]byte, n), "x"), r.upload(make([]uint32, 256), "bins"), int32(n))
	}},
	{"ragged", func(t *testing.T, o Options) *Report {
		r := newRig(t, ragged, false)
		return r.launch("ragged", d1(47), d1(128), o, r.alloc(47*512, "out"))
	}},
}

// TestSameFigures: counts and modelled times are the same bits whatever the level of assembly, the number of cores and threads, the
// seed, and the machine: those of a golden file, which builds without assembly and for other processors compare with too.
func TestSameFigures(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var text bytes.Buffer
	for _, x := range figured {
		for _, sample := range []int{0, 6} {
			var first *Report
			var lines []Line
			run := func(level cpufeat.Level, cores int) {
				defer cpufeat.Set(level)()
				runtime.GOMAXPROCS(cores)
				o := Options{Counters: true, Sample: sample, Skip: sample > 0, Cores: cores, Seed: uint64(cores - 1)}
				rep := x.launch(t, o)
				got := rep.Lines()
				if rep.lines = nil; first == nil {
					first, lines = rep, got
				}
				if !reflect.DeepEqual(rep, first) || !reflect.DeepEqual(got, lines) {
					t.Errorf("%s, %+v on %v: %+v, before %+v", x.name, o, level, rep, first)
				}
			}
			for _, level := range cpufeat.Levels() {
				run(level, 1)
			}
			for _, cores := range []int{2, 3, 4} {
				run(cpufeat.Active(), cores)
			}
			fmt.Fprintf(&text, "%s, %d of %d blocks: %d instructions, %d sectors, %d wavefronts", x.name, first.Counted, first.Work.Blocks,
				first.Counters.Instructions, first.Counters.GlobalSectors, first.Counters.SharedWavefronts)
			for _, name := range []string{"v100-32", "a100-80", "rtx-4090", "h100-80"} {
				card, ok := cards.Find(name)
				if !ok {
					t.Fatal(name)
				}
				card.L2 >>= 14 // so small that blocks do not find there what others had
				seconds, _ := estimate.Seconds(&card, &first.Work)
				fmt.Fprintf(&text, "; %s %x", name, seconds)
			}
			text.WriteByte('\n')
		}
	}
	testutil.Golden(t, "testdata/figures.txt", text.Bytes())
}

// TestUncertainty: counts that are scaled from some blocks are off by no more than the report says, and it says nothing to fear of
// blocks that do as much.
func TestUncertainty(t *testing.T) {
	for _, x := range figured {
		all := x.launch(t, Options{Counters: true})
		if all.Sampled != nil {
			t.Errorf("%s: %+v without a sample", x.name, all.Sampled)
		}
		for _, n := range []int{2, 6, 12, 20} {
			some := x.launch(t, Options{Counters: true, Sample: n, Skip: true})
			u := some.Sampled
			// Two blocks are one place; of a kernel whose blocks may talk to each other all run.
			if (u == nil) != (n == 2 || some.Counted == some.Work.Blocks) {
				t.Errorf("%s, %d blocks: %+v", x.name, n, u)
			}
			if u == nil {
				continue
			}
			for _, c := range []struct {
				name      string
				some, all uint64
				off       float64
			}{
				{"instructions", some.Counters.Instructions, all.Counters.Instructions, u.Instructions},
				{"sectors", some.Counters.GlobalSectors, all.Counters.GlobalSectors, u.Sectors},
				{"wavefronts", some.Counters.SharedWavefronts, all.Counters.SharedWavefronts, u.Wavefronts},
			} {
				// Counts are rounded block of code by block of code.
				if off := max(float64(c.some)-float64(c.all), float64(c.all)-float64(c.some)); off > c.off*float64(c.some)+50 {
					t.Errorf("%s, %d blocks: %d %s of a sample, off by %.3f, of all %d", x.name, n, c.some, c.name, c.off, c.all)
				}
			}
			if differ := x.name == "ragged"; (u.Instructions > 0.05) != differ {
				t.Errorf("%s, %d blocks: %+v", x.name, n, *u)
			}
		}
	}
}

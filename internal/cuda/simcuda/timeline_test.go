package simcuda

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// spinner is a kernel whose threads count to n.
const spinner = `
.version 7.4
.target sm_80
.address_size 64
.visible .entry spin(.param .u32 n)
{
	.reg .b32 %i, %n; .reg .pred %p;
	ld.param.u32 %n, [n];
	mov.u32 %i, 0;
again:
	add.s32 %i, %i, 1;
	setp.lt.u32 %p, %i, %n;
	@%p bra again;
	ret;
}
`

// timed is a program on a machine whose every step leaves an event behind. Its times are in ns since an event at its start, which is
// when the host comes back from recording it: what a call gives to the card h ns later may begin at h.
type timed struct {
	*rig
	spin    driver.Function
	dev     driver.Ptr
	host    uintptr
	streams [3]driver.Stream
	origin  driver.Event
	marks   []driver.Event
	took    []int64 // by launch, what the model says
}

const mega = 1 << 24

func newTimed(t testing.TB, c Config) *timed {
	p := &timed{}
	c.OnLaunch = func(_ string, rep *gpusim.Report) {
		s, _ := estimate.Seconds(&p.sys.card, &rep.Work)
		p.took = append(p.took, int64(math.Round(1e9*s)))
	}
	p.rig = newRig(t, c)
	p.do(0, func() driver.Result {
		m, _, res := p.api.ModuleLoadData([]byte(spinner))
		if res == driver.Success {
			p.spin, res = p.api.ModuleGetFunction(m, "spin")
		}
		return res
	})
	p.dev, p.host = p.alloc(0, 2*mega), p.pinned(mega)
	for i := range p.streams {
		p.streams[i] = p.stream(0, driver.StreamNonBlocking)
	}
	p.origin = p.event(0, 0)
	p.do(0, func() driver.Result { return p.api.EventRecord(p.origin, p.streams[0]) })
	return p
}

func (p *timed) up(s int, bytes int64) {
	p.do(0, func() driver.Result { return p.api.MemcpyHtoDAsync(p.dev, p.host, bytes, p.streams[s]) })
}

func (p *timed) down(s int, bytes int64) {
	p.do(0, func() driver.Result { return p.api.MemcpyDtoHAsync(p.host, p.dev, bytes, p.streams[s]) })
}

// fill takes all multiprocessors.
func (p *timed) fill(s int, bytes int64) {
	p.do(0, func() driver.Result { return p.api.MemsetD8Async(p.dev, 1, bytes, p.streams[s]) })
}

// launch takes as many multiprocessors as there are blocks.
func (p *timed) launch(s int, blocks uint32) {
	cfg := driver.LaunchConfig{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{32, 1, 1}, Stream: p.streams[s]}
	p.do(0, func() driver.Result { return p.api.LaunchKernelEx(&cfg, p.spin, pack(uint32(2000))) })
}

// mark leaves an event in a stream. Its call takes 500 ns.
func (p *timed) mark(s int) driver.Event {
	e := p.event(0, 0)
	p.do(0, func() driver.Result { return p.api.EventRecord(e, p.streams[s]) })
	p.marks = append(p.marks, e)
	return e
}

func (p *timed) wait(s int, e driver.Event) {
	p.do(0, func() driver.Result { return p.api.StreamWaitEvent(p.streams[s], e) })
}

func (p *timed) sync(s int) {
	p.do(0, func() driver.Result { return p.api.StreamSynchronize(p.streams[s]) })
}

// times are those of the marks.
func (p *timed) times() (list []int64) {
	p.do(0, p.api.CtxSynchronize)
	for _, e := range p.marks {
		p.do(0, func() driver.Result {
			ms, res := p.api.EventElapsedTime(p.origin, e)
			list = append(list, int64(math.Round(1e6*float64(ms))))
			return res
		})
	}
	return list
}

// program is what a test gives to the card, and the times of its marks that are wanted, by what a kernel takes.
type program struct {
	name string
	run  func(p *timed)
	want func(k int64) []int64
}

// programs are timelines derived by hand. A call takes the host 2200 ns, an event 500; what it gives to the card begins there a
// microsecond after the call, and so does the event at the origin, so that this cancels out. An upload or download of 1,000,000
// bytes takes 2000 + 40,000 ns; a fill of 20,390,000 bytes 2000 + 10,000. Kernels take k, by the model.
var programs = []program{
	{"one stream", func(p *timed) {
		p.up(0, 1000_000) // given at 2200: [2200, 44,200]
		p.up(0, 1000_000) // given at 4400: [44,200, 86,200]
		p.mark(0)
	}, func(int64) []int64 { return []int64{86200} }},

	{"an idle stream", func(p *timed) {
		p.mark(1) // at 500
		p.mark(1) // at 1000
		p.wait(1, p.origin)
		p.mark(1) // at 2000: the wait is for what is over
	}, func(int64) []int64 { return []int64{500, 1000, 2000} }},

	{"copies in both directions overlap", func(p *timed) {
		p.up(0, 1000_000)   // [2200, 44,200]
		p.down(1, 1000_000) // given at 4400: [4400, 46,400]
		p.mark(0)
		p.mark(1)
	}, func(int64) []int64 { return []int64{44200, 46400} }},

	{"copies in one direction do not", func(p *timed) {
		p.up(0, 1000_000) // [2200, 44,200]
		p.up(1, 500_000)  // given at 4400; the engine is free at 44,200: [44,200, 66,200]
		p.mark(0)
		p.mark(1)
	}, func(int64) []int64 { return []int64{44200, 66200} }},

	{"a copy beside a kernel, which waits for an event", func(p *timed) {
		p.up(0, 1000_000)   // [2200, 44,200]
		e := p.mark(0)      // given at 2700: 44,200
		p.fill(1, 10195000) // given at 4900: [4900, 11,900]
		p.mark(1)
		p.wait(1, e)
		p.fill(1, 20390000) // [44,200, 56,200]
		p.mark(1)
	}, func(int64) []int64 { return []int64{44200, 11900, 56200} }},

	{"what is ready runs before what is not", func(p *timed) {
		p.up(0, 10_000_000) // [2200, 404,200]
		p.fill(0, 20390000) // waits for it: [404,200, 416,200]
		p.mark(0)
		p.fill(1, 20390000) // given at 7100, before the other can begin: [7100, 19,100]
		p.mark(1)
	}, func(int64) []int64 { return []int64{416200, 19100} }},

	{"kernels share the multiprocessors", func(p *timed) {
		p.launch(0, 54) // half of 108: [2200, 2200+k]
		p.launch(1, 54) // given at 4400: [4400, 4400+k]
		p.launch(2, 54) // given at 6600; the first ends at 2200+k: [2200+k, 2200+2k]
		p.mark(0)
		p.mark(1)
		p.mark(2)
		p.fill(1, 20390000) // takes all: at 2200+2k
		p.mark(1)
	}, func(k int64) []int64 { return []int64{2200 + k, 4400 + k, 2200 + 2*k, 2200 + 2*k + 12000} }},

	{"the host waits", func(p *timed) {
		p.up(0, 1000_000) // [2200, 44,200], of the host's clock 1000 later
		p.sync(0)         // back at 45,200 + 5000
		p.mark(0)         // given at 50,700
		p.up(0, 1000_000) // given at 52,900: [52,900, 94,900]
		p.mark(0)
	}, func(int64) []int64 { return []int64{50700, 94900} }},

	{"a pipeline of three chunks over two streams", func(p *timed) {
		for i := range 3 { // given 2200 apart, from 2200 on
			p.up(i%2, 1000_000)   // [2200, 44,200], [44,200, 86,200], the third behind the first's download: [98,200, 140,200]
			p.fill(i%2, 20390000) // [44,200, 56,200], [86,200, 98,200], [140,200, 152,200]
			p.down(i%2, 1000_000) // [56,200, 98,200], [98,200, 140,200], [152,200, 194,200]
		}
		p.mark(0)
		p.mark(1)
	}, func(int64) []int64 { return []int64{194200, 140200} }},
}

// graphPrograms are timelines of graphs. A launch takes the host 2500 ns and 50 a node; captures take no time.
var graphPrograms = []program{
	{"a graph of one branch", func(p *timed) {
		p.launchGraph(0, p.captured(func() { // given at 2600
			p.fill(0, 20390000) // [2600, 14,600]
			p.fill(0, 20390000) // [14,600, 26,600]
		}))
		p.mark(0)
	}, func(int64) []int64 { return []int64{26600} }},

	{"a graph that forks and joins", func(p *timed) {
		p.launchGraph(0, p.captured(func() { // given at 2700
			p.fill(0, 20390000) // [2700, 14,700]
			p.follow(1, 0)
			p.down(1, 1000_000) // [14,700, 56,700]
			p.up(0, 1000_000)   // [14,700, 56,700]
			p.follow(0, 1)
			p.fill(0, 20390000) // [56,700, 68,700]
		}))
		p.mark(0)
	}, func(int64) []int64 { return []int64{68700} }},

	{"two graphs on two streams", func(p *timed) {
		make := func() driver.GraphExec {
			return p.captured(func() {
				p.up(0, 1000_000)
				p.fill(0, 20390000)
			})
		}
		a, b := make(), make()
		p.launchGraph(0, a) // given at 2600: [2600, 44,600], [44,600, 56,600]
		p.launchGraph(1, b) // given at 5200, the engine is free at 44,600: [44,600, 86,600], [86,600, 98,600]
		p.mark(0)
		p.mark(1)
	}, func(int64) []int64 { return []int64{56600, 98600} }},

	{"the same graph on two streams", func(p *timed) {
		x := p.captured(func() {
			p.up(0, 1000_000)
			p.fill(0, 20390000)
		})
		p.launchGraph(0, x) // given at 2600: [2600, 44,600], [44,600, 56,600]
		p.launchGraph(1, x) // behind it: [56,600, 98,600], [98,600, 110,600]
		p.mark(0)
		p.mark(1)
	}, func(int64) []int64 { return []int64{56600, 110600} }},

	{"branches share the multiprocessors", func(p *timed) {
		p.launchGraph(0, p.captured(func() { // given at 2700
			p.follow(1, 0)
			p.follow(2, 0)
			p.launch(0, 54) // half of 108: [2700, 2700+k]
			p.launch(1, 54) // beside it
			p.launch(2, 54) // behind one of them: [2700+k, 2700+2k]
			p.follow(0, 1)
			p.follow(0, 2)
			p.fill(0, 20390000) // [2700+2k, 2700+2k+12,000]
		}))
		p.mark(0)
	}, func(k int64) []int64 { return []int64{2700 + 2*k + 12000} }},

	{"a graph between work of its stream, and an event inside", func(p *timed) {
		p.up(0, 1000_000) // given at 2200: [2200, 44,200]
		e := p.event(0, 0)
		p.marks = append(p.marks, e)
		p.launchGraph(0, p.built(func(g driver.Graph) driver.Result { // given at 2200+2650, behind the copy
			fill := &driver.FillNode{Dst: p.dev, ElementSize: 1, Elements: 20390000}
			a, _ := p.api.GraphAddMemsetNode(g, nil, fill, p.ctx[0])                   // [44,200, 56,200]
			b, _ := p.api.GraphAddEventRecordNode(g, []driver.GraphNode{a}, e)         // at 56,200
			_, r := p.api.GraphAddMemsetNode(g, []driver.GraphNode{b}, fill, p.ctx[0]) // [56,200, 68,200]
			return r
		}))
		p.up(0, 1000_000) // [68,200, 110,200]
		p.mark(0)
	}, func(int64) []int64 { return []int64{56200, 110200} }},
}

// captured is what work in the first stream, and others from there on, makes a graph of.
func (p *timed) captured(f func()) (x driver.GraphExec) {
	p.do(0, func() driver.Result { return p.api.StreamBeginCapture(p.streams[0], driver.CaptureRelaxed) })
	f()
	p.do(0, func() driver.Result {
		g, r := p.api.StreamEndCapture(p.streams[0])
		if r == driver.Success {
			x, r = p.api.GraphInstantiateWithFlags(g, 0)
		}
		return r
	})
	return x
}

// built is a graph that f adds nodes to.
func (p *timed) built(f func(g driver.Graph) driver.Result) (x driver.GraphExec) {
	p.do(0, func() driver.Result {
		g, _ := p.api.GraphCreate()
		r := f(g)
		if r == driver.Success {
			x, r = p.api.GraphInstantiateWithFlags(g, 0)
		}
		return r
	})
	return x
}

func (p *timed) launchGraph(s int, x driver.GraphExec) {
	p.do(0, func() driver.Result { return p.api.GraphLaunch(x, p.streams[s]) })
}

// follow lets a stream wait for what another has captured.
func (p *timed) follow(s, after int) {
	e := p.event(0, 0)
	p.do(0, func() driver.Result { return p.api.EventRecord(e, p.streams[after]) })
	p.wait(s, e)
}

// TestTimelines runs the programs with effects at the call and late ones, whatever the seed and the number of processors.
func TestTimelines(t *testing.T) {
	for _, x := range slices.Concat(programs, graphPrograms) {
		t.Run(x.name, func(t *testing.T) {
			for i, c := range []Config{{}, {Cores: 1}, {LateEffects: true}, {LateEffects: true, Seed: 1}, {LateEffects: true, Seed: 7}, {Clock: true}} {
				func() {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + i%3))
					p := newTimed(t, c)
					x.run(p)
					got, k := p.times(), int64(0)
					if len(p.took) > 0 {
						k = p.took[0]
					}
					for _, took := range p.took {
						if took != k || k < 5000 {
							t.Errorf("kernels take %v", p.took)
						}
					}
					// The driver tells times as float32.
					if want := x.want(k); !slices.EqualFunc(got, want, func(a, b int64) bool { return max(a-b, b-a) <= 1 }) {
						t.Errorf("%+v: %v, want %v", c, got, want)
					}
				}()
			}
		})
	}
}

// TestEngine compares with a search nanosecond by nanosecond.
func TestEngine(t *testing.T) {
	r := testutil.Rand(t)
	for range 300 {
		var e engine
		var taken [400]float64
		for range 25 {
			ready, c := int64(r.IntN(100)), cost{ns: int64(1 + r.IntN(10)), share: float64(1+r.IntN(4)) / 4}
			want := ready
			for at := want; at < want+c.ns; at++ {
				if taken[at]+c.share > fullShare {
					want = at + 1
				}
			}
			for at := want; at < want+c.ns; at++ {
				taken[at] += c.share
			}
			if got := e.place(ready, c); got != want {
				t.Fatalf("%+v at %d, want %d: %+v", c, got, want, e)
			}
		}
	}
}

// TestAhead: a stream holds so many pieces of work, then a call waits for the oldest, and what is over is forgotten.
func TestAhead(t *testing.T) {
	p := newTimed(t, Config{})
	const took = 3000 // longer than its call
	for range maxAhead + 1 {
		p.up(0, 25000)
	}
	p.mark(1)
	if last, free := p.times()[0], int64((maxAhead+1)*launchCall+callTime); last != free {
		t.Errorf("the host is at %d, want %d", last, free)
	}
	p = newTimed(t, Config{})
	for range 10 * maxAhead {
		p.up(0, 25000)
	}
	p.mark(1)
	// The last call waited until the one maxAhead before it had ended.
	if got, least := p.times()[0], int64(launchCall+9*maxAhead*took); got < least || got > least+10*launchCall {
		t.Errorf("the host is at %d, %d expected", got, least)
	}
	if n := len(p.sys.devices[0].ctx.time.engines[upload].list); n > 2*(maxAhead+manyBusy) {
		t.Errorf("%d times are remembered", n)
	}
}

// TestRealHost: what the program takes between calls passes.
func TestRealHost(t *testing.T) {
	for _, real := range []bool{false, true} {
		p := newTimed(t, Config{RealHost: real})
		p.mark(0)
		start := time.Now()
		for time.Since(start) < 3*time.Millisecond {
			runtime.Gosched()
		}
		p.mark(0)
		if d := p.times(); (d[1]-d[0] >= 3_000_000) != real {
			t.Errorf("real %v: %d ns between two events", real, d[1]-d[0])
		}
	}
}

// TestClockCounts: with the word clock a kernel whose lanes lie apart takes longer than one whose lanes do not, and the same again
// as the first time.
func TestClockCounts(t *testing.T) {
	c, err := ParseConfig("clock,host=virtual")
	if err != nil || !c.Clock || c.RealHost {
		t.Fatal(c, err)
	}
	p := newTimed(t, c)
	const n = 1 << 15
	x := p.alloc(0, 4*n)
	scale := p.kernel(0, "scale")
	for range 3 {
		p.do(0, func() driver.Result { return p.api.LaunchKernelEx(line(n, p.streams[0]), scale, pack(x, uint32(n))) })
	}
	if len(p.sys.traffic) != 1 {
		t.Errorf("%d kinds of launches", len(p.sys.traffic))
	}
	for _, l := range p.sys.traffic {
		if math.Abs(l.Unique-n/8) > 1e-6*n || math.Abs(l.Requested-2*n/8) > 1e-6*n { // read and written
			t.Errorf("%+v", l)
		}
	}
}

// TestWarmCards: with the word warm a kernel whose data fit in L2 takes less, and one without data as long as before.
func TestWarmCards(t *testing.T) {
	times := func(words string) (with, without int64) {
		c, err := ParseConfig(words)
		if err != nil {
			t.Fatal(err)
		}
		p := newTimed(t, c)
		const n = 1 << 20
		x := p.alloc(0, 4*n)
		scale := p.kernel(0, "scale")
		p.mark(0)
		p.do(0, func() driver.Result { return p.api.LaunchKernelEx(line(n, p.streams[0]), scale, pack(x, uint32(n))) })
		p.mark(0)
		p.launch(0, 1)
		p.mark(0)
		d := p.times()
		return d[1] - d[0], d[2] - d[1]
	}
	cold, idle := times("clock")
	warm, same := times("clock,warm")
	if warm >= cold || idle != same {
		t.Errorf("%d and %d ns, warm %d and %d", cold, idle, warm, same)
	}
}

// TestSameTimes: times depend on the program and the card alone, not on how many cores simulate, how many threads Go has, in which
// order blocks, warps and lanes take turns, or when asynchronous work takes effect.
func TestSameTimes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	run := func(c Config) []int64 {
		p := newTimed(t, c)
		const n = 1 << 14
		x := p.upload(0, make([]float32, n))
		scale := p.kernel(0, "scale")
		for i := range 12 {
			s := i % len(p.streams)
			p.up(s, int64(1000*i))
			p.launch(s, uint32(1+i))
			p.do(0, func() driver.Result {
				return p.api.LaunchKernelEx(line(n>>(i%4), p.streams[0]), scale, pack(x, uint32(n>>(i%4))))
			})
			p.wait((s+1)%len(p.streams), p.mark(s))
		}
		return p.times()
	}
	want := run(Config{Cores: 1})
	for _, c := range []Config{{}, {Cores: 1}, {Cores: 3}, {Seed: 5}, {Seed: 6}, {LateEffects: true}, {LateEffects: true, Seed: 7}, {Checks: gpusim.AllChecks}} {
		for procs := 1; procs <= 2; procs++ {
			runtime.GOMAXPROCS(procs)
			if got := run(c); !slices.Equal(got, want) {
				t.Errorf("%+v, %d threads: %v, want %v", c, procs, got, want)
			}
		}
	}
}

// TestAssembled: registers that an assembler tells decide occupancy and how large a block may be, in the place of the estimate, and
// are what the model of time goes by.
func TestAssembled(t *testing.T) {
	p := newTimed(t, Config{})
	blocks := func() (n int) {
		p.do(0, func() (res driver.Result) {
			n, res = p.api.OccupancyMaxActiveBlocksPerMultiprocessor(p.spin, 128, 0)
			return res
		})
		return n
	}
	launch := func(threads uint32) driver.Result {
		cfg := driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Stream: p.streams[0]}
		return p.api.LaunchKernelEx(&cfg, p.spin, pack(uint32(20)))
	}
	if n := blocks(); n != 16 {
		t.Errorf("%d blocks", n)
	}
	p.do(0, func() driver.Result { return launch(512) })
	p.do(0, func() driver.Result { return p.api.Assembled(p.spin, 255) })
	if n := blocks(); n != 2 { // 8 warps of 8 Ki registers
		t.Errorf("%d blocks of 255 registers", n)
	}
	p.fails(driver.OutOfResources, 0, "255 registers", func() driver.Result { return launch(512) })
	p.do(0, func() driver.Result { return launch(256) })
	for _, l := range p.sys.traffic {
		if l.Threads == 256 && l.Registers != 255 {
			t.Errorf("%+v", l)
		}
	}
	for _, n := range []int{0, 256} {
		p.fails(driver.InvalidValue, 0, "registers", func() driver.Result { return p.api.Assembled(p.spin, n) })
	}
}

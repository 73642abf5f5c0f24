package gpusim

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// benchmark launches a kernel again and again on one core and reports lane instructions and, where given, operations.
func benchmark(b *testing.B, name string, grid, block [3]int, flops float64, o Options, args func(r *rig) []any) {
	b.Helper()
	benchmarkOf(b, source(b), name, grid, block, flops, o, args)
}

func benchmarkOf(b *testing.B, src, name string, grid, block [3]int, flops float64, o Options, args func(r *rig) []any) {
	b.Helper()
	r := newRig(b, src, o.Checks&Initcheck != 0)
	k, params := r.prog.Kernel(name), pack(r.prog.Kernel(name), args(r)...)
	o.Cores = 1
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	var lanes uint64
	for b.Loop() {
		rep, err := r.dev.Launch(k, grid, block, 0, params, o)
		if err != nil || len(rep.Findings) > 0 {
			b.Fatal(err, rep.Findings)
		}
		lanes += rep.Counters.LaneInstructions
	}
	s := (threadTime() - start).Seconds()
	b.ReportMetric(s/float64(b.N)*1e9, "cpu-ns/launch")
	b.ReportMetric(float64(lanes)/s/1e9, "Glane-inst/s")
	if flops > 0 {
		b.ReportMetric(flops*float64(b.N)/s/1e9, "GFLOP/s")
	}
}

// onLevels runs a benchmark on each level of assembly.
func onLevels(b *testing.B, f func(b *testing.B)) {
	for _, l := range cpufeat.Levels() {
		b.Run(l.String(), func(b *testing.B) {
			defer cpufeat.Set(l)()
			f(b)
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	const n = 1 << 18
	onLevels(b, func(b *testing.B) {
		benchmark(b, "add", d1(n/256), d1(256), 0, Options{}, func(r *rig) []any {
			return []any{r.alloc(4*n, "a"), r.alloc(4*n, "b"), r.alloc(4*n, "c"), int32(n)}
		})
	})
}

// BenchmarkGlobal is the check of races in global memory where accesses to it are most of what a kernel does.
func BenchmarkGlobal(b *testing.B) {
	const n = 1 << 16
	for _, c := range []Check{Memcheck, Globalcheck} {
		o := Options{Checks: c}
		b.Run("add/"+c.String(), func(b *testing.B) {
			benchmark(b, "add", d1(n/256), d1(256), 0, o, func(r *rig) []any {
				return []any{r.alloc(4*n, "a"), r.alloc(4*n, "b"), r.alloc(4*n, "c"), int32(n)}
			})
		})
		b.Run("sgemm/"+c.String(), func(b *testing.B) {
			benchmark(b, "sgemm", d2(4, 4), d1(256), 2*256*256*256, o, func(r *rig) []any {
				return []any{r.alloc(4*n, "a"), r.alloc(4*n, "b"), r.alloc(4*n, "c"), int32(256), int32(256), int32(256)}
			})
		})
		b.Run("softmax/"+c.String(), func(b *testing.B) {
			benchmark(b, "softmax", d1(64), d1(32), 0, o, func(r *rig) []any {
				return []any{r.alloc(4*n, "x"), r.alloc(4*n, "y"), int32(512)}
			})
		})
	}
}

// BenchmarkScan is scans whose blocks wait for each other.
func BenchmarkScan(b *testing.B) {
	for _, name := range []string{"scan_lookback", "scan_lookback_packed", "scan_chained_release"} {
		for _, c := range []Check{Memcheck, Globalcheck} {
			b.Run(name+"/"+c.String(), func(b *testing.B) {
				benchmarkOf(b, fileText(b, "testdata/lockfree.ptx"), name, d1(8), d1(64), 0, Options{Checks: c}, func(r *rig) []any {
					return []any{r.alloc(4*512, "x"), r.alloc(4*512, "y"), r.alloc(4*4096, "work")}
				})
			})
		}
	}
}

func BenchmarkTinyLaunch(b *testing.B) {
	benchmark(b, "add", d1(1), d1(256), 0, Options{}, func(r *rig) []any {
		return []any{r.alloc(4096, "a"), r.alloc(4096, "b"), r.alloc(4096, "c"), int32(256)}
	})
}

func BenchmarkSgemm(b *testing.B) {
	const n = 256
	onLevels(b, func(b *testing.B) {
		benchmark(b, "sgemm", d2(n/64, n/64), d1(256), 2*n*n*n, Options{}, func(r *rig) []any {
			return []any{r.alloc(4*n*n, "a"), r.alloc(4*n*n, "b"), r.alloc(4*n*n, "c"), int32(n), int32(n), int32(n)}
		})
	})
}

func gemmBF16(b *testing.B, n int, o Options) {
	b.Helper()
	benchmark(b, "gemm_bf16", d2(n/64, n/64), d1(128), 2*float64(n)*float64(n)*float64(n), o, func(r *rig) []any {
		return []any{r.upload(make([]uint16, n*n), "a"), r.upload(make([]uint16, n*n), "b"), r.alloc(4*n*n, "c"), int32(n), int32(n), int32(n)}
	})
}

func BenchmarkGemmBF16(b *testing.B) {
	onLevels(b, func(b *testing.B) { gemmBF16(b, 512, Options{}) })
}

func BenchmarkGemmBF16Checks(b *testing.B) {
	for _, c := range []Check{Memcheck, Synccheck, Initcheck, Racecheck, Globalcheck, AllChecks} {
		b.Run(c.String(), func(b *testing.B) { gemmBF16(b, 512, Options{Checks: c}) })
	}
	b.Run("counters", func(b *testing.B) { gemmBF16(b, 512, Options{Counters: true}) })
}

func BenchmarkSoftmax(b *testing.B) {
	const rows, cols = 64, 512
	onLevels(b, func(b *testing.B) {
		benchmark(b, "softmax", d1(rows), d1(32), 0, Options{}, func(r *rig) []any {
			return []any{r.alloc(4*rows*cols, "x"), r.alloc(4*rows*cols, "y"), int32(cols)}
		})
	})
}

// BenchmarkLoad parses, checks and loads a module of a hundred kernels, and compiles one.
func BenchmarkLoad(b *testing.B) {
	src := source(b)
	text, n := src, strings.Count(src, ".entry ")
	for copies := 1; n < 100; copies++ {
		for _, f := range ptxFunctions(src) {
			if n < 100 {
				text += strings.Replace(f.text, f.name, fmt.Sprint(f.name, "_", copies), 1)
				n++
			}
		}
	}
	b.SetBytes(int64(len(text)))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	for b.Loop() {
		m, err := ptx.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		p, err := NewDevice(A100(), false).Load(m)
		if err != nil {
			b.Fatal(err)
		}
		if p.Kernel("add") == nil {
			b.Fatal("no kernel")
		}
	}
	b.ReportMetric((threadTime()-start).Seconds()/float64(b.N)*1e3, "cpu-ms/load")
}

type ptxFunction struct{ name, text string }

// ptxFunctions cuts kernels that use nothing of the module out of it.
func ptxFunctions(src string) (list []ptxFunction) {
	for _, part := range strings.Split(src, ".visible .entry ")[1:] {
		name, _, _ := strings.Cut(part, "(")
		end := strings.Index(part, "\n}")
		body := part[:end+3]
		if !strings.Contains(body, "_ZZ") && !strings.Contains(body, "call") && !strings.Contains(body, "const") {
			list = append(list, ptxFunction{name, ".visible .entry " + body})
		}
	}
	return list
}

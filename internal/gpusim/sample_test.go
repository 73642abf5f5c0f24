package gpusim

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestSampled: the blocks follow from the grid, lie in it, and each place has the next block along every dimension.
func TestSampled(t *testing.T) {
	r := testutil.Rand(t)
	for range 2000 {
		grid := [3]int{1 + r.IntN(200), 1 + r.IntN(20), 1 + r.IntN(5)}
		total := grid[0] * grid[1] * grid[2]
		n := 1 + r.IntN(maxSampled)
		if n >= total {
			continue
		}
		list, places := sampled(grid, n)
		if len(list) > max(n, 4) || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) || list[0] < 0 || list[len(list)-1] >= total {
			t.Fatalf("%v, %d: %v", grid, n, list)
		}
		for _, place := range places {
			base := list[place[0]]
			i, stride := 1, 1
			for _, size := range grid {
				if size > 1 {
					if d := list[place[i]] - base; d != stride && d != -stride {
						t.Fatalf("%v: block %d beside %d", grid, list[place[i]], base)
					}
					i++
				}
				stride *= size
			}
			if i != len(place) {
				t.Fatal(place)
			}
		}
	}
}

// onGemm launches a product of n×n in tiles of 64, and returns its report.
func onGemm(t *testing.T, n int, o Options) *Report {
	t.Helper()
	r := newRig(t, source(t), o.Checks&Initcheck != 0)
	a, b, c := r.upload(make([]uint16, n*n), "a"), r.upload(make([]uint16, n*n), "b"), r.alloc(4*n*n, "c")
	rep, err := r.try("gemm_bf16", d2(n/64, n/64), d1(128), o, a, b, c, int32(n), int32(n), int32(n))
	if err != nil || len(rep.Findings) > 0 {
		t.Fatal(err, rep.Findings)
	}
	return rep
}

// TestWork derives by hand what a product of matrices is to the model: 2n³ operations, and n² elements of each operand and of the
// result that are touched, of two bytes and of four.
func TestWork(t *testing.T) {
	const n = 256
	for _, o := range []Options{{Counters: true}, {Counters: true, Sample: 9}, {Counters: true, Sample: 9, Skip: true}, {Counters: true, Checks: AllChecks}, {Counters: true, Sample: 6, Checks: AllChecks}} {
		w := onGemm(t, n, o).Work
		flops := 0.0
		for _, f := range w.Tensor {
			flops += f
		}
		touched := float64(2*2*n*n+4*n*n) / 32
		if math.Abs(flops-2*n*n*n) > 1 || math.Abs(w.Unique-touched) > 1e-9*touched || w.Blocks != 16 || w.Threads != 128 {
			t.Errorf("%+v: %v operations, %v sectors, want %v and %v", o, flops, w.Unique, 2*n*n*n, touched)
		}
		if own := float64(2*2*64*n+4*64*64) / 32; math.Abs(w.Own-own) > 1e-9*own {
			t.Errorf("%+v: a block touches %v sectors, want %v", o, w.Own, own)
		}
		// Each of 16 blocks reads 64 rows of a and 64 columns of b, and writes its tile, of which each sector by two stores.
		if want := float64(16*(2*2*64*n)+2*4*n*n) / 32; math.Abs(w.Requested-want) > 1e-9*want {
			t.Errorf("%+v: %v sectors requested, want %v", o, w.Requested, want)
		}
	}
}

// TestSampleAll: where all blocks do the same, a sample counts what all of them do, whether the others run or not; and what they
// write does not depend on it.
func TestSampleAll(t *testing.T) {
	all := onGemm(t, 256, Options{Counters: true})
	for cores := 1; cores <= 3; cores++ {
		for _, skip := range []bool{false, true} {
			got := onGemm(t, 256, Options{Counters: true, Sample: 10, Skip: skip, Cores: cores})
			if got.Counted >= 16 || !reflect.DeepEqual(got.Counters, all.Counters) {
				t.Errorf("%d blocks counted: %+v, want %+v", got.Counted, got.Counters, all.Counters)
			}
			if skip && !reflect.DeepEqual(got.Lines(), all.Lines()) {
				t.Errorf("%+v, want %+v", got.Lines(), all.Lines())
			}
			if !reflect.DeepEqual(got.Work, all.Work) {
				t.Errorf("%+v, want %+v", got.Work, all.Work)
			}
		}
	}
}

// TestLines: the lines add up to the counters, whose lines they are.
func TestLines(t *testing.T) {
	r := newRig(t, source(t), false)
	rep, err := r.try("scan", d1(6), d1(256), Options{Counters: true, Seed: 3}, r.upload(make([]uint32, 6*256), "x"), r.alloc(6*1024, "y"))
	if err != nil {
		t.Fatal(err)
	}
	var sum Line
	for _, l := range rep.Lines() {
		sum.Divergent += l.Divergent
		sum.GlobalRequests += l.GlobalRequests
		sum.GlobalSectors += l.GlobalSectors
		sum.SharedRequests += l.SharedRequests
		sum.SharedWavefronts += l.SharedWavefronts
		sum.SharedConflicts += l.SharedConflicts
		if l.LaneInstructions > 32*l.Instructions || l.Inst == "" || l.Instructions == 0 {
			t.Errorf("%+v", l)
		}
	}
	c := rep.Counters
	if got, want := fmt.Sprint(sum.Divergent, sum.GlobalRequests, sum.GlobalSectors, sum.SharedRequests, sum.SharedWavefronts, sum.SharedConflicts),
		fmt.Sprint(c.Divergent, c.GlobalRequests, c.GlobalSectors, c.SharedRequests, c.SharedWavefronts, c.SharedConflicts); got != want || c.SharedRequests == 0 || c.Divergent == 0 {
		t.Errorf("lines %s, counters %s", got, want)
	}
}

// TestConflictLine: bank conflicts are those of the line that has them, sectors too.
func TestConflictLine(t *testing.T) {
	src := wrap(".reg .b32 %r1, %r2; .shared .align 4 .b8 s[4096];", "shl.b32 %r1, %lane, 7;\nld.shared.u32 %r2, [%r1];\nld.global.u32 %r2, [%in];\nst.shared.u32 [s], %r2;")
	r := newRig(t, src, false)
	rep := r.launch("k", d1(1), d1(32), Options{Counters: true}, r.upload(make([]uint64, 4*32), "in"), r.alloc(8*32, "out"))
	for _, l := range rep.Lines() {
		conflicts, sectors := uint64(0), uint64(0)
		switch l.Inst {
		case "ld.shared.u32":
			conflicts = 31
		case "ld.global.u32":
			sectors = 32
		}
		if l.SharedConflicts != conflicts || l.GlobalSectors != sectors {
			t.Errorf("%+v", l)
		}
	}
	if n := rep.Work.Instructions[ptx.PipeMemory]; n != 3 || rep.Work.GlobalWaits != 1 || rep.Work.SharedWaits != 1 {
		t.Errorf("%v accesses, %+v", n, rep.Work)
	}
}

// TestHottest counts atomics at one address.
func TestHottest(t *testing.T) {
	src := wrap("", "ld.param.u64 %out, [out];\nred.global.add.u32 [%out], 1;")
	r := newRig(t, src, false)
	rep := r.launch("k", d1(50), d1(64), Options{Counters: true, Sample: 4}, r.upload(make([]uint64, 4*64), "in"), r.alloc(8*64, "out"))
	if rep.Work.Hottest != 50*64 || rep.Work.Unique != 1 {
		t.Errorf("%+v", rep.Work)
	}
}

// TestSpread: the places of a sample lie evenly along each dimension, not in one row or column.
func TestSpread(t *testing.T) {
	for _, grid := range [][3]int{{8, 128, 1}, {128, 8, 1}, {64, 64, 1}, {16, 16, 16}, {5, 40, 3}} {
		list, places := sampled(grid, maxSampled)
		for d, stride := 0, 1; d < 3; stride, d = stride*grid[d], d+1 {
			seen := map[int]bool{}
			for _, place := range places {
				seen[list[place[0]]/stride%grid[d]] = true
			}
			if len(seen) < min(grid[d], len(places)) {
				t.Errorf("%v: %d places along dimension %d of %d", grid, len(seen), d, len(places))
			}
		}
	}
}

// TestHalves derives what a warp touches that stores so many bytes, so far apart: its sectors, those alone in their 64 bytes, and those
// stored in part.
func TestHalves(t *testing.T) {
	for _, c := range []struct {
		inst               string
		shift              int // of the lane's number
		unique, lone, part float64
	}{
		{"st.global.u32", 2, 4, 0, 0},    // 128 bytes in a row
		{"st.global.u32", 5, 32, 0, 32},  // 4 bytes of each sector
		{"st.global.u32", 6, 32, 32, 32}, // of every other one
		{"st.global.v4.u32", 4, 16, 0, 0},
		{"st.global.v4.u32", 5, 32, 0, 32},
		{"ld.global.u32", 5, 32, 0, 0}, // loads have no parts
		{"ld.global.u32", 6, 32, 32, 0},
	} {
		value := "%r1"
		if strings.Contains(c.inst, "v4") {
			value = "{%r1, %r1, %r1, %r1}"
		}
		access := c.inst + " [%rd1], " + value + ";"
		if c.inst[0] == 'l' {
			access = c.inst + " %r1, [%rd1];"
		}
		src := wrap(".reg .b32 %r1; .reg .b64 %rd1;", fmt.Sprintf("ld.param.u64 %%out, [out];\nmov.u32 %%r1, 7;\ncvt.u64.u32 %%rd1, %%lane;\nshl.b64 %%rd1, %%rd1, %d;\nadd.s64 %%rd1, %%rd1, %%out;\n%s", c.shift, access))
		r := newRig(t, src, false)
		rep := r.launch("k", d1(1), d1(32), Options{Counters: true}, r.upload(make([]uint64, 4*32), "in"), r.upload(make([]uint64, 512), "out"))
		if w := rep.Work; w.Unique != c.unique || w.Lone != c.lone || w.Part != c.part {
			t.Errorf("%s, lanes %d bytes apart: %+v", c.inst, 1<<c.shift, w.Touched)
		}
	}
}

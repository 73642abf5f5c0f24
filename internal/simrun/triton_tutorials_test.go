package simrun

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// tutorialMakers prepare kernels of bench/triton/tutorials.py.
var tutorialMakers = map[string]func(k *tritonRun){
	"softmax_rows": softmaxRows, "dropout": dropout, "dropout_seeded": seededDropout, "add_dependent_sm90": addition,
	"layer_norm_backward": layerNormBackward, "layer_norm_sums": layerNormSums, "layer_norm_sums_sm90": layerNormSums,
	"matmul_groups":            matMulGroups(false, [3]int{64, 64, 32}, [3]int{128, 32, 64}, [3]int{64, 32, 96}),
	"matmul_groups_sm90":       matMulGroups(false, [3]int{64, 64, 32}, [3]int{128, 32, 64}, [3]int{64, 32, 96}),
	"matmul_groups_boxes_sm90": matMulGroups(true, [3]int{70, 40, 48}, [3]int{64, 32, 32}, [3]int{65, 56, 40}),
	"attention_delta":          attentionDelta, "attention_delta_sm90": attentionDelta,
	"attention_backward": attentionBackward(37, 32), "attention_backward_sm90": attentionBackward(67, 64),
	"persistent": persistent, "persistent_sm90": persistent,
	"persistent_boxes_sm90": persistentBoxes, "persistent_halves_sm90": persistentBoxes, "persistent_specialised_sm90": persistentBoxes,
	"persistent_described_sm90": persistentBoxes, "persistent_described_specialised_sm90": persistentBoxes,
}

// sameForHopper are the kernels for sm_80 that Triton compiles to the same for sm_90, but for the lines that say so: compile.py asks.
var sameForHopper = []string{"add", "softmax", "softmax_rows", "layer_norm", "layer_norm_backward", "dropout", "dropout_seeded"}

// softmaxRows are rows that few blocks walk.
func softmaxRows(k *tritonRun) {
	const rows, cols = 7, 208
	x := k.normals(rows * cols)
	k.grid = "3"
	k.buffer("f32", x, rows, cols)
	k.result("f32", rows, cols)
	k.scalars(fmt.Sprint("i32:", rows), fmt.Sprint("i32:", cols))
	for r := range rows {
		for _, p := range softmaxOf(x[r*cols:][:cols]) {
			k.expect(p, 32*ulp32*p)
		}
	}
}

const dropped = float32(0.3) // the probability

// keep expects x where it is kept, scaled.
func (k *tritonRun) keep(x float64, kept bool) {
	if !kept {
		x = 0
	}
	want := x / (1 - float64(dropped))
	k.expect(want, 8*ulp32*math.Abs(want))
}

func dropout(k *tritonRun) {
	const n = 1003
	x, kept := k.normals(n), make([]float64, n)
	for i := range kept {
		kept[i] = float64(k.r.IntN(2))
		k.keep(x[i], kept[i] != 0)
	}
	k.grid = "4"
	k.buffer("f32", x, n)
	k.buffer("i32", kept, n)
	k.result("f32", n)
	k.scalars(fmt.Sprint("i32:", n), fmt.Sprint("f32:", dropped))
}

// seededDropout keeps what Philox says, of which Triton makes a float of 31 bits.
func seededDropout(k *tritonRun) {
	const n = 1003
	x, seed := k.normals(n), k.r.Int32()
	k.grid = "4"
	k.buffer("f32", x, n)
	k.result("f32", n)
	k.scalars(fmt.Sprint("i32:", n), fmt.Sprint("f32:", dropped), fmt.Sprint("i32:", seed))
	for i := range x {
		bits := int32(rng.Uint32x4(rng.Key(seed), uint64(i))[0])
		k.keep(x[i], float32(max(bits, ^bits))*4.6566127342e-10 > dropped)
	}
}

// layerNormBackward: blocks of more rows than locks meet at these.
func layerNormBackward(k *tritonRun) {
	const rows, cols, groups = 7, 237, 2
	x, dy, w := k.normals(rows*cols), k.normals(rows*cols), k.normals(cols)
	mean, scale := k.normals(rows), k.normals(rows)
	k.grid, k.unordered = fmt.Sprint(rows), true
	k.result("f32", rows, cols)
	k.buffer("f32", dy, rows, cols)
	k.result("f32", groups, cols)
	k.result("f32", groups, cols)
	k.buffer("f32", x, rows, cols)
	k.buffer("f32", w, cols)
	k.buffer("f32", mean, rows)
	k.buffer("f32", scale, rows)
	k.scalars(fmt.Sprintf("i32[%d]=0", 2*groups), fmt.Sprint("i32:", cols))
	dw, db := newSums(groups*cols), newSums(groups*cols)
	for r := range rows {
		unit, g := make([]float64, cols), make([]float64, cols)
		both, alone := newSums(1), newSums(1)
		for i := range cols {
			at := r*cols + i
			unit[i], g[i] = (x[at]-mean[r])*scale[r], w[i]*dy[at]
			both.add(0, unit[i]*g[i]/cols)
			alone.add(0, g[i]/cols)
			dw.add(r%groups*cols+i, dy[at]*unit[i])
			db.add(r%groups*cols+i, dy[at])
		}
		for i := range cols {
			dx := (g[i] - unit[i]*both.sum[0] - alone.sum[0]) * scale[r]
			k.expect(dx, 32*ulp32*math.Abs(scale[r])*(math.Abs(g[i])+math.Abs(unit[i])*both.size[0]+alone.size[0]))
		}
	}
	k.expectSums(dw)
	k.expectSums(db)
}

func layerNormSums(k *tritonRun) {
	const rows, cols = 37, 101
	k.grid = "2"
	var all [2]*sums
	for i := range all {
		x := k.normals(rows * cols)
		k.buffer("f32", x, rows, cols)
		all[i] = newSums(cols)
		for at, v := range x {
			all[i].add(at%cols, v)
		}
	}
	for _, s := range all {
		k.result("f32", cols)
		k.expectSums(s)
	}
	k.scalars(fmt.Sprint("i32:", rows), fmt.Sprint("i32:", cols))
}

// sums are sums with those of magnitudes, which errors are measured by.
type sums struct{ sum, size []float64 }

func newSums(n int) *sums { return &sums{make([]float64, n), make([]float64, n)} }

func (s *sums) add(i int, v float64) {
	s.sum[i] += v
	s.size[i] += math.Abs(v)
}

func (k *tritonRun) expectSums(s *sums) {
	for i := range s.sum {
		k.expect(s.sum[i], 16*ulp32*s.size[i])
	}
}

// matMulGroups are products of several shapes M, N, K, whose addresses are in tables, by fewer blocks than tiles.
func matMulGroups(transposed bool, shapes ...[3]int) func(k *tritonRun) {
	return func(k *tritonRun) {
		k.grid = "3"
		var sizes []float64
		for _, s := range shapes {
			sizes = append(sizes, float64(s[0]), float64(s[1]), float64(s[2]))
		}
		table := fmt.Sprintf("i64[%d]=0", len(shapes))
		k.scalars(table, table, table)
		k.buffer("i32", sizes, len(shapes), 3)
		k.scalars(fmt.Sprint("i32:", len(shapes)))
		k.own = len(k.args)
		for _, s := range shapes {
			k.product("f16", transposed, s[0], s[1], s[2])
			k.tables = append(k.tables, 0, 1, 2)
		}
	}
}

func persistent(k *tritonRun) {
	matMul("f16", 77, 80, 80)(k)
	k.mma, k.grid = false, "4"
}

func persistentBoxes(k *tritonRun) {
	hopperProduct(k, "f16", true, 40, 48)
	k.mma, k.grid = false, "3"
}

// matrix adds a matrix in float16.
func (k *tritonRun) matrix(rows, cols int) [][]float64 {
	x := k.short(rows * cols)
	k.buffer("f16", x, rows, cols)
	return slices.Collect(slices.Chunk(x, cols))
}

func dot(x, y []float64) (sum, size float64) {
	for i := range x {
		sum, size = sum+x[i]*y[i], size+math.Abs(x[i]*y[i])
	}
	return sum, size
}

func attentionDelta(k *tritonRun) {
	const heads, rows, width = 2, 77, 32
	k.grid = fmt.Sprint("3,", heads)
	o, do := k.matrix(heads*rows, width), k.matrix(heads*rows, width)
	k.result("f32", heads*rows)
	k.scalars(fmt.Sprint("i32:", rows))
	for i := range o {
		sum, size := dot(o[i], do[i])
		k.expect(sum, 16*ulp32*size)
	}
}

// attentionBackward is causal.
func attentionBackward(rows, block int) func(k *tritonRun) {
	return func(k *tritonRun) {
		const heads, width, scale = 2, 32, 0.25
		k.grid = fmt.Sprintf("%d,%d", (rows+block-1)/block, heads)
		var g attentionGradients
		for _, x := range []*[][]float64{&g.q, &g.k, &g.v, &g.do} {
			*x = k.matrix(heads*rows, width)
		}
		for _, s := range []**sums{&g.dq, &g.dk, &g.dv} {
			k.result("f16", heads*rows, width)
			*s = newSums(heads * rows * width)
		}
		for i := range g.q {
			g.query(i, i/rows*rows, scale)
		}
		k.buffer("f32", g.logs, heads*rows)
		k.buffer("f32", g.deltas, heads*rows)
		k.scalars(fmt.Sprint("i32:", rows), fmt.Sprint("f32:", scale))
		for _, s := range []*sums{g.dq, g.dk, g.dv} {
			for i, want := range s.sum {
				k.expect(want, s.size[i]+ulpF16*math.Abs(want)+tinyF16)
			}
		}
	}
}

// attentionGradients are of queries, keys and values, whose sizes are their errors: weights and the gradients of scores are rounded
// to float16 before they are multiplied.
type attentionGradients struct {
	q, k, v, do  [][]float64
	dq, dk, dv   *sums
	logs, deltas []float64
}

// query adds what comes from query i to the keys from the first of its head to its own.
func (g *attentionGradients) query(i, first int, scale float64) {
	scores, dp, size := make([]float64, i+1-first), make([]float64, i+1-first), make([]float64, i+1-first)
	for j := range scores {
		scores[j], _ = dot(g.q[i], g.k[first+j])
		scores[j] *= scale
		dp[j], size[j] = dot(g.do[i], g.v[first+j])
	}
	p := softmaxOf(scores)
	delta, _ := dot(p, dp)
	g.logs, g.deltas = append(g.logs, scores[0]-math.Log(p[0])), append(g.deltas, delta)
	for j := range p {
		ds := scale * p[j] * (dp[j] - delta)
		g.dv.addRow(first+j, p[j], g.do[i], (ulpF16+64*ulp32)*p[j]+tinyF16)
		off := ulpF16*math.Abs(ds) + scale*(tinyF16+64*ulp32*p[j]*(size[j]+math.Abs(delta)))
		g.dq.addRow(i, ds, g.k[first+j], off)
		g.dk.addRow(first+j, ds, g.q[i], off)
	}
}

// addRow adds a multiple of x to a row; the factor may be off by so much.
func (s *sums) addRow(row int, by float64, x []float64, off float64) {
	for d := range x {
		s.sum[row*len(x)+d] += by * x[d]
		s.size[row*len(x)+d] += off * math.Abs(x[d])
	}
}

const tinyF16 = 0x1p-25 // half of the smallest number

// TestTritonLock: what orders the rows of layer_norm_backward is left out, one by one: each is found to be missing.
func TestTritonLock(t *testing.T) {
	path, err := filepath.Abs("testdata/triton/layer_norm_backward")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path + ".ptx")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	release := text[strings.LastIndex(text, "st.global"):strings.LastIndex(text, "atom.global")]
	for mutant, oldnew := range map[string][]string{
		"no acquire":                    {"atom.global.acq_rel.gpu.cas", "atom.global.release.gpu.cas"},
		"no release":                    {"atom.global.gpu.acq_rel.exch", "atom.global.gpu.acquire.exch"},
		"atomics of the block":          {"acq_rel.gpu.cas", "acq_rel.cta.cas", "gpu.acq_rel.exch", "cta.acq_rel.exch"},
		"no barrier before the release": {release, strings.ReplaceAll(release, "bar.sync", "// bar.sync")},
	} {
		t.Run(mutant, func(t *testing.T) {
			t.Chdir(t.TempDir())
			k := &tritonRun{kernel: path, t: t, r: testutil.Rand(t)}
			layerNormBackward(k)
			k.changed("", oldnew...)
			for _, f := range k.tried(Config{Seed: 1, Schedule: "independent"}).Findings {
				if f.Check == gpusim.Globalcheck.String() {
					return
				}
			}
			t.Error("no finding of races in global memory")
		})
	}
}

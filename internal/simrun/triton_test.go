package simrun

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// tritonRun is a launch of a kernel as Triton compiled it (bench/triton), with what must come of it in float64.
type tritonRun struct {
	kernel, grid string
	args         []string
	own          int   // of those, how many the kernel has; 0: all. The others are buffers whose addresses tables have
	tables       []int // for each of those, the argument that has its address
	outs         []int // the arguments that have results
	want         []float64
	allow        []float64 // the error of each result
	half         float64   // of what is rounded to 16 bits
	mma          bool      // in tensor cores, hence to be run with truncating sums too
	unordered    bool      // sums are in the order that blocks come in

	t      *testing.T
	r      *rand.Rand
	spread testutil.Spread // of schedules
}

// TestTriton runs kernels of Triton under all checks, most on sizes that are no multiple of a block, in several schedules:
// right results, the same bits in each, and no finding. A run takes half of the schedules.
func TestTriton(t *testing.T) {
	seed := testutil.Seed(t)
	r, spread := rand.New(rand.NewPCG(seed, 0)), testutil.NewSpread(t, seed, 2)
	dir, err := filepath.Abs("testdata/triton")
	if err != nil {
		t.Fatal(err)
	}
	makers := map[string]func(k *tritonRun){"add": addition, "softmax": softmax, "layer_norm": layerNorm, "histogram": histogram, "cumsum": cumSum,
		"matmul_tf32": matMul("f32", 77, 48, 80), "matmul_tf32_odd": matMul("f32", 67, 37, 45),
		"matmul_bf16": matMul("bf16", 77, 48, 80), "matmul_bf16_odd": matMul("bf16", 67, 37, 45),
		"attention_f16": attention("f16"), "attention_bf16": attention("bf16")}
	maps.Copy(makers, hopperMakers)
	maps.Copy(makers, tutorialMakers)
	files, err := filepath.Glob(filepath.Join(dir, "*.ptx"))
	if err != nil || len(files) != len(makers) {
		t.Fatalf("%d files for %d kernels, %v", len(files), len(makers), err)
	}
	for name, prepare := range makers {
		test := func(hopper bool) func(t *testing.T) {
			return func(t *testing.T) {
				t.Chdir(t.TempDir())
				k := &tritonRun{kernel: filepath.Join(dir, name), t: t, r: r, spread: spread}
				prepare(k)
				if hopper {
					k.changed("_sm90", ".version 8.8\n.target sm_80", ".version 9.4\n.target sm_90a")
				}
				k.run()
			}
		}
		t.Run(name, test(false))
		if slices.Contains(sameForHopper, name) {
			t.Run(name+" for sm_90", test(true))
		}
	}
}

func (k *tritonRun) run() {
	natural := k.launch(Config{})
	for _, c := range []Config{{Seed: 1, Schedule: "independent"}, {Seed: 2}, {Seed: 3, Schedule: "independent"}, {Seed: 4}} {
		if !k.spread.Takes(fmt.Sprint(filepath.Base(k.kernel), c.Seed)) {
			continue
		}
		if got := k.launch(c); !k.unordered && !bytes.Equal(got, natural) {
			k.t.Errorf("seed %d: other bits than in the natural order", c.Seed)
		}
	}
	if k.mma {
		k.launch(Config{Numerics: "truncating"})
	}
}

// launch does what warpline sim run --meta does, and returns the results.
func (k *tritonRun) launch(c Config) []byte {
	t := k.t
	res := k.tried(c)
	for _, f := range res.Findings {
		t.Error(f.Text())
	}
	for _, n := range res.Notes {
		t.Error(n) // of results that nobody wrote
	}
	all := &npy.Array{}
	for _, out := range k.outs {
		file, err := os.ReadFile(outFile(out))
		if err != nil {
			t.Fatal(err)
		}
		a, err := npy.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		all.DType, all.Data = a.DType, append(all.Data, a.Data...)
	}
	k.compare(all)
	return all.Data
}

func (k *tritonRun) tried(c Config) *Result {
	c.Card = hopperCard(k.kernel)
	c.File, c.Meta, c.Shared, c.Checks = k.kernel+".ptx", k.kernel+".json", -1, "all"
	own := cmp.Or(k.own, len(k.args))
	c.Grid, c.Args = k.grid, k.args[:own]
	for _, out := range k.outs {
		if out < own {
			c.Outs = append(c.Outs, fmt.Sprint(out, "=", outFile(out)))
		}
	}
	j, err := prepare(c)
	if err == nil {
		err = k.point(j, k.args[own:])
	}
	if err != nil {
		k.t.Fatal(err)
	}
	res, err := j.run(k.t.Context(), c)
	if err != nil {
		k.t.Fatal(err)
	}
	return res
}

func outFile(arg int) string { return fmt.Sprint(arg, ".out.npy") }

// point makes the buffers that are no arguments, and puts their addresses into tables that are.
func (k *tritonRun) point(j *job, buffers []string) error {
	words, err := parseWords(buffers)
	if err != nil {
		return err
	}
	filled := map[int]uint64{}
	for i, w := range words {
		a, table := argument{word: w}, k.tables[i]
		if err := j.place(&a); err != nil {
			return err
		}
		if err := j.dev.Write(j.args[table].addr+filled[table], binary.LittleEndian.AppendUint64(nil, a.addr)); err != nil {
			return err
		}
		filled[table] += 8
		if slices.Contains(k.outs, k.own+i) {
			j.outs = append(j.outs, out{len(j.args), k.own + i, outFile(k.own + i)})
		}
		j.args = append(j.args, a)
	}
	return nil
}

// changed makes it run another text, which it writes to the folder of the test with a name that ends in suffix.
func (k *tritonRun) changed(suffix string, oldnew ...string) {
	name := filepath.Base(k.kernel) + suffix
	for _, ext := range []string{".ptx", ".json"} {
		b, err := os.ReadFile(k.kernel + ext)
		if err != nil {
			k.t.Fatal(err)
		}
		text := string(b)
		if ext == ".ptx" {
			if text = strings.NewReplacer(oldnew...).Replace(text); text == string(b) {
				k.t.Fatalf("%s has no %q", k.kernel, oldnew[0])
			}
		}
		write(k.t, name+ext, text)
	}
	k.kernel = name
}

func (k *tritonRun) compare(a *npy.Array) {
	if len(a.Data) != 4*len(k.want) {
		k.t.Fatalf("%d bytes for %d results", len(a.Data), len(k.want))
	}
	for i, want := range k.want {
		bits := binary.LittleEndian.Uint32(a.Data[4*i:])
		got := float64(math.Float32frombits(bits))
		if a.DType == "<i4" {
			got = float64(int32(bits))
		}
		if !(math.Abs(got-want) <= k.allow[i]) {
			k.t.Fatalf("element %d is %g, want %g ± %g", i, got, want, k.allow[i])
		}
	}
}

// buffer adds an argument with content, converted if typ is a type of 16 bits.
func (k *tritonRun) buffer(typ string, data []float64, shape ...int) {
	a := &npy.Array{DType: "<f4", Shape: shape}
	for _, v := range data {
		bits := math.Float32bits(float32(v))
		if typ == "i32" {
			bits = uint32(int32(v))
		}
		a.Data = binary.LittleEndian.AppendUint32(a.Data, bits)
	}
	if typ == "i32" {
		a.DType = "<i4"
	}
	if typ == "i32" || typ == "f32" {
		typ = ""
	}
	var b bytes.Buffer
	name := fmt.Sprintf("%d.npy", len(k.args))
	if err := npy.Write(&b, a); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		k.t.Fatal(err)
	}
	k.args = append(k.args, typ+"@"+name)
}

// result adds the argument that takes the results, which nobody wrote before.
func (k *tritonRun) result(typ string, shape ...int) {
	k.outs = append(k.outs, len(k.args))
	k.args = append(k.args, typ+shapeText(shape))
}

func (k *tritonRun) scalars(words ...string) { k.args = append(k.args, words...) }

// expect adds a result that may be off by allow.
func (k *tritonRun) expect(want, allow float64) {
	k.want, k.allow = append(k.want, want), append(k.allow, allow)
}

// normals are n floats.
func (k *tritonRun) normals(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(k.r.NormFloat64()))
	}
	return x
}

// short are n normal numbers of 8 significant bits, which every type of tensor cores has, so that products are exact.
func (k *tritonRun) short(n int) []float64 {
	x := k.normals(n)
	for i := range x {
		x[i] = dtype.BF16FromFloat64(x[i]).Float64()
	}
	return x
}

// Of roundings in float32 and in 16 bits.
const (
	ulp32   = 0x1p-24
	ulpF16  = 0x1p-11
	ulpBF16 = 0x1p-8
)

func half(typ string) float64 {
	switch typ {
	case "f16":
		return ulpF16
	case "bf16":
		return ulpBF16
	}
	return 0
}

func addition(k *tritonRun) {
	const n = 1003
	x, y := k.normals(n), k.normals(n)
	k.grid = "4"
	k.buffer("f32", x, n)
	k.buffer("f32", y, n)
	k.result("f32", n)
	k.scalars(fmt.Sprint("i32:", n))
	for i := range x {
		k.expect(float64(float32(x[i]+y[i])), 0)
	}
}

// softmaxOf is a softmax of a row, less its maximum first.
func softmaxOf(row []float64) []float64 {
	most, total := math.Inf(-1), 0.0
	for _, v := range row {
		most = max(most, v)
	}
	p := make([]float64, len(row))
	for i, v := range row {
		p[i] = math.Exp(v - most)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// softmax allows the error of ex2.approx and of its argument, which has 2^-24 of up to 10, and that of the sum.
func softmax(k *tritonRun) {
	const rows, cols = 3, 777
	x := k.normals(rows * cols)
	k.grid = fmt.Sprint(rows)
	k.buffer("f32", x, rows, cols)
	k.result("f32", rows, cols)
	k.scalars(fmt.Sprint("i32:", cols))
	for r := range rows {
		for _, p := range softmaxOf(x[r*cols:][:cols]) {
			k.expect(p, 32*ulp32*p)
		}
	}
}

func layerNorm(k *tritonRun) {
	const rows, cols, eps = 3, 637, 1e-5
	x, w, b := k.normals(rows*cols), k.normals(cols), k.normals(cols)
	k.grid = fmt.Sprint(rows)
	k.buffer("f32", x, rows, cols)
	k.result("f32", rows, cols)
	k.buffer("f32", w, cols)
	k.buffer("f32", b, cols)
	k.scalars(fmt.Sprint("i32:", cols), fmt.Sprint("f32:", eps))
	for r := range rows {
		row := x[r*cols:][:cols]
		mean, variance := 0.0, 0.0
		for _, v := range row {
			mean += v / cols
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / cols
		}
		scale := 1 / math.Sqrt(variance+eps)
		for i, v := range row {
			k.expect((v-mean)*scale*w[i]+b[i], 32*ulp32*((math.Abs(v)+1)*scale*math.Abs(w[i])+math.Abs(b[i])))
		}
	}
}

// histogram counts with atomics, of integers, so that the schedule does not show.
func histogram(k *tritonRun) {
	const n, bins = 1203, 64
	x := make([]float64, n)
	k.want, k.allow = make([]float64, bins), make([]float64, bins)
	for i := range x {
		x[i] = float64(k.r.IntN(bins))
		k.want[int(x[i])]++
	}
	k.grid = "3"
	k.buffer("i32", x, n)
	k.result("i32", bins)
	k.args[k.outs[0]] += "=0"
	k.scalars(fmt.Sprint("i32:", n))
}

func cumSum(k *tritonRun) {
	const rows, cols = 2, 389
	x := k.normals(rows * cols)
	k.grid = fmt.Sprint(rows)
	k.buffer("f32", x, rows, cols)
	k.result("f32", rows, cols)
	k.scalars(fmt.Sprint("i32:", cols))
	for r := range rows {
		sum, size := 0.0, 0.0
		for _, v := range x[r*cols:][:cols] {
			sum, size = sum+v, size+math.Abs(v)
			k.expect(sum, 16*ulp32*size)
		}
	}
}

func matMul(typ string, m, n, depth int) func(k *tritonRun) {
	return func(k *tritonRun) {
		k.mma, k.grid = true, fmt.Sprintf("%d,%d", (m+63)/64, (n+31)/32)
		k.product(typ, false, m, n, depth)
		k.scalars(fmt.Sprint("i32:", m), fmt.Sprint("i32:", n), fmt.Sprint("i32:", depth))
	}
}

// attention is causal; its weights are rounded to 16 bits before they meet the values, as the results are.
func attention(typ string) func(k *tritonRun) {
	return func(k *tritonRun) { attentionOf(k, typ, 77, 32) }
}

func attentionOf(k *tritonRun, typ string, rows, width int) {
	const heads, scale = 2, 0.25
	var x [3][]float64
	for i := range x {
		x[i] = k.short(heads * rows * width)
		k.buffer(typ, x[i], heads, rows, width)
	}
	k.mma, k.grid = true, fmt.Sprint("2,", heads)
	k.result(typ, heads, rows, width)
	k.scalars(fmt.Sprint("i32:", rows), fmt.Sprint("f32:", scale))
	k.half = half(typ)
	for h := range heads {
		q, key, v := x[0][h*rows*width:], x[1][h*rows*width:], x[2][h*rows*width:]
		for i := range rows {
			s := make([]float64, i+1)
			for j := range s {
				for d := range width {
					s[j] += scale * q[i*width+d] * key[j*width+d]
				}
			}
			k.weigh(softmaxOf(s), v, width)
		}
	}
}

// weigh expects the sum of rows of v by their weights.
func (k *tritonRun) weigh(p, v []float64, width int) {
	for d := range width {
		sum, size := 0.0, 0.0
		for j := range p {
			sum, size = sum+p[j]*v[j*width+d], size+p[j]*math.Abs(v[j*width+d])
		}
		k.expect(sum, (k.half+64*ulp32)*size+k.half*math.Abs(sum))
	}
}

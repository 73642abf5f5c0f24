package simrun

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/warpline-ml/warpline/internal/npy"
)

// hopperCard runs what was compiled for sm_90a.
func hopperCard(kernel string) string {
	if strings.HasSuffix(kernel, "_sm90") {
		return "h100-80"
	}
	return ""
}

// hopperMakers prepare the kernels that Triton compiled for Hopper: products by wgmma whose operands come by cp.async or by boxes
// of tensor maps, made by the launch or by the kernel, in clusters too, and attention, with warps that have parts of their own.
var hopperMakers = func() map[string]func(k *tritonRun) {
	m := map[string]func(k *tritonRun){
		"boxes_cluster_sm90": hopperMatMul("f16", true), "described_f16_sm90": hopperMatMul("f16", false),
		"attention_f16_sm90": hopperAttention, "attention_boxes_sm90": boxAttention, "attention_specialised_sm90": boxAttention,
	}
	for _, typ := range []string{"f16", "bf16", "tf32", "e4m3", "e5m2"} {
		m["matmul_"+typ+"_sm90"], m["boxes_"+typ+"_sm90"] = hopperMatMul(typ, false), hopperMatMul(typ, true)
	}
	return m
}()

// bytes adds an argument of single bytes.
func (k *tritonRun) bytes(data []byte, shape ...int) {
	var b bytes.Buffer
	name := fmt.Sprintf("%d.npy", len(k.args))
	if err := npy.Write(&b, &npy.Array{DType: "|u1", Shape: shape, Data: data}); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		k.t.Fatal(err)
	}
	k.args = append(k.args, "@"+name)
}

// float8 is the number that 8 bits are, with so many of mantissa.
func float8(b byte, mantissa int) float64 {
	bias := 1<<(6-mantissa) - 1
	e, m := int(b&0x7f>>mantissa), float64(b&(1<<mantissa-1))/float64(int(1)<<mantissa)
	v := math.Ldexp(1+m, e-bias)
	if e == 0 {
		v = math.Ldexp(m, 1-bias)
	}
	if b > 0x7f {
		return -v
	}
	return v
}

// factor adds a matrix of a type, and returns its numbers.
func (k *tritonRun) factor(typ string, rows, cols int) []float64 {
	mantissa := map[string]int{"e4m3": 3, "e5m2": 2}[typ]
	if mantissa == 0 {
		x := k.short(rows * cols)
		k.buffer(strings.Replace(typ, "tf32", "f32", 1), x, rows, cols)
		return x
	}
	x, raw := make([]float64, rows*cols), make([]byte, rows*cols)
	for i := range x {
		raw[i] = byte(k.r.IntN(2)<<7 + k.r.IntN(0x50))
		x[i] = float8(raw[i], mantissa)
	}
	k.bytes(raw, rows, cols)
	return x
}

// hopperMatMul is A[M,K] by B[K,N], or by B[N,K] transposed.
func hopperMatMul(typ string, transposed bool) func(k *tritonRun) {
	return func(k *tritonRun) { hopperProduct(k, typ, transposed, 48, 80) }
}

func hopperProduct(k *tritonRun, typ string, transposed bool, n, depth int) {
	const m = 77
	k.grid, k.mma = "2,1", len(typ) < 4 || typ == "bf16"
	k.product(typ, transposed, m, n, depth)
	k.scalars(fmt.Sprint("i32:", m), fmt.Sprint("i32:", n), fmt.Sprint("i32:", depth))
}

// product adds A[M,K], B[K,N] or B[N,K], and their product. Products of numbers are exact, so that only sums and the result are
// rounded, or cut off.
func (k *tritonRun) product(typ string, transposed bool, m, n, depth int) {
	out := typ
	if typ == "tf32" || strings.HasPrefix(typ, "e") {
		out = "f32"
	}
	rows, cols := depth, n
	if transposed {
		rows, cols = n, depth
	}
	a, b := k.factor(typ, m, depth), k.factor(typ, rows, cols)
	k.result(out, m, n)
	for i := range m {
		for j := range n {
			sum, size := 0.0, 0.0
			for l := range depth {
				at := l*n + j
				if transposed {
					at = j*depth + l
				}
				p := a[i*depth+l] * b[at]
				sum, size = sum+p, size+math.Abs(p)
			}
			k.expect(sum, 8*ulp32*size+half(out)*math.Abs(sum))
		}
	}
}

// hopperAttention is attention of wider heads.
func hopperAttention(k *tritonRun) { attentionOf(k, "f16", 77, 64) }

// boxAttention is of all queries to all keys, with powers of two.
func boxAttention(k *tritonRun) {
	const heads, rows, width, scale = 2, 128, 64, 0.25
	var x [3][]float64
	for i := range x {
		x[i] = k.short(heads * rows * width)
		k.buffer("f16", x[i], heads*rows, width)
	}
	k.mma, k.grid = true, fmt.Sprint("2,", heads)
	k.result("f16", heads*rows, width)
	k.scalars(fmt.Sprint("i32:", rows), fmt.Sprint("f32:", scale))
	k.half = ulpF16
	for h := range heads {
		q, key, v := x[0][h*rows*width:], x[1][h*rows*width:], x[2][h*rows*width:]
		for i := range rows {
			s := make([]float64, rows)
			for j := range s {
				for d := range width {
					s[j] += math.Ln2 * scale * q[i*width+d] * key[j*width+d]
				}
			}
			k.weigh(softmaxOf(s), v, width)
		}
	}
}

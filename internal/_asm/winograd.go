package main

import "fmt"

// A lineMap is a linear map of a row of from vectors to one of to. It writes registers out of registers in, which it leaves as
// they are, by way of Z8 and Z9; Z29 is 0 and Z30 a half.
type lineMap struct {
	name, doc string
	from, to  int
	biased    bool
	write     func(f *file, in, out []int)
}

// lineMaps are those of Winograd's F(2, 3).
var lineMaps = []lineMap{
	{"Input", "takes 4 neighbours d of a picture to d0-d2, d1+d2, d2-d1, d1-d3", 4, 4, false, func(f *file, in, out []int) {
		f.z("VSUBPS", in[2], in[0], out[0])
		f.z("VADDPS", in[2], in[1], out[1])
		f.z("VSUBPS", in[1], in[2], out[2])
		f.z("VSUBPS", in[3], in[1], out[3])
	}},
	{"Output", "takes 4 sums of products m to 2 results, m0+(m1+m2) and (m1-m2)-m3, and adds the bias to both", 4, 2, true, func(f *file, in, out []int) {
		f.z("VADDPS", in[2], in[1], 8)
		f.z("VSUBPS", in[2], in[1], 9)
		f.z("VADDPS", 8, in[0], out[0])
		f.z("VSUBPS", in[3], 9, out[1])
	}},
	{"Weight", "takes 3 weights w to w0, (w0+w2+w1)/2, (w0+w2-w1)/2, w2", 3, 4, false, func(f *file, in, out []int) {
		f.z("VADDPS", in[2], in[0], 8)
		f.z("VADDPS", in[1], 8, 9)
		f.z("VSUBPS", in[1], 8, 8)
		f.op("VMOVAPS Z%d, Z%d", in[0], out[0])
		f.z("VMULPS", 30, 9, out[1])
		f.z("VMULPS", 30, 8, out[2])
		f.op("VMOVAPS Z%d, Z%d", in[2], out[3])
	}},
	{"Grad", "is Output transposed: it takes gradients g of 2 results to g0, g0+g1, g0-g1, -g1", 2, 4, false, func(f *file, in, out []int) {
		f.op("VMOVAPS Z%d, Z%d", in[0], out[0])
		f.z("VADDPS", in[1], in[0], out[1])
		f.z("VSUBPS", in[1], in[0], out[2])
		f.z("VSUBPS", in[1], 29, out[3])
	}},
	{"WeightGrad", "is Weight transposed: it takes 4 sums u to u0+(u1+u2)/2, (u1-u2)/2, (u1+u2)/2+u3", 4, 3, false, func(f *file, in, out []int) {
		f.z("VADDPS", in[2], in[1], 8)
		f.z("VSUBPS", in[2], in[1], 9)
		f.z("VMULPS", 30, 8, 8)
		f.z("VADDPS", 8, in[0], out[0])
		f.z("VMULPS", 30, 9, out[1])
		f.z("VADDPS", in[3], 8, out[2])
	}},
}

// z writes an instruction of three registers of AVX-512, in Go's order.
func (f *file) z(op string, a, b, dst int) { f.op("%s Z%d, Z%d, Z%d", op, a, b, dst) }

// winograd writes the maps of squares of vectors: the lines' of the columns, and then of the rows.
//
// Registers: SI and DI are squares, R8 and R9 the distances of rows and columns in the first, R10 and R11 in the second, R12
// and BX go along them. Results of columns have Z12 and those after it.
func winograd(f *file) {
	for i := range lineMaps {
		f.winogradMap(&lineMaps[i])
	}
}

func (f *file) winogradMap(m *lineMap) {
	f.function("winograd"+m.name+"AVX512", fmt.Sprintf("maps a.n squares of %d×%d vectors to squares of %d×%d:\n\n"+
		"\tfor j in columns: u[:, j] = line(x[:, j])\n\tfor i in rows of u: y[i, :] = line(u[i, :])\n\nwhere line %s.\nDistances are in bytes.", m.from, m.from, m.to, m.to, m.doc), "a *squareArgs", 8)
	f.op("MOVQ a+0(FP), R15")
	f.loads2("squareArgs_", "src", "SI", "dst", "DI", "srcRow", "R8", "srcCol", "R9", "dstRow", "R10", "dstCol", "R11", "n", "CX")
	f.op("LEAQ (R8)(R8*2), R13")
	f.op("LEAQ (R11)(R11*2), DX")
	f.z("VPXORD", 29, 29, 29)
	f.op("MOVL $0x3f000000, AX")
	f.op("VPBROADCASTD AX, Z30")
	if m.biased {
		f.op("MOVQ squareArgs_bias(R15), AX")
		f.op("VMOVUPS (AX), Z31")
	}
	f.loop("CX", 1, func() {
		f.op("MOVQ SI, R12")
		in := []int{0, 1, 2, 3}[:m.from]
		for j := range m.from {
			for i := range in {
				f.op("VMOVUPS (R12)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R13*1)"}[i], i)
			}
			var out []int
			for i := range m.to {
				out = append(out, 12+4*i+j)
			}
			m.write(f, in, out)
			if j+1 < m.from {
				f.op("ADDQ R9, R12")
			}
		}
		f.op("MOVQ DI, BX")
		for i := range m.to {
			m.write(f, []int{12 + 4*i, 13 + 4*i, 14 + 4*i, 15 + 4*i}[:m.from], []int{0, 1, 2, 3}[:m.to])
			for j := range m.to {
				if m.biased {
					f.z("VADDPS", 31, j, j)
				}
				f.op("VMOVUPS Z%d, (BX)%s", j, []string{"", "(R11*1)", "(R11*2)", "(DX*1)"}[j])
			}
			if i+1 < m.to {
				f.op("ADDQ R10, BX")
			}
		}
		f.op("ADDQ squareArgs_srcStep(R15), SI")
		f.op("ADDQ squareArgs_dstStep(R15), DI")
	})
	f.leave()
}

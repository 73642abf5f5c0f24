package main

import "fmt"

func (f *file) matrixConstants() {
	// The elements of an 8×8 matrix of 16 bits, transposed.
	for half := range 2 {
		words := make([]uint32, 16)
		for i := range 32 {
			n := i + 32*half
			words[i/2] |= uint32(n%8*8+n/8) << (16 * (i % 2))
		}
		f.data32(fmt.Sprintf("transposed%d", half), words)
	}
	// The words of column q of B, in the order of columns of D that the lanes have: even ones, then odd ones.
	for q := range 4 {
		f.data32(fmt.Sprintf("columns%d", q), vector(16, func(i int) int { return 4*(i%8%4*2+i%8/4) + q }))
		// The same of its 16-bit words, the lower ones, then the upper ones, each the upper half of a word of 32 bits.
		f.data32(fmt.Sprintf("pairs%d", q), vector(16, func(i int) int { return (2*(4*(i%8%4*2+i%8/4)+q) + i/8) << 16 }))
	}
}

// matrices lists ldmatrix and mma.
func matrices() []handler {
	var all []handler
	for _, s := range spaces {
		for _, n := range []int{2, 4} {
			all = append(all, loadMatrix(s, n, false), loadMatrix(s, n, true))
		}
	}
	for _, t := range []string{"BF16", "F16", "TF32"} {
		all = append(all, multiply(t))
	}
	return all
}

// loadMatrix loads n 8×8 matrices of 16 bits, lane i having the address of row i%8 of matrix i/8.
func loadMatrix(s space, n int, trans bool) handler {
	name := fmt.Sprintf("matrix%dx%s", n, s.suffix)
	if trans {
		name = fmt.Sprintf("matrixT%dx%s", n, s.suffix)
	}
	return handler{name, 8, "d, b, c, x = matrices at a + imm", func(f *file, l *level) bool {
		regs := 8 * n * 4 / l.bytes
		f.offsets(l, s, 16, regs)
		f.spill(l, regs)
		for b := 1; b < 4 && l.wide(); b++ {
			f.op("MOVL $%#x, AX", 15<<(4*b))
			f.op("KMOVW AX, K%d", 1+b)
		}
		if trans && l.wide() {
			f.op("VMOVUPS transposed0<>(SB), Z3")
			f.op("VMOVUPS transposed1<>(SB), Z4")
		}
		for j := range n {
			f.op("MOVL %d(R8), DX", places[j])
			switch {
			case !trans:
				f.rows(l, j)
				for h := range l.vectors() {
					f.op("VMOVUPS %s, %s", l.r(h), at(h*l.bytes, 4, "DX"))
				}
			case l.wide():
				f.rows(l, j)
				f.op("VMOVDQA64 Z0, Z2")
				f.op("VPERMT2W Z1, Z3, Z0")
				f.op("VPERMT2W Z1, Z4, Z2")
				f.op("VMOVUPS Z0, %s", at(0, 4, "DX"))
				f.op("VMOVUPS Z2, %s", at(64, 4, "DX"))
			default:
				f.transpose8(j)
			}
		}
		return true
	}}
}

// rows gathers the 8 rows of matrix j in registers 0, 1, ….
func (f *file) rows(l *level, j int) {
	per := l.bytes / 16
	for i := range 8 {
		reg := f.offsetOf(8*j + i)
		switch b, r := i%per, i/per; {
		case b == 0:
			f.op("VMOVUPS (R11)(%s*1), X%d", reg, r)
		case l.wide():
			f.op("VBROADCASTI32X4 (R11)(%s*1), K%d, Z%d", reg, 1+b, r)
		default:
			f.op("VINSERTI128 $1, (R11)(%s*1), Y%d, Y%d", reg, r, r)
		}
	}
}

// transpose8 stores matrix j transposed, by three rounds of interleaving 8 rows of 16 bytes.
func (f *file) transpose8(j int) {
	for i := range 8 {
		f.op("MOVL Frame_Off+%d(R9), AX", 4*(8*j+i))
		f.op("VMOVUPS (R11)(AX*1), X%d", i)
	}
	from, to := 0, 8
	for range 3 {
		for i := range 4 {
			f.op("VPUNPCKLWD X%d, X%d, X%d", from+i+4, from+i, to+2*i)
			f.op("VPUNPCKHWD X%d, X%d, X%d", from+i+4, from+i, to+2*i+1)
		}
		from, to = to, from
	}
	for i := range 8 {
		f.op("VMOVUPS X%d, %s", from+i, at(16*i, 4, "DX"))
	}
	f.op("VBROADCASTSS nan32<>(SB), Y15")
}

// Words of the two-part instruction of mma.
const (
	mmaD = 4
	mmaA = 20
	mmaB = 36
	mmaC = 44
	mmaX = 60 // a number that instructions with the same A share
)

// multiply is mma.sync with float32 accumulators: products are exact, and fused multiply-adds sum them in the order of k,
// beginning with C. A is turned into a tile of float32 in the frame, a row after the other; B and D keep the order of
// columns 0 2 4 6 1 3 5 7, which is that of the lanes.
func multiply(t string) handler {
	return handler{"mma" + t, 16, "d = a·b + c, tensor core", func(f *file, l *level) bool {
		k := 16
		if t == "TF32" {
			k = 8
		}
		same := f.label("same")
		f.op("MOVL %d(R8), AX", mmaX)
		f.op("CMPL AX, Frame_Tag(R9)")
		f.op("JEQ %s", same)
		f.op("MOVL AX, Frame_Tag(R9)")
		for i := range 4 {
			f.op("MOVL %d(R8), BX", mmaA+4*i)
			f.op("ADDQ SI, BX")
			f.tileA(t, k, i)
		}
		f.mark(same)
		f.tileB(l, t)
		for half := range 2 {
			f.rowsAt(half)
			if l.wide() {
				f.multiply512(l, k, half)
				continue
			}
			f.multiply256(k, half)
		}
		return true
	}}
}

// tileA turns register i of A, 8 rows of 16 bytes, into float32.
func (f *file) tileA(t string, k, i int) {
	row, col := i%2*8, i/2*k/2
	for r := range 8 {
		to := fmt.Sprintf("Frame_tile+%d(R9)", 4*((row+r)*k+col))
		if t == "TF32" {
			if r == 0 {
				f.op("VBROADCASTSS low13<>(SB), X1")
			}
			f.op("VANDPS %d(BX), X1, X0", 16*r)
			f.op("VMOVUPS X0, %s", to)
			continue
		}
		f.floats(t, fmt.Sprintf("%d(BX)", 16*r), 0)
		f.op("VMOVUPS Y0, %s", to)
	}
}

// floats turns 8 numbers of 16 bits into float32 in Y register r.
func (f *file) floats(t, from string, r int) {
	if t == "F16" {
		f.op("VCVTPH2PS %s, Y%d", from, r)
		return
	}
	f.op("VPMOVZXWD %s, Y%d", from, r)
	f.op("VPSLLD $16, Y%d, Y%d", r, r)
}

// tileB turns B into rows of 8 float32: in registers 14 to 29, or in the frame.
func (f *file) tileB(l *level, t string) {
	for i := range 2 {
		f.op("MOVL %d(R8), BX", mmaB+4*i)
		f.op("ADDQ SI, BX")
		if l.wide() {
			f.op("VMOVUPS (BX), Z8")
			f.op("VMOVUPS 64(BX), Z9")
		}
		if l.wide() && t == "BF16" {
			f.pairsB(i)
			continue
		}
		for q := range 4 {
			if l.wide() {
				f.op("VMOVUPS columns%d<>(SB), Z10", q)
				f.op("VPERMI2D Z9, Z8, Z10")
			} else {
				f.op("VMOVUPS columns%d<>(SB), Y11", q)
				f.op("VPCMPEQD Y12, Y12, Y12")
				f.op("VPGATHERDD Y12, (BX)(Y11*4), Y10")
			}
			if t == "TF32" {
				f.op("VBROADCASTSS low13<>(SB), Y11")
				f.op("VANDPS Y11, Y10, Y10")
				f.rowB(l, 4*i+q, 10)
				continue
			}
			f.op("VPSRLD $16, Y10, Y11")
			if t == "BF16" {
				f.op("VPSLLD $16, Y11, Y11")
				f.op("VPSLLD $16, Y10, Y10")
			} else {
				f.halfFloats(10)
				f.halfFloats(11)
			}
			f.rowB(l, 8*i+2*q, 10)
			f.rowB(l, 8*i+2*q+1, 11)
		}
	}
}

// pairsB turns register i of B, which Z8 and Z9 hold, into 8 rows. Words become the upper halves of float32, two rows at
// once.
func (f *file) pairsB(i int) {
	if i == 0 {
		f.op("MOVL $0xaaaaaaaa, AX")
		f.op("KMOVD AX, K1")
	}
	for q := range 4 {
		row := 14 + 8*i + 2*q
		f.op("VMOVUPS pairs%d<>(SB), Z%d", q, row)
		f.op("VPERMI2W.Z Z9, Z8, K1, Z%d", row)
		f.op("VEXTRACTF64X4 $1, Z%d, Y%d", row, row+1)
	}
}

// halfFloats turns the low halves of the words of Y register r, as float16, into float32.
func (f *file) halfFloats(r int) {
	f.op("VBROADCASTSS low16<>(SB), Y13")
	f.op("VPAND Y13, Y%d, Y%d", r, r)
	f.op("VEXTRACTI128 $1, Y%d, X13", r)
	f.op("VPACKUSDW X13, X%d, X%d", r, r)
	f.op("VCVTPH2PS X%d, Y%d", r, r)
}

func (f *file) rowB(l *level, k, r int) {
	if l.wide() {
		f.op("VMOVAPS Y%d, Y%d", r, 14+k)
		return
	}
	f.op("VMOVUPS Y%d, Frame_columns+%d(R9)", r, 32*k)
}

// rowsAt points DX and BX to the registers of a half of D, CX and R11 to those of C.
func (f *file) rowsAt(half int) {
	f.fetch(mmaD+8*half, "DX", mmaD+8*half+4, "BX", mmaC+8*half, "CX", mmaC+8*half+4, "R11")
	for _, r := range []string{"DX", "BX", "CX", "R11"} {
		f.op("ADDQ SI, %s", r)
	}
}

// multiply512 computes 8 rows of D at a time, in registers 0 to 7, with the rows of B in registers.
func (f *file) multiply512(l *level, k, half int) {
	for r := range 8 {
		f.op("VMOVUPS %d(CX), X%d", 16*r, r)
		f.op("VINSERTF128 $1, %d(R11), Y%d, Y%d", 16*r, r, r)
	}
	for j := range k {
		for r := range 8 {
			f.op("VFMADD231PS.BCST Frame_tile+%d(R9), Y%d, Y%d", 4*((8*half+r)*k+j), 14+j, r)
		}
	}
	for r := 0; r < 8; r += 2 {
		f.op("VCMPPS $3, Y%d, Y%d, K%d", r+1, r, 1+r/2)
	}
	f.op("KORW K1, K2, K1")
	f.op("KORW K3, K4, K3")
	fine := f.label("numbers")
	f.op("KORTESTW K1, K3")
	f.op("JEQ %s", fine)
	for r := range 8 {
		f.op("VCMPPS $3, Y%d, Y%d, K1", r, r)
		f.op("VPBROADCASTD nan32<>(SB), K1, Y%d", r)
	}
	f.mark(fine)
	for r := range 8 {
		f.op("VMOVUPS X%d, %d(DX)", r, 16*r)
		f.op("VEXTRACTF128 $1, Y%d, %d(BX)", r, 16*r)
	}
}

// multiply256 computes 8 rows of D, one after the other, in steps of 8 of k for which the rows of B are in registers.
func (f *file) multiply256(k, half int) {
	for from := 0; from < k; from += 8 {
		for j := range 8 {
			f.op("VMOVUPS Frame_columns+%d(R9), Y%d", 32*(from+j), j)
		}
		even, odd := "CX", "R11"
		if from > 0 {
			even, odd = "DX", "BX"
		}
		for r := range 8 {
			d := 8 + r%2
			f.op("VMOVUPS %d(%s), X%d", 16*r, even, d)
			f.op("VINSERTF128 $1, %d(%s), Y%d, Y%d", 16*r, odd, d, d)
			for j := range 8 {
				a := 10 + (8*r+j)%4
				f.op("VBROADCASTSS Frame_tile+%d(R9), Y%d", 4*((8*half+r)*k+from+j), a)
				f.op("VFMADD231PS Y%d, Y%d, Y%d", j, a, d)
			}
			if from+8 == k {
				f.op("VCMPPS $3, Y%d, Y%d, Y14", d, d)
				f.op("VBLENDVPS Y14, Y15, Y%d, Y%d", d, d)
			}
			f.op("VMOVUPS X%d, %d(DX)", d, 16*r)
			f.op("VEXTRACTF128 $1, Y%d, %d(BX)", d, 16*r)
		}
	}
}

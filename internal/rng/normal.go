package rng

import "math"

// boxMuller returns two independent standard normal numbers,
// √(-2·ln u)·cos 2πt and √(-2·ln u)·sin 2πt, for u in (0, 1] and an angle of t = turn/2⁶⁴
// turns (Box and Muller 1958).
func boxMuller(u float64, turn uint64) (a, b float64) {
	r := math.Sqrt(-2 * logUnit(u))
	sin, cos := sincosTurn(turn)
	return float64(r * cos), float64(r * sin)
}

// math.Log and math.Sincos differ between machines in the last bit: assembly on
// some, fused multiply-add on others. The two functions below use their polynomials
// (FreeBSD's e_log.c, Cephes' sin.c); each explicit conversion forbids fusing.

// logUnit returns ln u for a normal u in (0, 1], within an ulp.
func logUnit(u float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
		// offset moves [√½, √2) to one binade.
		offset = 0x3ff0000000000000 - 0x3fe6a09e667f3bcd
	)
	// u = 2ᵏ·(1+f) with 1+f in [√½, √2).
	bits := math.Float64bits(u) + offset
	k := float64(int64(bits>>52) - 1023)
	f := math.Float64frombits(bits&(1<<52-1)+0x3fe6a09e667f3bcd) - 1

	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7)))))))
	t2 := float64(s4 * (l2 + float64(s4*(l4+float64(s4*l6)))))
	half := float64(0.5 * float64(f*f))
	return float64(k*ln2Hi) - ((half - (float64(s*(half+t1+t2)) + float64(k*ln2Lo))) - f)
}

// sincosTurn returns the sine and cosine of turn/2⁶⁴ turns.
func sincosTurn(turn uint64) (sin, cos float64) {
	const (
		s1 = -1.66666666666666307295e-1
		s2 = 8.33333333332211858878e-3
		s3 = -1.98412698295895385996e-4
		s4 = 2.75573136213857245213e-6
		s5 = -2.50507477628578072866e-8
		s6 = 1.58962301576546568060e-10

		c1 = 4.16666666666665929218e-2
		c2 = -1.38888888888730564116e-3
		c3 = 2.48015872888517045348e-5
		c4 = -2.75573141792967388112e-7
		c5 = 2.08757008419747316778e-9
		c6 = -1.13585365213876817300e-11
	)
	// The nearest quarter turn, and the rest: an exact integer in [-2⁶¹, 2⁶¹).
	quarter := (turn + 1<<61) >> 62
	rest := int64(turn - quarter<<62)
	x := float64(float64(rest) * (2 * math.Pi * 0x1p-64))

	z := float64(x * x)
	p := s1 + float64(z*(s2+float64(z*(s3+float64(z*(s4+float64(z*(s5+float64(z*s6)))))))))
	q := c1 + float64(z*(c2+float64(z*(c3+float64(z*(c4+float64(z*(c5+float64(z*c6)))))))))
	sin = x + float64(float64(x*z)*p)
	cos = 1 - float64(0.5*z) + float64(float64(z*z)*q)

	if quarter&1 != 0 {
		sin, cos = cos, -sin
	}
	if quarter&2 != 0 {
		sin, cos = -sin, -cos
	}
	return sin, cos
}
